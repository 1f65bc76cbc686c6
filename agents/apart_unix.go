//go:build unix

package agents

import (
	"os/exec"
	"syscall"
)

// apart gives a keeper a session of its own: no signal to the hub's group
// reaches it.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}
