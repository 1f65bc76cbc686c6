//go:build unix

package gitops

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group of its own and ends all of it when
// the command is cancelled: git leaves transports and helpers behind.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
