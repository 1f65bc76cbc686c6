package client

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// detach leaves the hub in the client's console session; not run end to end
// on Windows.
func detach(*exec.Cmd) {}

// lockFile waits until it can create path, which stands for the lock; not run
// end to end on Windows.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err == nil {
			return func() { _ = file.Close(); _ = os.Remove(path) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
