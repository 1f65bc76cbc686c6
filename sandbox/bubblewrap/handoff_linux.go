package bubblewrap

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// handoff collects what bwrap inherits. The first file becomes descriptor 3.
type handoff struct {
	files []*os.File
	own   []*os.File // those to close here when bwrap has its copies
}

// hold closes f later, whether it was handed on or not.
func (h *handoff) hold(f *os.File) { h.own = append(h.own, f) }

// lend hands f on and leaves it open here.
func (h *handoff) lend(f *os.File) int {
	h.files = append(h.files, f)
	return 2 + len(h.files)
}

// give hands f on and closes it here once bwrap runs.
func (h *handoff) give(f *os.File) int {
	h.hold(f)
	return h.lend(f)
}

// data hands content on as a file without a name. bwrap closes a descriptor
// after use, so nothing is ever handed on twice.
func (h *handoff) data(name string, content []byte) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("making %s: %w", name, err)
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(content); err != nil {
		file.Close() // in memory only
		return 0, fmt.Errorf("making %s: %w", name, err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		file.Close() // in memory only
		return 0, fmt.Errorf("making %s: %w", name, err)
	}
	return h.give(file), nil
}

// close ends this process's copies.
func (h *handoff) close() {
	for _, f := range h.own {
		f.Close() // nothing is read or written through it here
	}
	h.own = nil
}
