package gitops

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fletch/sandbox"
	"fletch/state"
)

// Bounds on asking the remote for a newer base: a person waits for it.
const (
	askLimit   = 6 * time.Second
	fetchLimit = 2 * time.Minute
)

// Open makes an agent's workspace: a checkout of the freshest base, detached,
// that borrows its objects from the repository's pool, and the quarantine
// beside it. branch is where the agent may push, short ("fletch/amber-river").
// progress is told what is being done, in a few words; it may be nil.
//
// The base is read at the remote when that answers within a few seconds with
// the user's credentials; otherwise the local tip is taken and Base.Stale of
// the result says why. The checkout runs in a sandbox. When Open fails
// nothing of the workspace is left behind.
func (g Git) Open(ctx context.Context, src Source, agent state.AgentID, branch string, progress func(string)) (_ Source, err error) {
	if progress == nil {
		progress = func(string) {}
	}
	if err := checkID(agent); err != nil {
		return src, err
	}
	if err := checkBranch(branch); err != nil {
		return src, err
	}
	pool, err := g.pool(ctx, src, progress)
	if err != nil {
		return src, err
	}
	src.Base = g.freshen(ctx, pool, src, progress)
	tracked, tags, err := g.takenOver(ctx, pool, src)
	if err != nil {
		return src, err
	}
	shallow, err := pool.shallow()
	if err != nil {
		return src, fmt.Errorf("reading the pool: %w", err)
	}

	ws, q := g.Home.Workspace(string(agent)), g.Home.Quarantine(string(agent))
	for _, dir := range []string{ws, q} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return src, fmt.Errorf("making the workspace: %w", err)
		}
		defer func() {
			if err != nil {
				_ = g.discard(dir)
			}
		}()
	}
	r := record{
		Pool: pool.dir, Source: src.CommonDir, Format: src.Format, Remote: src.Remote, Base: src.Base,
		Protected: protected(src), Name: src.name, Email: src.email,
	}
	known := slices.Collect(maps.Values(tracked))
	if src.upstream != "" && src.Remote != "" && src.Base.Stale == "" {
		known = append(known, src.Base.Commit) // the remote said so just now
	}
	if err := g.makeQuarantine(agent, r, unique(known), shallow); err != nil {
		return src, fmt.Errorf("making the quarantine: %w", err)
	}
	if err := makeWorkspace(ws, r, src, branch, tracked, tags, shallow); err != nil {
		return src, fmt.Errorf("making the workspace: %w", err)
	}
	return src, g.checkout(ctx, agent, ws, pool, src, progress)
}

// protected lists the branches that no agent of this repository pushes to,
// besides main and master.
func protected(src Source) []string {
	all := []string{src.Base.Ref}
	if src.upstream != "" && src.upstream != src.Base.Ref {
		all = append(all, src.upstream)
	}
	return all
}

// freshen asks the remote for the base's branch and brings it into the pool.
// Whatever goes wrong, there is a base: the local one, and why it was taken.
func (g Git) freshen(ctx context.Context, p pool, src Source, progress func(string)) state.Base {
	base := src.Base
	stale := func(format string, args ...any) state.Base {
		base.Stale = oneLine(fmt.Sprintf(format, args...), 200)
		return base
	}
	if src.upstream == "" {
		return base // a tag or a commit: it does not move
	}
	if src.Remote == "" {
		return stale("%s", src.NoRemote)
	}
	progress("asking the remote for " + src.upstream)
	asking, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	ref := "refs/heads/" + src.upstream
	refs, _, err := g.list(asking, src.Remote, g.Creds, ref)
	if err != nil {
		return stale("the remote did not answer: %v", err)
	}
	there, ok := refs[ref]
	if !ok {
		return stale("the remote has no branch %s", src.upstream)
	}
	if there == base.Commit {
		_ = p.seen(src.Remote, there) // a convenience: without it a plan may ask once more
		return base
	}
	if err := g.fetchBase(ctx, p, src, there, progress); err != nil {
		return stale("the remote's %s could not be fetched: %v", there.Short(), err)
	}
	switch {
	case g.descends(ctx, p.dir, base.Commit, there):
		base.Commit = there
		return base
	case g.descends(ctx, p.dir, there, base.Commit):
		return stale("your %s has commits that the remote's does not have", base.Ref)
	default:
		return stale("your %s and the remote's have gone different ways; yours was taken", base.Ref)
	}
}

// fetchBase brings the remote's tip of the base's branch into the pool.
func (g Git) fetchBase(ctx context.Context, p pool, src Source, there state.Commit, progress func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	unlock, err := lockFile(ctx, strings.TrimSuffix(p.dir, ".git")+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if g.has(ctx, p.dir, there) {
		return p.seen(src.Remote, there)
	}
	progress("fetching " + src.upstream + " at " + there.Short())
	return g.fetchRemote(ctx, p.dir, src.Remote, g.Creds, there, "refs/heads/"+src.upstream, seenRefs(src.Remote)+"/"+string(there))
}

// descends reports whether to has from among its ancestors, in a repository
// of fletch's own that only host-owned objects are in.
func (g Git) descends(ctx context.Context, gitDir string, from, to state.Commit) bool {
	_, err := g.read(ctx, host{gitDir: gitDir, args: []string{"merge-base", "--is-ancestor", string(from), string(to)}})
	return err == nil
}

// takenOver lists what a workspace shows of the user's refs: what the remote
// is known to have, short branch name to commit, and the tags. Only commits
// that are in the pool count.
func (g Git) takenOver(ctx context.Context, p pool, src Source) (tracked, tags map[string]state.Commit, err error) {
	refs, err := g.onUser(src.GitDir).refs(ctx)
	if err != nil {
		return nil, nil, err
	}
	tracked, tags = map[string]state.Commit{}, map[string]state.Commit{}
	var ask strings.Builder
	for ref, id := range refs {
		if hasUnsafe(ref) {
			continue
		}
		if name, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
			tags[name] = id
			fmt.Fprintln(&ask, id)
		}
		for _, prefix := range src.tracked {
			if name, ok := strings.CutPrefix(ref, prefix); ok && name != "HEAD" {
				tracked[name] = id
				fmt.Fprintln(&ask, id)
			}
		}
	}
	out, err := g.read(ctx, host{gitDir: p.dir, args: []string{"cat-file", "--batch-check=%(objectname)", "--buffer"}, stdin: strings.NewReader(ask.String()), max: maxListing})
	if err != nil {
		return nil, nil, fmt.Errorf("looking through the pool: %w", err)
	}
	there := map[state.Commit]bool{}
	for line := range strings.SplitSeq(string(out), "\n") {
		there[state.Commit(line)] = true // "… missing" is no key anybody asks for
	}
	for _, m := range []map[string]state.Commit{tracked, tags} {
		maps.DeleteFunc(m, func(_ string, id state.Commit) bool { return !there[id] })
	}
	return tracked, tags, nil
}

