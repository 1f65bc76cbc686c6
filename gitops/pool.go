package gitops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"fletch/state"
)

// pool is a host-owned bare repository that agents borrow objects from. Its
// objects are hard links to the user's, so it costs no space and outlives a
// gc, a move or the removal of the user's repository. It is only ever added
// to, and sandboxes see its objects read-only.
type pool struct {
	dir    string
	format string
}

// maxAlternates is how deep a chain of borrowed object stores may be; git has
// the same limit.
const maxAlternates = 5

// pool returns the pool of a repository, made or completed so that it has
// the base. Several agents of one repository wait for each other here.
func (g Git) pool(ctx context.Context, s Source, progress func(string)) (pool, error) {
	key, err := storeKey(s)
	if err != nil {
		return pool{}, fmt.Errorf("preparing the pool: %w", err)
	}
	p := pool{dir: filepath.Join(g.Home.Pools(), key+".git"), format: s.Format}
	unlock, err := lockFile(ctx, filepath.Join(g.Home.Pools(), key+".lock"))
	if err != nil {
		return pool{}, fmt.Errorf("preparing the pool: %w", err)
	}
	defer unlock()
	if _, err := os.Lstat(filepath.Join(p.dir, "complete")); errors.Is(err, fs.ErrNotExist) {
		if err := p.fill(ctx, s, progress); err != nil {
			return pool{}, fmt.Errorf("preparing the pool: %w", err)
		}
	}
	if err := p.follow(s); err != nil {
		return pool{}, fmt.Errorf("preparing the pool: %w", err)
	}
	if !g.has(ctx, p.dir, s.Base.Commit) {
		progress("taking over new commits of yours")
		if err := g.fetchLocal(ctx, p, s); err != nil {
			return pool{}, fmt.Errorf("taking over %s: %w", s.Base.Commit.Short(), err)
		}
	}
	return p, p.keep(s.Base.Commit)
}

// keep names a commit that is in the pool, so that a fetch says that it is
// there and carries only what is new.
func (p pool) keep(c state.Commit) error { return p.note("refs/fletch/base", c) }

// seen names a commit that was seen at a remote: to publish it there again
// tells nobody anything.
func (p pool) seen(remote string, c state.Commit) error { return p.note(seenRefs(remote), c) }

func (p pool) note(refs string, c state.Commit) error {
	dir := filepath.Join(p.dir, filepath.FromSlash(refs))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, string(c)), []byte(c+"\n"), 0o600)
}

// seenRefs is where a pool names what was seen at a remote.
func seenRefs(remote string) string {
	sum := sha256.Sum256([]byte(remote))
	return "refs/fletch/remote/" + hex.EncodeToString(sum[:8])
}

// seenAt lists what was seen at a remote, by any agent of the pool.
func (p pool) seenAt(remote string) []state.Commit {
	entries, err := os.ReadDir(filepath.Join(p.dir, filepath.FromSlash(seenRefs(remote))))
	if err != nil {
		return nil // nothing was
	}
	var all []state.Commit
	for _, e := range entries {
		if c := state.Commit(e.Name()); c.Valid() {
			all = append(all, c)
		}
	}
	return all
}

