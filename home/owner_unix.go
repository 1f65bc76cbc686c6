//go:build unix

package home

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// owned refuses a directory of another user: who owns it can replace what is
// in it.
func owned(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("belongs to uid %d, not to you", stat.Uid)
	}
	return nil
}