// makeWorkspace writes the repository an agent gets. No git runs: the
// directory is new, and what is in it afterwards is the agent's.
func makeWorkspace(ws string, r record, src Source, branch string, tracked, tags map[string]state.Commit, shallow []byte) error {
	dir := filepath.Join(ws, ".git")
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	var refs strings.Builder
	if src.upstream != "" && src.Base.Stale == "" {
		tracked = maps.Clone(tracked)
		tracked[src.upstream] = src.Base.Commit
	}
	for _, name := range slices.Sorted(maps.Keys(tracked)) {
		fmt.Fprintf(&refs, "%s refs/remotes/origin/%s\n", tracked[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		fmt.Fprintf(&refs, "%s refs/tags/%s\n", tags[name], name)
	}
	files := map[string]string{
		"HEAD":                    string(r.Base.Commit) + "\n",
		"config":                  workspaceConfig(r, branch),
		"objects/info/alternates": filepath.Join(r.Pool, "objects") + "\n",
		"packed-refs":             refs.String(),
	}
	if len(shallow) > 0 {
		files["shallow"] = string(shallow)
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// workspaceConfig is the configuration an agent starts with: origin goes
// through fletch's remote helper, and a plain "git push" names the agent's
// own branch.
func workspaceConfig(r record, branch string) string {
	var b strings.Builder
	version := 0
	if r.Format == "sha256" {
		version = 1
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %d\n\tbare = false\n\tfilemode = true\n\tlogallrefupdates = true\n", version)
	if r.Format == "sha256" {
		b.WriteString("[extensions]\n\tobjectformat = sha256\n")
	}
	if r.Remote != "" {
		fmt.Fprintf(&b, "[remote \"origin\"]\n\turl = %s\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\tpush = HEAD:refs/heads/%s\n", configQuote("fletch::"+r.Remote), branch)
	}
	if r.Name != "" || r.Email != "" {
		b.WriteString("[user]\n")
		if r.Name != "" {
			fmt.Fprintf(&b, "\tname = %s\n", configQuote(r.Name))
		}
		if r.Email != "" {
			fmt.Fprintf(&b, "\temail = %s\n", configQuote(r.Email))
		}
	}
	b.WriteString("[push]\n\tdefault = simple\n[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n")
	return b.String()
}

// configQuote writes a value so that git reads exactly it, in a configuration
// and in a list of paths.
func configQuote(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\x00", "").Replace(s)
	return `"` + s + `"`
}

var checkoutLine = regexp.MustCompile(`Updating files:\s+(\d{1,3})%`)

// checkout writes the files, in a sandbox: a repository's attributes may ask
// for programs.
func (g Git) checkout(ctx context.Context, agent state.AgentID, ws string, p pool, src Source, progress func(string)) error {
	progress("checking out")
	return g.run(ctx, sealed{
		agent: agent, what: "checking out " + src.Base.Commit.Short(),
		argv: g.gitIn(ws, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
			"checkout", "--quiet", "--progress", "--force", "--detach", "--no-recurse-submodules", string(src.Base.Commit)),
		mounts: []sandbox.Mount{{Source: ws, Write: true}, {Source: filepath.Join(p.dir, "objects")}},
		errs:   &percent{tell: progress},
		limit:  10 * g.patience(), file: 64 << 30,
	})
}

// checkBranch keeps an agent's branch to names that read as nothing else, in
// git and anywhere it is shown.
func checkBranch(branch string) error {
	bad := !branchForm.MatchString(branch) || strings.Contains(branch, "..") || strings.Contains(branch, "//") ||
		strings.HasSuffix(branch, "/") || strings.HasSuffix(branch, ".") || strings.HasPrefix(branch, "refs/") || state.Commit(branch).Valid()
	for part := range strings.SplitSeq(branch, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "-") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		return fault("wrong-branch", "use letters a-z, digits, - and /", "%s is no name for an agent's branch", quote(branch))
	}
	return nil
}

var branchForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,100}$`)

// percent reads git's own progress and says it in a few words.
type percent struct {
	tell func(string)
	last int
}

func (p *percent) Write(b []byte) (int, error) {
	for _, m := range checkoutLine.FindAllSubmatch(b, -1) {
		if n, err := strconv.Atoi(string(m[1])); err == nil && n != p.last {
			p.last = n
			p.tell(fmt.Sprintf("checking out %d %%", n))
		}
	}
	return len(b), nil
}
