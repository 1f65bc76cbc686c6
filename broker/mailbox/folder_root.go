package mailbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// rootFolder is a directory on systems without openat2: os.Root keeps names
// inside, and a file is compared before and after opening. A link swapped in
// between is seen, not followed out.
type rootFolder struct{ root *os.Root }

func openRootFolder(path string) (folder, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &rootFolder{root}, nil
}

func (f *rootFolder) read(name string) ([]byte, time.Time, error) {
	seen, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, fs.ErrNotExist
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	if !plainFile(seen) || links(seen) != 1 {
		return nil, time.Time{}, unfit(nil)
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, time.Time{}, unfit(err)
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	if !os.SameFile(seen, before) || !plainFile(before) {
		return nil, time.Time{}, unfit(nil)
	}
	body, err := io.ReadAll(io.LimitReader(file, before.Size()+1))
	if err != nil {
		return nil, before.ModTime(), err
	}
	after, err := file.Stat()
	if err != nil {
		return nil, before.ModTime(), err
	}
	if int64(len(body)) != before.Size() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return nil, before.ModTime(), errors.New("it changes while it is read")
	}
	return body, before.ModTime(), nil
}

func (f *rootFolder) write(name string, body []byte) error {
	tmp := tmpName(name)
	if err := f.remove(tmp); err != nil {
		return err
	}
	file, err := f.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = f.root.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, f.remove(tmp))
	}
	return nil
}

func (f *rootFolder) remove(name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f *rootFolder) has(name string) bool {
	_, err := f.root.Lstat(name)
	return err == nil
}

func (f *rootFolder) changed() (time.Time, error) {
	info, err := f.root.Stat(".")
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Close lets go of the directory.
func (f *rootFolder) Close() error { return f.root.Close() }

func (f *rootFolder) list(keep func(string) bool, limit int) ([]string, bool, error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer dir.Close()
	return oldest(dir, keep, limit, func(name string) (time.Time, bool) {
		info, err := f.root.Lstat(name)
		if err != nil {
			return time.Time{}, false
		}
		return info.ModTime(), true
	})
}

// oldest reads dir piece by piece, so that its size is never held in memory,
// and sorts what keep wants by time, then by name.
func oldest(dir *os.File, keep func(string) bool, limit int, at func(string) (time.Time, bool)) ([]string, bool, error) {
	type entry struct {
		name string
		at   time.Time
	}
	var found []entry
	more := false
	for !more {
		names, err := dir.Readdirnames(512)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		for _, name := range names {
			if !keep(name) {
				continue
			}
			if len(found) == limit {
				more = true
				break
			}
			if t, ok := at(name); ok {
				found = append(found, entry{name, t})
			}
		}
	}
	slices.SortFunc(found, func(a, b entry) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	sorted := make([]string, 0, len(found))
	for _, e := range found {
		sorted = append(sorted, e.name)
	}
	return sorted, more, nil
}
