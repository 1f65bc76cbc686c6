//go:build unix

package mailbox

import (
	"os"
	"syscall"
)

// links counts the names of a file.
func links(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // its width differs between systems
	}
	return 0
}
