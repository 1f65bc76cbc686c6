package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fletch/state"
)

// change is one changed path with the objects on both sides.
type change struct {
	state.PlanFile
	path    string // the raw bytes
	oldMode string
	oldBlob state.Commit // all zeros: none
	newBlob state.Commit
}

// tooMany refuses a tree that no person can be shown. It is asked before any
// diff, since a tree of a few objects can name a billion paths and a diff
// would try to hold them all.
func (g Git) tooMany(ctx context.Context, q quarantine, base, c state.Commit) error {
	before, err := g.countBase(ctx, q, base)
	if err != nil {
		return err
	}
	_, err = g.countPaths(ctx, q, c, before+maxFiles)
	return err
}

// countBase is countPaths of the base, which never changes, so it is counted
// once and written down.
func (g Git) countBase(ctx context.Context, q quarantine, base state.Commit) (int, error) {
	note := filepath.Join(q.dir, "fletch-paths")
	if base == q.Base.Commit {
		if data, err := readSmall(note, 32); err == nil {
			if n, err := strconv.Atoi(string(data)); err == nil && n >= 0 {
				return n, nil
			}
		}
	}
	n, err := g.countPaths(ctx, q, base, 10_000_000)
	if err == nil && base == q.Base.Commit {
		_ = os.WriteFile(note, []byte(strconv.Itoa(n)), 0o600) // a convenience
	}
	return n, err
}

// countPaths counts the files of a commit, and gives up beyond most.
func (g Git) countPaths(ctx context.Context, q quarantine, c state.Commit, most int) (int, error) {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	n := &counter{most: most, full: cancel}
	err := g.run(stop, sealed{
		agent: q.agent, argv: g.gitOn(q.dir, "ls-tree", "-r", "-z", "--name-only", string(c)), mounts: q.mounts(),
		stdout: n, what: "counting files",
	})
	if n.n > most {
		return n.n, fault("too-large", "split it into smaller steps", "it adds more than %d files, which nobody can look through", maxFiles)
	}
	return n.n, err
}

// counter counts zero bytes, and fails beyond most.
type counter struct {
	n, most int
	full    func()
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += bytes.Count(p, []byte{0})
	if c.n > c.most {
		c.full()
		return 0, errFull
	}
	return len(p), nil
}

// changed lists what differs between two commits of the quarantine, with
// line counts. More than 20,000 paths are refused with [ErrTooLarge].
func (g Git) changed(ctx context.Context, q quarantine, base, c state.Commit) ([]change, error) {
	if base == c {
		return nil, nil
	}
	if err := g.tooMany(ctx, q, base, c); err != nil {
		return nil, err
	}
	all, err := g.rawDiff(ctx, q, base, c, "--find-renames", "-l1000")
	var no *failed
	if errors.As(err, &no) {
		// Looking for renames reads files whole: with large ones it runs
		// into the sandbox's limits.
		all, err = g.rawDiff(ctx, q, base, c, "--no-renames")
	}
	if err == nil && len(all) > maxFiles {
		err = fault("too-large", "split it into smaller steps", "it changes %d files, which nobody can look through", len(all))
	}
	return all, err
}

// blobs are the objects on both sides of changes.
func blobs(all []change) []state.Commit {
	var ids []state.Commit
	for _, f := range all {
		for _, id := range []state.Commit{f.oldBlob, f.newBlob} {
			if strings.Trim(string(id), "0") != "" {
				ids = append(ids, id)
			}
		}
	}
	return unique(ids)
}

// rawDiff runs one diff of two trees. No text of the tree is obeyed: the
// repository is bare, and neither programs nor conversions are asked for.
func (g Git) rawDiff(ctx context.Context, q quarantine, base, c state.Commit, options ...string) ([]change, error) {
	args := append([]string{"diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"}, options...)
	out, err := g.onQuarantine(ctx, q, "comparing with the base", nil, maxListing, append(args, string(base), string(c), "--")...)
	if err != nil {
		return nil, err
	}
	return parseRaw(out)
}

// parseRaw reads "diff-tree -z --raw --numstat": all raw records, then all
// counts, in one order.
func parseRaw(out []byte) ([]change, error) {
	broken := fmt.Errorf("comparing with the base: git's list of changes is malformed")
	fields := bytes.Split(out, []byte{0})
	next := func() (string, bool) {
		if len(fields) == 0 {
			return "", false
		}
		f := string(fields[0])
		fields = fields[1:]
		return f, true
	}
	var all []change
	for len(fields) > 0 && bytes.HasPrefix(fields[0], []byte(":")) {
		head, _ := next()
		parts := strings.Fields(head[1:])
		if len(parts) != 5 || parts[4] == "" {
			return nil, broken
		}
		f := change{oldMode: parts[0], oldBlob: state.Commit(parts[2]), newBlob: state.Commit(parts[3])}
		f.Mode, f.Change = parts[1], parts[4][:1]
		path, ok := next()
		if f.Change == "R" || f.Change == "C" {
			f.Old = valid(path)
			path, ok = next()
		}
		if !ok {
			return nil, broken
		}
		f.path, f.Path = path, valid(path)
		all = append(all, f)
	}
	for i := range all {
		counts, ok := next()
		added, rest, ok2 := strings.Cut(counts, "\t")
		removed, path, ok3 := strings.Cut(rest, "\t")
		if !ok || !ok2 || !ok3 {
			return nil, broken
		}
		if path == "" { // a rename: the two paths follow
			_, _ = next()
			if path, ok = next(); !ok {
				return nil, broken
			}
		}
		if path != all[i].path {
			return nil, broken
		}
		f := &all[i]
		if added == "-" {
			f.Binary = true
			continue
		}
		var err1, err2 error
		f.Added, err1 = strconv.Atoi(added)
		f.Removed, err2 = strconv.Atoi(removed)
		if err1 != nil || err2 != nil {
			return nil, broken
		}
	}
	return all, nil
}

