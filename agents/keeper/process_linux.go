package keeper

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// harden keeps other processes of the same user from reading the keeper's
// memory, where the agent's secrets are, and new files from being readable by
// others.
func harden() error {
	unix.Umask(0o077)
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// bootID names the running boot.
func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
