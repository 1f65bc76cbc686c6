package hub

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"fletch/state"
)

// identify asks the kernel who connected. A peer of another user, or in
// another user, pid or network namespace, may not talk to the hub: what runs
// in a sandbox is in namespaces of its own.
func identify(conn net.Conn) peer {
	cred, err := credentialsOf(conn)
	if err != nil {
		return peer{fault: fmt.Errorf("finding out who asks: %w", err)}
	}
	p := peer{By: state.By{PID: int(cred.Pid)}}
	if int(cred.Uid) != os.Getuid() {
		p.fault = fmt.Errorf("uid %d is not the hub's", cred.Uid)
		return p
	}
	for _, ns := range []string{"user", "pid", "net"} {
		ours, err1 := os.Readlink("/proc/self/ns/" + ns)
		theirs, err2 := os.Readlink("/proc/" + strconv.Itoa(p.By.PID) + "/ns/" + ns)
		if err := errors.Join(err1, err2); err != nil {
			p.fault = fmt.Errorf("reading the namespaces of process %d: %w", p.By.PID, err)
			return p
		}
		if ours != theirs {
			p.fault = fmt.Errorf("process %d is in another %s namespace", p.By.PID, ns)
			return p
		}
	}
	line, err := lineage(p.By.PID)
	if err != nil {
		p.fault = err
		return p
	}
	p.By.Session, p.By.TTY = line.session, line.tty
	p.sealed = line.underKeeper
	return p
}

func credentialsOf(conn net.Conn) (*unix.Ucred, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var got error
	err = raw.Control(func(fd uintptr) {
		cred, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(err, got)
}

// ancestry is what matters about where a process comes from.
type ancestry struct {
	session     int
	tty         string
	underKeeper bool
}

// lineage walks from a process to pid 1. A process that descends from a
// keeper was started by an agent, whatever it calls itself.
func lineage(pid int) (ancestry, error) {
	var out ancestry
	for at := pid; at > 1; {
		stat, err := readStat(at)
		if err != nil {
			return out, fmt.Errorf("reading where process %d comes from: %w", pid, err)
		}
		if at == pid {
			out.session, out.tty = stat.session, stat.tty()
		} else {
			keeper, err := isKeeper(at)
			if err != nil {
				return out, fmt.Errorf("reading where process %d comes from: %w", pid, err)
			}
			out.underKeeper = out.underKeeper || keeper
		}
		at = stat.parent
	}
	return out, nil
}

// isKeeper reports whether a process is "fletch keeper". Keepers are not
// dumpable, so their exe link may not be readable; their command line is. A
// process that only looks like one loses by it.
func isKeeper(pid int) (bool, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false, err
	}
	argv := bytes.Split(bytes.TrimRight(raw, "\x00"), []byte{0})
	return len(argv) == 2 && string(argv[1]) == "keeper", nil
}

type procStat struct {
	parent, session int
	ttyNumber       int
}

// tty names the controlling terminal: "pts/3", or empty.
func (s procStat) tty() string {
	if s.ttyNumber == 0 {
		return ""
	}
	major, minor := unix.Major(uint64(s.ttyNumber)), unix.Minor(uint64(s.ttyNumber))
	if major >= 136 && major <= 143 {
		return "pts/" + strconv.Itoa(int(major-136)*256+int(minor))
	}
	return strconv.Itoa(int(major)) + ":" + strconv.Itoa(int(minor))
}

// readStat reads /proc/PID/stat.
func readStat(pid int) (procStat, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, err
	}
	return parseStat(raw)
}

// parseStat reads the fields of a stat file. The second may hold anything,
// even parentheses: what counts stands behind the last one (proc(5)).
func parseStat(raw []byte) (procStat, error) {
	// Without a parenthesis this is all of it, which has no five numbers.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 5 {
		return procStat{}, errors.New("its stat file has an unknown form")
	}
	var s procStat
	var errs [3]error
	s.parent, errs[0] = strconv.Atoi(fields[1])
	s.session, errs[1] = strconv.Atoi(fields[3])
	s.ttyNumber, errs[2] = strconv.Atoi(fields[4])
	return s, errors.Join(errs[:]...)
}
