package hub

import "golang.org/x/sys/unix"

// harden keeps other processes of the same user from reading the hub's memory
// and environment, and new files from being readable by others.
func harden() error {
	unix.Umask(0o077)
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
