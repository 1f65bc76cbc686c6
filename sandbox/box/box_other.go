//go:build !linux

package box

import (
	"fmt"
	"os"
)

// Main refuses: there is nothing to seal with.
func (Stage) Main([]string) int {
	fmt.Fprintln(os.Stderr, "error: fletch box runs on Linux only")
	return 1
}