// sizes asks for the size and the kind of objects; those that are not there
// are left out.
func (g Git) sizes(ctx context.Context, q quarantine, ids []state.Commit) (map[state.Commit]int64, map[state.Commit]string, error) {
	sizes, kinds := map[state.Commit]int64{}, map[state.Commit]string{}
	if len(ids) == 0 {
		return sizes, kinds, nil
	}
	out, err := g.onQuarantine(ctx, q, "looking at object sizes", list(ids), maxNeed, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", "--buffer")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.SplitSeq(string(out), "\n") {
		parts := strings.Fields(line)
		if len(parts) != 3 {
			continue // "ID missing"
		}
		size, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("looking at object sizes: %w", err)
		}
		sizes[state.Commit(parts[0])], kinds[state.Commit(parts[0])] = size, parts[1]
	}
	return sizes, kinds, nil
}

// list writes object names one a line, as git reads them.
func list(ids []state.Commit) io.Reader {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(string(id))
		b.WriteByte('\n')
	}
	return strings.NewReader(b.String())
}

// files is what a plan keeps of changes.
func files(all []change) []state.PlanFile {
	out := make([]state.PlanFile, 0, len(all))
	for _, f := range all {
		out = append(out, f.PlanFile)
	}
	return out
}

// valid makes the agent's bytes valid UTF-8 and nothing else.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// commits reads commits with their messages, newest first, at most
// maxCommits: those that can be reached from tip and from none of without.
func (g Git) commits(ctx context.Context, q quarantine, tip state.Commit, without []state.Commit) ([]state.PlanCommit, error) {
	out, err := g.onQuarantine(ctx, q, "reading commits", span(tip, without), 64<<20, "rev-list", "--stdin", "--no-commit-header",
		fmt.Sprintf("--max-count=%d", maxCommits), "--format=%H%x00%P%x00%an%x00%ae%x00%s%x00%B%x00%x01")
	if err != nil {
		return nil, err
	}
	return parseCommits(out)
}

// span is what rev-list reads for "from tip, not from without".
func span(tip state.Commit, without []state.Commit) io.Reader {
	var b strings.Builder
	b.WriteString(string(tip) + "\n")
	for _, c := range without {
		b.WriteString("^" + string(c) + "\n")
	}
	return strings.NewReader(b.String())
}

// number runs a git that prints one number.
func (g Git) number(ctx context.Context, q quarantine, stdin io.Reader, args ...string) (int, error) {
	out, err := g.onQuarantine(ctx, q, "counting commits", stdin, 64, args...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return 0, fmt.Errorf("counting commits: %w", err)
	}
	return n, nil
}

// parseCommits reads the records of commits. A zero byte cannot be in a
// commit, so it parts the fields for certain.
func parseCommits(out []byte) ([]state.PlanCommit, error) {
	var all []state.PlanCommit
	fields := strings.Split(string(out), "\x00")
	for len(fields) >= 7 {
		id := strings.TrimPrefix(fields[0], "\x01")
		id = strings.TrimLeft(id, "\n")
		c := state.PlanCommit{
			ID: state.Commit(id), Author: clip(fields[2], 500), Email: clip(fields[3], 500),
			Subject: clip(fields[4], 2000), Message: clip(strings.TrimRight(fields[5], "\n"), maxMessage),
		}
		for _, p := range strings.Fields(fields[1]) {
			c.Parents = append(c.Parents, state.Commit(p))
		}
		if !c.ID.Valid() || slices.ContainsFunc(c.Parents, func(p state.Commit) bool { return !p.Valid() }) {
			return nil, fmt.Errorf("reading commits: git's list of commits is malformed")
		}
		all = append(all, c)
		fields = fields[6:]
	}
	return all, nil
}

// clip makes text valid and bounds it, and says so when it cut.
func clip(s string, max int) string {
	s = valid(s)
	if len(s) <= max {
		return s
	}
	return valid(s[:max]) + "\n[fletch: cut here, " + strconv.Itoa(len(s)-max) + " bytes more]"
}
