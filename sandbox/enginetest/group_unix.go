//go:build !windows

package enginetest

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives the program a session, and so a group, of its own.
func ownGroup(cmd *exec.Cmd, terminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal}
}

// killGroup ends the program and what it started. A group that is gone
// already is fine.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func killedBy(state *os.ProcessState) (syscall.Signal, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	return status.Signal(), ok && status.Signaled()
}
