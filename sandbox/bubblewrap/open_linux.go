package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoSource is a source that is not there, or that cannot be reached.
var errNoSource = errors.New("it is not there")

// errLink is a source that goes through a link.
var errLink = errors.New("it goes through a link")

// source is a host file or directory that was opened to be shown.
type source struct {
	file  *os.File // O_PATH: neither read nor written through this
	dev   uint64
	ino   uint64
	isDir bool
}

// openSource opens the absolute path without following a link, since a link
// on the way may have been planted by an agent. Only an entry of the root
// directory may be one (/home on some systems): no agent can write there.
func openSource(path string) (source, error) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	top, err := filepath.EvalSymlinks("/" + first)
	if err != nil {
		return source{}, openError(path, err)
	}
	fd, err := openat2(unix.AT_FDCWD, filepath.Join(top, rest), unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return source{}, openError(path, err)
	}
	return statSource(fd, path)
}

// openBeneath opens rel below dir, never leaving it and never following a
// link.
func (s source) openBeneath(rel string) (source, error) {
	fd, err := openat2(int(s.file.Fd()), rel, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_BENEATH)
	if err != nil {
		return source{}, openError(rel, err)
	}
	return statSource(fd, rel)
}

func openat2(dir int, path string, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: resolve}
	for {
		fd, err := unix.Openat2(dir, path, &how)
		// EAGAIN is a rename somewhere in the system at the same moment.
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return fd, err
		}
	}
}

func statSource(fd int, path string) (source, error) {
	file := os.NewFile(uintptr(fd), path)
	var at unix.Stat_t
	if err := unix.Fstat(fd, &at); err != nil {
		file.Close() // nothing was written
		return source{}, openError(path, err)
	}
	s := source{file: file, dev: uint64(at.Dev), ino: at.Ino}
	switch at.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		s.isDir = true
	case unix.S_IFREG:
	case unix.S_IFLNK:
		file.Close() // nothing was written
		return source{}, fmt.Errorf("showing %s: %w", path, errLink)
	default:
		file.Close() // nothing was written
		return source{}, fmt.Errorf("showing %s: it is neither a file nor a directory", path)
	}
	return s, nil
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		err = errNoSource
	case errors.Is(err, unix.ELOOP):
		err = errLink
	}
	return fmt.Errorf("showing %s: %w", path, err)
}

// same reports whether both are one file.
func (s source) same(o source) bool { return s.dev == o.dev && s.ino == o.ino }
