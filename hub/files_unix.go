//go:build unix

package hub

import "syscall"

// openFiles is how many files this process may have open; 0 when the system
// does not tell.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // signed on some systems
}
