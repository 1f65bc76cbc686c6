package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fletch/state"
)

// Source is a user's repository as an agent's workspace would be made from
// it. Inspect fills it; Open returns it with what it found out on top.
type Source struct {
	Repo      string // top of the work tree, or the git directory of a bare one; absolute
	GitDir    string // absolute; a linked worktree has one of its own
	CommonDir string // absolute; where objects and branches are
	Format    string // "sha1" or "sha256"
	// Remote is where agents of this repository may push, as CheckRemote
	// gives it; empty when there is none that can be used. NoRemote then
	// says why.
	Remote   string
	NoRemote string
	// Base is what an agent would start from. Inspect reads the local tip;
	// Open asks the remote for a fresher one.
	Base        state.Base
	Uncommitted int      // files that are changed or untracked in the work tree: they are not included
	Branches    []string // local branches, and remote ones as "origin/main"; names with odd bytes are left out

	upstream string   // the base's branch at the remote, short
	tracked  []string // prefixes of refs that record what Remote has: "refs/remotes/origin/"
	name     string   // of the user, from their configuration
	email    string
}

// inspectLimit bounds each question to the user's repository. Status reads
// every file of the work tree, so it gets the most.
const (
	inspectLimit = 20 * time.Second
	statusLimit  = 2 * time.Minute
)

// Inspect looks at the repository that repo lies in, without writing to it.
// base is a branch, a remote branch ("origin/main"), a tag or a full commit;
// empty takes what is checked out. It works for shallow and bare
// repositories, linked worktrees, SHA-256, and object stores that borrow from
// others. Errors for a person: [ErrNotRepository], [ErrNoCommits],
// [ErrPartialClone], [ErrNoSuchBase], [ErrOwnFiles].
func (g Git) Inspect(ctx context.Context, repo, base string) (Source, error) {
	var s Source
	if !filepath.IsAbs(repo) {
		return s, fault("not-a-repository", "fletch new --repo DIR", "%s is not an absolute path", quote(repo))
	}
	real, err := filepath.EvalSymlinks(repo)
	if err != nil {
		return s, fault("not-a-repository", "fletch new --repo DIR", "opening %s: %v", quote(repo), errors.Unwrap(err))
	}
	if inside(g.Home.Dir(), real) {
		return s, fault("fletchs-own", "fletch new --repo DIR", "%s is fletch's own: an agent can write there", quote(repo))
	}
	u := g.onUser(real)
	if err := s.locate(ctx, u, repo); err != nil {
		return s, err
	}
	for _, dir := range []string{s.Repo, s.GitDir, s.CommonDir} {
		if inside(g.Home.Dir(), dir) {
			return s, fault("fletchs-own", "fletch new --repo DIR", "%s belongs to a repository of fletch's own", quote(repo))
		}
	}
	if err := s.refusePartial(ctx, u); err != nil {
		return s, err
	}
	refs, err := u.refs(ctx)
	if err != nil {
		return s, err
	}
	s.Branches = branches(refs)
	if err := s.resolveBase(ctx, u, base, refs); err != nil {
		return s, err
	}
	s.resolveRemote(ctx, u)
	s.name, s.email = u.value(ctx, "user.name"), u.value(ctx, "user.email")
	s.Uncommitted, err = u.uncommitted(ctx, s.Repo == s.GitDir)
	return s, err
}

// userRepo asks questions of the user's repository in the user's own
// configuration.
type userRepo struct {
	git Git
	dir string
	env []string
}

func (g Git) onUser(dir string) userRepo {
	return userRepo{g, dir, g.Creds.environment()}
}

func (u userRepo) read(ctx context.Context, max int64, args ...string) ([]byte, error) {
	return u.git.read(ctx, host{dir: u.dir, user: u.env, args: args, max: max, limit: inspectLimit})
}

