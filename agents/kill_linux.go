package agents

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// killKeeper kills a keeper that does not answer. Its connection is open, so
// the pid is its own; the descriptor keeps it from becoming another's between
// looking and killing.
func killKeeper(pid int) error {
	if pid <= 1 {
		return errors.New("killing a keeper: its process is not known")
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("killing a keeper: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing a keeper: %w", err)
	}
	return nil
}