// storeKey names a pool after the object store it is linked to: a repository
// that was put in another one's place gets another pool.
func storeKey(s Source) (string, error) {
	info, err := os.Stat(filepath.Join(s.CommonDir, "objects"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(s.CommonDir + "\x00" + s.Format + "\x00" + fileID(info)))
	return hex.EncodeToString(sum[:10]), nil
}

// fill makes the pool and links every object of the user's store, and of the
// stores that one borrows from, into it.
func (p pool) fill(ctx context.Context, s Source, progress func(string)) error {
	if err := makeBare(p.dir, p.format, ""); err != nil {
		return err
	}
	if err := p.follow(s); err != nil {
		return err
	}
	progress("linking your objects")
	l := linker{ctx: ctx, to: filepath.Join(p.dir, "objects"), progress: progress}
	if err := l.store(filepath.Join(s.CommonDir, "objects"), maxAlternates); err != nil {
		return err
	}
	done, err := os.OpenFile(filepath.Join(p.dir, "complete"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return done.Close()
}

// follow copies the list of commits whose parents a shallow repository does
// not have: without it they would count as missing.
func (p pool) follow(s Source) error {
	shallow, err := readSmall(filepath.Join(s.CommonDir, "shallow"), 4<<20)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Remove(filepath.Join(p.dir, "shallow"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, "shallow"), shallow, 0o600)
}

// shallow is that list; nil for a whole repository.
func (p pool) shallow() ([]byte, error) {
	data, err := readSmall(filepath.Join(p.dir, "shallow"), 4<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// linker brings objects into a pool.
type linker struct {
	ctx      context.Context
	to       string
	progress func(string)
	copying  bool // said already
	done     int
}

var (
	looseDir = regexp.MustCompile(`^[0-9a-f]{2}$`)
	loose    = regexp.MustCompile(`^([0-9a-f]{38}|[0-9a-f]{62})$`)
	packed   = regexp.MustCompile(`^pack-[0-9a-f]{40,64}\.(pack|idx|rev|bitmap|mtimes)$`)
)

// store links one object store and those it borrows from. A gc that moves
// objects meanwhile is met by looking again: what is gone is in a new pack.
func (l *linker) store(from string, depth int) error {
	var err error
	for range 3 {
		if err = l.once(from); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(from, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(string(list), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, `"`) {
			return fault("odd-alternates", "git repack -a -d && rm .git/objects/info/alternates", "the repository borrows objects from a path with odd bytes: %s", quote(line))
		}
		if depth == 0 {
			return fault("odd-alternates", "git repack -a -d", "the repository borrows objects over more than %d steps", maxAlternates)
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(from, line)
		}
		if _, err := os.Stat(line); err != nil {
			return fault("odd-alternates", "git fsck says what is missing", "the repository borrows objects from %s, which is not there", quote(line))
		}
		if err := l.store(line, depth-1); err != nil {
			return err
		}
	}
	return nil
}

func (l *linker) once(from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case looseDir.MatchString(name) && e.IsDir():
			if err := l.files(from, name, loose); err != nil {
				return err
			}
		case name == "pack" && e.IsDir():
			if err := l.files(from, name, packed); err != nil {
				return err
			}
		}
	}
	return nil
}

// files links the objects of one directory. An index without its pack is
// harmless, a pack without its index is not seen: so indexes come last.
func (l *linker) files(from, dir string, form *regexp.Regexp) error {
	entries, err := os.ReadDir(filepath.Join(from, dir))
	if err != nil || len(entries) == 0 {
		return err
	}
	if err := os.MkdirAll(filepath.Join(l.to, dir), 0o700); err != nil {
		return err
	}
	for _, last := range []bool{false, true} {
		for _, e := range entries {
			if !form.MatchString(e.Name()) || !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".idx") != last {
				continue
			}
			if err := l.ctx.Err(); err != nil {
				return err
			}
			if err := l.file(filepath.Join(from, dir, e.Name()), filepath.Join(l.to, dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *linker) file(from, to string) error {
	if l.done++; l.done%2000 == 0 {
		l.progress(fmt.Sprintf("linking your objects: %d", l.done))
	}
	err := os.Link(from, to)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return err
	}
	// Another file system, one without hard links, or a file of another
	// user's that the kernel does not let us link.
	if !l.copying {
		l.copying = true
		l.progress("copying your objects: they cannot be linked from here")
	}
	return copyFile(from, to)
}

// copyFile copies from to to, which appears only when it is whole.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(filepath.Dir(to), "tmp_link_*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o444), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}

// has reports whether a commit is in a repository of fletch's own.
func (g Git) has(ctx context.Context, gitDir string, c state.Commit) bool {
	_, err := g.read(ctx, host{gitDir: gitDir, args: []string{"cat-file", "-e", string(c) + "^{commit}"}})
	return err == nil
}

// fetchLocal brings the base from the user's repository into a pool that was
// linked before the base existed. Only what the base needs is taken, so that
// agents see no more of the user's work than they must.
func (g Git) fetchLocal(ctx context.Context, p pool, s Source) error {
	_, err := g.read(ctx, host{
		gitDir: p.dir, limit: 10 * g.patience(),
		env:    []string{"GIT_ALLOW_PROTOCOL=file", "GIT_PROTOCOL=version=2"},
		config: [][2]string{{"safe.directory", "*"}, {"fetch.unpackLimit", "1"}, {"transfer.unpackLimit", "1"}},
		args: []string{
			"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--update-shallow",
			"--", s.CommonDir, "+" + string(s.Base.Commit) + ":refs/fletch/base/" + string(s.Base.Commit),
		},
	})
	if err != nil {
		return err
	}
	if !g.has(ctx, p.dir, s.Base.Commit) {
		return errors.New("it did not arrive")
	}
	return nil
}
