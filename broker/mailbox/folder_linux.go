package mailbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openFolder holds a directory by descriptor.
func openFolder(path string) (folder, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	// Where the kernel lacks openat2 nothing else is tried: there is no
	// other call that opens a name without following anything.
	probe, err := beneath(fd, ".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("opening %s by openat2 (Linux 5.6 or newer is needed): %w", path, err)
	}
	_ = unix.Close(probe)
	return &kernelFolder{fd: fd}, nil
}

// kernelFolder is a directory on Linux.
type kernelFolder struct{ fd int }

// beneath opens name inside dir without following a link of any kind,
// leaving dir, or waiting: not for a FIFO's other end, not for a lease.
func beneath(dir int, name string, flags uint64) (int, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK | unix.O_NOCTTY // openat2 refuses them together
	}
	for {
		fd, err := unix.Openat2(dir, name, &how)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// reach opens name in f. The agent owns its side of the directory and may
// take away the host's permissions on it; the host, the same user, takes them
// back once.
func (f *kernelFolder) reach(name string, flags uint64) (int, error) {
	fd, err := beneath(f.fd, name, flags)
	if errors.Is(err, unix.EACCES) && unix.Fchmod(f.fd, 0o700) == nil {
		fd, err = beneath(f.fd, name, flags)
	}
	return fd, err
}

func (f *kernelFolder) read(name string) ([]byte, time.Time, error) {
	fd, err := f.reach(name, unix.O_RDONLY)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, time.Time{}, fs.ErrNotExist
	case errors.Is(err, unix.EAGAIN):
		return nil, time.Time{}, err
	case err != nil: // a link, a socket, no permission
		return nil, time.Time{}, unfit(err)
	}
	defer func() { _ = unix.Close(fd) }()

	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return nil, time.Time{}, err
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG || before.Size > maxLetter || before.Nlink != 1 {
		return nil, time.Time{}, unfit(nil)
	}
	changed := time.Unix(before.Mtim.Unix())
	body := make([]byte, before.Size+1) // one more, to see it grow
	n := 0
	for n < len(body) {
		got, err := unix.Pread(fd, body[n:], int64(n))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, changed, err
		}
		if got == 0 {
			break
		}
		n += got
	}
	if err := unix.Fstat(fd, &after); err != nil {
		return nil, changed, err
	}
	if int64(n) != before.Size || after.Size != before.Size || after.Mtim != before.Mtim {
		return nil, changed, errors.New("it changes while it is read")
	}
	return body[:n], changed, nil
}

func (f *kernelFolder) write(name string, body []byte) error {
	tmp := tmpName(name)
	if err := f.remove(tmp); err != nil {
		return err
	}
	fd, err := unix.Openat(f.fd, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: tmp, Err: err}
	}
	file := os.NewFile(uintptr(fd), tmp)
	_, err = file.Write(body)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = unix.Renameat(f.fd, tmp, f.fd, name)
	}
	if err != nil {
		return errors.Join(err, f.remove(tmp))
	}
	return nil
}

func (f *kernelFolder) remove(name string) error {
	err := unix.Unlinkat(f.fd, name, 0)
	if errors.Is(err, unix.EACCES) && unix.Fchmod(f.fd, 0o700) == nil {
		err = unix.Unlinkat(f.fd, name, 0)
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		err = unix.Unlinkat(f.fd, name, unix.AT_REMOVEDIR)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func (f *kernelFolder) has(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func (f *kernelFolder) changed() (time.Time, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return time.Time{}, err
	}
	return time.Unix(st.Mtim.Unix()), nil
}

// Close lets go of the directory.
func (f *kernelFolder) Close() error { return unix.Close(f.fd) }

func (f *kernelFolder) list(keep func(string) bool, limit int) ([]string, bool, error) {
	fd, err := f.reach(".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, false, err
	}
	dir := os.NewFile(uintptr(fd), "requests")
	defer dir.Close()
	return oldest(dir, keep, limit, func(name string) (time.Time, bool) {
		var st unix.Stat_t
		err := unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		return time.Unix(st.Mtim.Unix()), err == nil
	})
}

// kernelNotices reads inotify.
type kernelNotices struct {
	file *os.File
	stop func() bool
	buf  [16 << 10]byte
}

// notices asks the kernel to tell of new files. A machine that has no
// inotify instance left is polled: that costs some work, never a message.
func (b *Box) notices(ctx context.Context) (notices, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return &poll{folder: b.requests}, nil //nolint:nilerr // said above
	}
	const mask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, b.watched, mask); err != nil {
		_ = unix.Close(fd)
		if errors.Is(err, unix.ENOSPC) {
			return &poll{folder: b.requests}, nil
		}
		return nil, &fs.PathError{Op: "watch", Path: b.watched, Err: err}
	}
	n := &kernelNotices{file: os.NewFile(uintptr(fd), "inotify")}
	n.stop = context.AfterFunc(ctx, func() { _ = n.file.Close() })
	return n, nil
}

// Close ends the notices.
func (n *kernelNotices) Close() error {
	if !n.stop() {
		return nil // ctx's end closed it
	}
	return n.file.Close()
}

func (n *kernelNotices) next(ctx context.Context, until time.Time) ([]string, bool, error) {
	if err := n.file.SetReadDeadline(until); err != nil {
		return nil, false, errors.Join(ctx.Err(), err)
	}
	size, err := n.file.Read(n.buf[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, errors.Join(ctx.Err(), err)
	}
	var names []string
	rescan := false
	for at := 0; at+unix.SizeofInotifyEvent <= size; {
		event := (*unix.InotifyEvent)(unsafe.Pointer(&n.buf[at])) //nolint:gosec // the kernel's layout
		at += unix.SizeofInotifyEvent
		name := strings.TrimRight(string(n.buf[at:at+int(event.Len)]), "\x00")
		at += int(event.Len)
		switch {
		case event.Mask&unix.IN_Q_OVERFLOW != 0:
			rescan = true
		case event.Mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
			return nil, false, errors.New("its requests directory went away")
		case name != "" && !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, rescan, nil
}
