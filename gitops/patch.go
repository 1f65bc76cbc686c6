package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fletch/state"
)

// Patch is what a person reads before they decide about p: its commits with
// their messages, then the difference between the base and the commit. When
// earlier commits carry contents that the last one does not have, each
// commit's own difference follows. Text is bounded to 8 MiB, files over 5 MB
// are left out; Omitted names all that is.
func (g Git) Patch(ctx context.Context, a state.Agent, p state.Plan) (state.Patch, error) {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return state.Patch{}, err
	}
	if p.Agent != a.ID {
		return state.Patch{}, fmt.Errorf("showing a plan: it belongs to agent %q", string(p.Agent))
	}
	patch, err := g.patch(ctx, q, p.Base, p.Commit)
	if err != nil {
		return state.Patch{}, err
	}
	patch.Commits = p.Commits
	if len(p.Commits) == maxCommits {
		patch.Omitted = append(patch.Omitted, fmt.Sprintf("commits: only the newest %d are listed", maxCommits))
	}
	if slices.ContainsFunc(p.Flags, func(f state.Flag) bool { return f.Name == "hidden" }) {
		err = g.eachCommit(ctx, q, &patch)
	}
	return patch, err
}

// Changes is an agent's work against its base as it is now, uncommitted files
// included, in the same form and with the same bounds as Patch.
func (g Git) Changes(ctx context.Context, a state.Agent) (state.Patch, error) {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return state.Patch{}, err
	}
	head, snap, err := g.snapshot(ctx, q)
	if err != nil {
		return state.Patch{}, err
	}
	patch, err := g.patch(ctx, q, q.Base.Commit, snap)
	if err != nil || head == "" {
		return patch, err
	}
	patch.Head = head
	patch.Commits, err = g.commits(ctx, q, head, []state.Commit{q.Base.Commit})
	return patch, err
}

// patch is the difference between two commits of the quarantine, as text.
func (g Git) patch(ctx context.Context, q quarantine, base, c state.Commit) (state.Patch, error) {
	p := state.Patch{Base: base, Head: c}
	all, err := g.changed(ctx, q, base, c)
	if err != nil || len(all) == 0 {
		return p, err
	}
	sizes, _, err := g.sizes(ctx, q, blobs(all))
	if err != nil {
		return p, err
	}
	p.Files = files(all)
	renames := "--find-renames"
	for _, f := range all {
		if size := max(sizes[f.oldBlob], sizes[f.newBlob]); size > maxShown {
			renames = "--no-renames"
			p.Omitted = append(p.Omitted, fmt.Sprintf("%s: %s, too large to show", shown(f.path), human(size)))
		}
	}
	out, err := g.diffText(ctx, q, maxDiff, nil, renames, string(base), string(c), "--")
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return p, err
	}
	if err != nil {
		whole := bytes.LastIndex(out, []byte("\ndiff --git ")) + 1
		out = out[:whole]
		if left := len(all) - bytes.Count(out, []byte("\ndiff --git ")) - min(1, len(out)); left > 0 {
			p.Omitted = append(p.Omitted, fmt.Sprintf("%s: the diff is longer than %d MiB", count(left, "more file"), maxDiff>>20))
		}
	}
	p.Diff = valid(string(out))
	return p, nil
}

// eachCommit adds what every commit changes by itself, oldest first, each
// after a line "commit ID".
func (g Git) eachCommit(ctx context.Context, q quarantine, p *state.Patch) error {
	var ids []state.Commit
	for _, c := range slices.Backward(p.Commits) {
		ids = append(ids, c.ID)
	}
	room := maxDiff - len(p.Diff)
	out, err := g.diffText(ctx, q, int64(max(0, room)), ids, "--no-renames", "--root", "--diff-merges=first-parent", "--stdin", "--format=commit %H")
	if errors.Is(err, ErrTooLarge) {
		out = out[:bytes.LastIndex(out, []byte("\ndiff --git "))+1]
		p.Omitted = append(p.Omitted, fmt.Sprintf("earlier commits: together with the rest they are longer than %d MiB", maxDiff>>20))
		err = nil
	}
	if err != nil {
		return err
	}
	p.Diff += valid(string(out))
	return nil
}

// diffText runs one textual diff. Nothing of the tree is obeyed and no
// program is started for it.
func (g Git) diffText(ctx context.Context, q quarantine, most int64, stdin []state.Commit, args ...string) ([]byte, error) {
	argv := append([]string{
		"diff-tree", "-r", "-p", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
		"--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", "--ignore-submodules=none", "-l1000",
	}, args...)
	return g.onQuarantine(ctx, q, "writing the diff", list(stdin), most, argv...)
}

// human is a size for people.
func human(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	default:
		return strings.TrimSpace(fmt.Sprintf("%d bytes", n))
	}
}
