package attach

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer refuses a peer of another user. macOS has no namespaces; there a
// sandboxed agent is kept from the socket by its profile.
func checkPeer(conn net.Conn) error {
	var cred *unix.Xucred
	err := control(conn, func(fd int) (err error) {
		cred, err = unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		return err
	})
	if err != nil {
		return fmt.Errorf("finding out who connects: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("uid %d is not the keeper's", cred.Uid)
	}
	return nil
}

// peerPID is the process at the other end.
func peerPID(conn net.Conn) int {
	pid := 0
	err := control(conn, func(fd int) (err error) {
		pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		return err
	})
	if err != nil {
		return 0
	}
	return pid
}

func control(conn net.Conn, f func(fd int) error) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var got error
	err = raw.Control(func(fd uintptr) { got = f(int(fd)) })
	return errors.Join(err, got)
}