// line is read for one answer that ends with a line end, which may have line
// ends in it as well.
func (u userRepo) line(ctx context.Context, args ...string) (string, error) {
	out, err := u.read(ctx, 64<<10, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// value is one configuration value; empty when there is none.
func (u userRepo) value(ctx context.Context, key string) string {
	out, err := u.line(ctx, "config", "--get", key)
	if err != nil {
		return ""
	}
	return out
}

// locate finds the repository and what kind it is.
func (s *Source) locate(ctx context.Context, u userRepo, asked string) error {
	var said bytes.Buffer
	out, err := u.git.read(ctx, host{dir: u.dir, user: u.env, args: []string{"rev-parse", "--absolute-git-dir"}, limit: inspectLimit, errs: &said})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return fmt.Errorf("inspecting %s: %w", quote(asked), ctx.Err())
	case strings.Contains(said.String(), "dubious ownership"):
		return fault("not-a-repository", "git config --global --add safe.directory DIR, if you trust it",
			"%s belongs to another user, so git does not use it", quote(asked))
	case strings.Contains(said.String(), "not a git repository"):
		return fault("not-a-repository", "git init, or fletch new --repo DIR", "not a git repository: %s", shown(asked))
	default:
		return fault("not-a-repository", "git -C DIR status says more", "reading %s: %s", quote(asked), oneLine(said.String(), 300))
	}
	s.GitDir = strings.TrimSuffix(string(out), "\n")
	if s.CommonDir, err = u.line(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir"); err != nil {
		return fmt.Errorf("inspecting %s: %w", quote(asked), err)
	}
	if s.Format, err = u.line(ctx, "rev-parse", "--show-object-format"); err != nil {
		return fmt.Errorf("inspecting %s: %w", quote(asked), err)
	}
	if s.Format != "sha1" && s.Format != "sha256" {
		return fault("not-a-repository", "", "%s has objects of the unknown format %s", quote(asked), quote(s.Format))
	}
	s.Repo = s.GitDir
	if bare, err := u.line(ctx, "rev-parse", "--is-bare-repository"); err == nil && bare == "false" {
		if top, err := u.line(ctx, "rev-parse", "--show-toplevel"); err == nil && top != "" {
			s.Repo = top
		}
	}
	return nil
}

// shown shows a path as it is when nothing in it needs quoting.
func shown(path string) string {
	if hasUnsafe(path) || len(path) > 200 {
		return quote(path)
	}
	return path
}

// refusePartial refuses a clone that lacks objects it would fetch when they
// are needed: in a sandbox it cannot, and a checkout would silently miss
// files.
func (s *Source) refusePartial(ctx context.Context, u userRepo) error {
	out, err := u.read(ctx, 64<<10, "config", "--name-only", "--get-regexp", `^(extensions\.partialclone|remote\..*\.(promisor|partialclonefilter))$`)
	if err == nil && len(out) > 0 {
		return fault("partial-clone", "git fetch --refetch --no-filter && git config --unset-all remote.origin.promisor, or clone it anew without --filter",
			"%s is a partial clone: objects are missing that a sealed agent cannot fetch", quote(s.Repo))
	}
	return nil
}

// refs lists branches, remote branches and tags with what they point to.
func (u userRepo) refs(ctx context.Context) (map[string]state.Commit, error) {
	out, err := u.read(ctx, maxListing, "for-each-ref", fmt.Sprintf("--count=%d", maxRefs),
		"--format=%(objectname) %(refname)", "refs/heads", "refs/remotes", "refs/tags")
	if err != nil {
		return nil, fmt.Errorf("listing branches: %w", err)
	}
	all := map[string]state.Commit{}
	for line := range strings.SplitSeq(string(out), "\n") {
		id, name, ok := strings.Cut(line, " ")
		if ok && state.Commit(id).Valid() {
			all[name] = state.Commit(id)
		}
	}
	return all, nil
}

func branches(refs map[string]state.Commit) []string {
	var local, remote []string
	for ref := range refs {
		if hasUnsafe(ref) {
			continue
		}
		if name, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			local = append(local, name)
		}
		if name, ok := strings.CutPrefix(ref, "refs/remotes/"); ok && !strings.HasSuffix(name, "/HEAD") {
			remote = append(remote, name)
		}
	}
	slices.Sort(local)
	slices.Sort(remote)
	return append(local, remote...)
}

// resolveBase turns the asked base into a commit.
func (s *Source) resolveBase(ctx context.Context, u userRepo, base string, refs map[string]state.Commit) error {
	s.Base = state.Base{Ref: base, At: time.Now().UTC()}
	full := ""
	if base == "" {
		head, err := u.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault("no-commits", "git commit something first", "%s has no commits yet", quote(s.Repo))
		}
		s.Base.Commit = state.Commit(head)
		full, _ = u.line(ctx, "symbolic-ref", "--quiet", "HEAD") // detached: there is none
		s.Base.Ref = strings.TrimPrefix(full, "refs/heads/")
		if full == "" {
			s.Base.Ref = s.Base.Commit.Short()
		}
	} else {
		for _, prefix := range []string{"refs/heads/", "refs/remotes/", "refs/tags/"} {
			if _, ok := refs[prefix+base]; ok {
				full = prefix + base
				break
			}
		}
		name := full
		if name == "" && state.Commit(base).Valid() {
			name = base
			s.Base.Ref = state.Commit(base).Short()
		}
		id, err := "", error(nil)
		if name != "" {
			id, err = u.line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
		}
		if name == "" || err != nil {
			return noSuchBase(base, s.Branches)
		}
		s.Base.Commit = state.Commit(id)
	}
	if !s.Base.Commit.Valid() {
		return fmt.Errorf("reading the base: %s is no commit", quote(string(s.Base.Commit)))
	}
	s.findUpstream(ctx, u, full)
	return nil
}

