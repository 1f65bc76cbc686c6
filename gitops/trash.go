package gitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"fletch/state"
)

// entryForm is the name of one removed agent in the trash: its id and when,
// in nanoseconds.
var entryForm = regexp.MustCompile(`^([a-z2-7]{8})-([0-9]{1,19})$`)

// Remove moves an agent's workspace and quarantine into the trash and returns
// the name of the entry there. Nothing is deleted, and no link is followed:
// all names are resolved from an open FLETCH_HOME. Whatever of the two is
// missing is left out.
func (g Git) Remove(_ context.Context, id state.AgentID) (entry string, err error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(g.Home.Dir())
	if err != nil {
		return "", fmt.Errorf("removing %s: %w", id, err)
	}
	defer func() { _ = root.Close() }()
	entry = string(id) + "-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	if err := root.Mkdir("trash/"+entry, 0o700); err != nil {
		return "", fmt.Errorf("removing %s: %w", id, err)
	}
	for _, part := range parts(id, entry) {
		if err := move(root, part.live, part.trashed); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", errors.Join(fmt.Errorf("removing %s: %w", id, err), g.putBack(root, id, entry))
		}
	}
	_ = root.Remove("quarantine/" + string(id) + ".git.lock") // it holds nothing
	return entry, nil
}

// Restore brings back what Remove put into entry. It refuses when something
// is in its place.
func (g Git) Restore(_ context.Context, entry string, id state.AgentID) error {
	m := entryForm.FindStringSubmatch(entry)
	if m == nil || m[1] != string(id) {
		return fmt.Errorf("restoring %s: %q is not its entry in the trash", id, entry)
	}
	root, err := os.OpenRoot(g.Home.Dir())
	if err != nil {
		return fmt.Errorf("restoring %s: %w", id, err)
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat("trash/" + entry); err != nil {
		return fmt.Errorf("restoring %s: %w", id, err)
	}
	if err := g.putBack(root, id, entry); err != nil {
		return fmt.Errorf("restoring %s: %w", id, err)
	}
	return nil
}

func (g Git) putBack(root *os.Root, id state.AgentID, entry string) error {
	for _, part := range parts(id, entry) {
		if err := move(root, part.trashed, part.live); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return root.Remove("trash/" + entry)
}

// Purge deletes what was removed before a time, for good. It returns how many
// entries went.
func (g Git) Purge(ctx context.Context, before time.Time) (int, error) {
	entries, err := os.ReadDir(g.Home.Trash())
	if err != nil {
		return 0, fmt.Errorf("emptying the trash: %w", err)
	}
	n := 0
	for _, e := range entries {
		m := entryForm.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		at, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil || !time.Unix(0, at).Before(before) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if err := g.discard(filepath.Join(g.Home.Trash(), e.Name())); err != nil {
			return n, fmt.Errorf("emptying the trash: %w", err)
		}
		n++
	}
	return n, nil
}

type part struct{ live, trashed string }

func parts(id state.AgentID, entry string) []part {
	return []part{
		{"workspaces/" + string(id), "trash/" + entry + "/workspace"},
		{"quarantine/" + string(id) + ".git", "trash/" + entry + "/quarantine.git"},
	}
}

// move renames a directory inside root to a name that must be free.
func move(root *os.Root, from, to string) error {
	info, err := root.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", from)
	}
	if _, err := root.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already", to)
	}
	return root.Rename(from, to)
}

// discard deletes a directory of fletch's with all that is in it, however
// deep, without following a link. What cannot be read is made readable first:
// an agent may take the rights from its own directories.
func (g Git) discard(dir string) error {
	rel, err := filepath.Rel(g.Home.Dir(), dir)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return fmt.Errorf("deleting %s: not inside %s", dir, g.Home.Dir())
	}
	root, err := os.OpenRoot(g.Home.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	err = root.RemoveAll(rel)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	inner, err := root.OpenRoot(rel)
	if err != nil {
		return err
	}
	_ = fs.WalkDir(inner.FS(), ".", func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = inner.Chmod(path, 0o700)
		}
		return nil
	})
	return errors.Join(inner.Close(), root.RemoveAll(rel))
}
