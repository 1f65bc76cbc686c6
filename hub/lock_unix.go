//go:build unix

package hub

import (
	"errors"
	"os"
	"syscall"
)

// errHeld says that another hub lives.
var errHeld = errors.New("another hub holds the lock")

// holdLock takes the lock that one hub per home may hold. The kernel frees it
// when the hub dies.
func holdLock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
