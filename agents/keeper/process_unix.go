//go:build unix

package keeper

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// private keeps a descriptor from being handed on to the agent.
func private(fd int) { unix.CloseOnExec(fd) }

// lock makes sure that an agent has one keeper. The lock ends with the
// process.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the agent: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = file.Close()
		return nil, errKept
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the agent: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