func noSuchBase(base string, have []string) error {
	hint := "git branch -a lists them"
	if near := closest(base, have); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fault("no-such-base", hint, "there is no branch, tag or commit %s", quote(base))
}

// findUpstream finds the remote and the branch there that the base follows.
// s.tracked holds the remote's name until resolveRemote.
func (s *Source) findUpstream(ctx context.Context, u userRepo, full string) {
	if name, ok := strings.CutPrefix(full, "refs/heads/"); ok {
		remote := u.value(ctx, "branch."+name+".remote")
		merge := u.value(ctx, "branch."+name+".merge")
		s.upstream = name
		if remote != "" && remote != "." {
			s.tracked = []string{remote}
			if short, ok := strings.CutPrefix(merge, "refs/heads/"); ok {
				s.upstream = short
			}
		}
	}
	if name, ok := strings.CutPrefix(full, "refs/remotes/"); ok {
		// A remote's name may have a slash in it; the longest that fits is it.
		for _, remote := range u.remotes(ctx) {
			if short, ok := strings.CutPrefix(name, remote+"/"); ok && (len(s.tracked) == 0 || len(remote) > len(s.tracked[0])) {
				s.tracked, s.upstream = []string{remote}, short
			}
		}
	}
}

func (u userRepo) remotes(ctx context.Context) []string {
	out, err := u.read(ctx, 1<<20, "remote")
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

// resolveRemote pins where agents may push: the remote the base follows, else
// origin, else the only one there is. The user's own insteadOf is applied
// once, here.
func (s *Source) resolveRemote(ctx context.Context, u userRepo) {
	names := u.remotes(ctx)
	name := ""
	switch {
	case len(s.tracked) > 0 && slices.Contains(names, s.tracked[0]):
		name = s.tracked[0]
	case slices.Contains(names, "origin"):
		name = "origin"
	case len(names) == 1:
		name = names[0]
	}
	s.tracked = nil
	if name == "" || strings.HasPrefix(name, "-") {
		s.NoRemote = "the repository has no remote called origin"
		return
	}
	raw, err := u.line(ctx, "ls-remote", "--get-url", name)
	if err != nil {
		s.NoRemote = "the URL of " + quote(name) + " cannot be read"
		return
	}
	remote, err := CheckRemote(raw)
	if err != nil {
		s.NoRemote = err.Error()
		return
	}
	s.Remote, s.tracked = remote, []string{"refs/remotes/" + name + "/"}
}

// uncommitted counts the files a workspace would not have. Submodules are not
// looked into: git would obey their own configuration.
func (u userRepo) uncommitted(ctx context.Context, bare bool) (int, error) {
	if bare {
		return 0, nil
	}
	out, err := u.git.read(ctx, host{
		dir: u.dir, user: u.env, max: 256 << 20, limit: statusLimit,
		args: []string{"status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all", "--no-ahead-behind"},
	})
	if err != nil {
		return 0, fmt.Errorf("counting uncommitted files: %w", err)
	}
	return bytes.Count(out, []byte{0}), nil
}

// SourceGone reports whether a user's repository is no longer where it was.
// Agents go on without it: they borrow from the pool.
func (g Git) SourceGone(repo string) bool {
	info, err := os.Stat(repo)
	return err != nil || !info.IsDir()
}

// closest returns at most three names near to word, the nearest first.
func closest(word string, names []string) []string {
	type near struct {
		name string
		far  int
	}
	var all []near
	for _, name := range names {
		if len(name) > 100 || len(word) > 100 {
			continue
		}
		far := distance(strings.ToLower(word), strings.ToLower(name))
		if far <= max(2, len(word)/3) || strings.HasSuffix(name, "/"+word) || strings.HasPrefix(name, word) {
			all = append(all, near{name, far})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return a.far - b.far })
	var out []string
	for _, n := range all[:min(3, len(all))] {
		out = append(out, n.name)
	}
	return out
}

// distance is how many letters must be changed, put in or taken out to make b
// of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
