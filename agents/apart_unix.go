//go:build unix

package agents

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// apart gives a keeper a session of its own: no signal to the hub's group
// reaches it.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// lockHeld reports whether another process holds the lock on a file, or may:
// only a file that is not there, or whose lock can be had, is free.
func lockHeld(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer func() { _ = file.Close() }()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}
