//go:build failpoints

package hub

import (
	"os"
	"syscall"
)

// failpoint kills the hub at a named step when FLETCH_FAILPOINT names it, as
// a power cut would: nothing is flushed, nothing is told. Only tests build
// with the tag failpoints.
func failpoint(step string) {
	if os.Getenv("FLETCH_FAILPOINT") == step {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
