package attach

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// checkPeer refuses a peer of another user or in other namespaces: what runs
// in a sandbox must not reach a keeper, whatever socket leaked into it.
//
// The namespace links of a process that is not dumpable, as the hub is, can
// only be read by root. So what anybody can see decides: how many pid
// namespaces the peer is in, which network namespace its end of the socket
// belongs to, and how its user namespace maps ids.
func checkPeer(conn net.Conn) error {
	cred, err := credentials(conn)
	if err != nil {
		return fmt.Errorf("finding out who connects: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("uid %d is not the keeper's", cred.Uid)
	}
	if cred.Pid <= 0 {
		return errors.New("the peer is in another pid namespace")
	}
	if err := sameNamespace(int(cred.Pid), "user"); err != nil {
		return err
	}
	if err := sameNamespace(int(cred.Pid), "pid"); err != nil {
		return err
	}
	return sameNetwork(conn, int(cred.Pid))
}

// sameNamespace compares namespace links where they can be read, else what
// the files that anybody may read say about them.
func sameNamespace(pid int, ns string) error {
	theirs, err := os.Readlink(proc(pid, "ns/"+ns))
	if errors.Is(err, fs.ErrPermission) {
		return similar(pid, ns)
	}
	if err != nil {
		return fmt.Errorf("reading the %s namespace of process %d: %w", ns, pid, err)
	}
	ours, err := os.Readlink("/proc/self/ns/" + ns)
	if err != nil {
		return fmt.Errorf("reading the keeper's %s namespace: %w", ns, err)
	}
	if ours != theirs {
		return fmt.Errorf("process %d is in another %s namespace", pid, ns)
	}
	return nil
}

func similar(pid int, ns string) error {
	read := func(pid int) ([]byte, error) {
		switch ns {
		case "user":
			users, err1 := os.ReadFile(proc(pid, "uid_map"))
			groups, err2 := os.ReadFile(proc(pid, "gid_map"))
			return append(users, groups...), errors.Join(err1, err2)
		case "pid":
			status, err := os.ReadFile(proc(pid, "status"))
			return depth(status), err
		}
		return nil, errors.New("it cannot be read")
	}
	theirs, err1 := read(pid)
	ours, err2 := read(os.Getpid())
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("reading the %s namespace of process %d: %w", ns, pid, err)
	}
	if !bytes.Equal(ours, theirs) {
		return fmt.Errorf("process %d is in another %s namespace", pid, ns)
	}
	return nil
}

// depth is one byte per pid namespace a process is in, from its status file.
func depth(status []byte) []byte {
	_, rest, found := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if !found {
		return nil
	}
	return bytes.Repeat([]byte{'x'}, len(bytes.Fields(line)))
}

// sameNetwork compares network namespaces by the sockets themselves: the
// accepted end of a connection belongs to the one who connected (unix(7) says
// nothing of it; af_unix.c makes it in the caller's namespace). Kernels before
// 5.14 cannot tell; there the link of /proc must.
func sameNetwork(conn net.Conn, pid int) error {
	theirs, err := netCookie(conn)
	if errors.Is(err, unix.ENOPROTOOPT) {
		return sameNamespace(pid, "net")
	}
	if err != nil {
		return fmt.Errorf("finding out where the peer is: %w", err)
	}
	own, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("finding out where the keeper is: %w", err)
	}
	defer func() { _ = unix.Close(own) }()
	ours, err := unix.GetsockoptUint64(own, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return fmt.Errorf("finding out where the keeper is: %w", err)
	}
	if ours != theirs {
		return errors.New("the peer is in another network namespace")
	}
	return nil
}

func netCookie(conn net.Conn) (cookie uint64, err error) {
	err2 := control(conn, func(fd int) {
		cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	})
	return cookie, errors.Join(err, err2)
}

func credentials(conn net.Conn) (cred *unix.Ucred, err error) {
	err2 := control(conn, func(fd int) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(err, err2)
}

func control(conn net.Conn, f func(fd int)) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}

// peerPID is the process at the other end.
func peerPID(conn net.Conn) int {
	cred, err := credentials(conn)
	if err != nil {
		return 0
	}
	return int(cred.Pid)
}

func proc(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
