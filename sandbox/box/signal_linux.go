package box

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// setAction installs a signal's disposition past the Go runtime, which is
// about to end. A kernel's struct sigaction is a handler, flags, a restorer
// and a mask, 8 bytes each, on the 64-bit machines fletch runs on.
func setAction(n uintptr, action *[4]uint64) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(action)), 0, 8, 0, 0) //nolint:gosec // the kernel takes it by address
	if errno != 0 {
		return errno
	}
	return nil
}
