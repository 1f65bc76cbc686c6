//go:build !unix

package gitops

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// fileID is empty where a directory has no number; the path alone names it.
func fileID(fs.FileInfo) string { return "" }

// lockFile takes a lock by making a file that must not exist. Not run end to
// end here.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err == nil {
			return func() { _, _ = file.Close(), os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
