package gitops

import (
	"net"
	"os"
	"syscall"
)

// ownPeer reports whether the other end is a process of the same user.
func ownPeer(conn net.Conn) bool {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	err = raw.Control(func(fd uintptr) {
		cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		own = err == nil && int(cred.Uid) == os.Getuid()
	})
	return err == nil && own
}
