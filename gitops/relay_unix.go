//go:build unix

package gitops

import (
	"os"
	"syscall"
)

// oneWay is a pipe made of sockets. git tells an upload-pack that it has no
// more questions by closing its end while it still reads; the processes around
// the one that relays hold that end open as well, so it must be possible to
// hang up for all of them at once. A pipe cannot do that.
func oneWay() (read, write *os.File, err error) {
	syscall.ForkLock.RLock() // no child may start between the two calls
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "from the fetch"), os.NewFile(uintptr(fds[1]), "to the workspace"), nil
}

// hangUp ends what is sent over the writing end of oneWay, whoever else holds
// it.
func hangUp(write *os.File) { _ = syscall.Shutdown(int(write.Fd()), syscall.SHUT_WR) }
