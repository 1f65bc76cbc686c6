package gitops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fletch/state"
)

// Ask is what an agent wants to push, in its own words.
type Ask struct {
	Commit state.Commit
	Ref    string // full: "refs/heads/fletch/amber-river"
	Force  bool   // it said --force; used only when the branch needs it
}

// Plan works out exactly what a push would publish. It takes the commit into
// the quarantine if it is not there yet, and reads the remote's branches, so
// that Old is what the remote has now. When the remote has the commit on that
// branch already, the plan has Old == Commit and nothing else.
//
// The destination is the agent's own branch and no other; the base, the
// default branch, main and master are refused whatever the agent is called.
// Errors: [ErrNoRemote], [ErrWrongBranch], [ErrNotForward], [ErrTooLarge],
// those of Ingest and those of RemoteRefs.
func (g Git) Plan(ctx context.Context, a state.Agent, ask Ask, c Credentials) (state.Plan, error) {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return state.Plan{}, err
	}
	if q.Remote == "" {
		return state.Plan{}, errNoRemote()
	}
	if err := q.destination(a.Branch, ask.Ref); err != nil {
		return state.Plan{}, err
	}
	if _, err := q.commit([]byte(ask.Commit)); err != nil {
		return state.Plan{}, err
	}
	there, head, err := g.list(ctx, q.Remote, c)
	if err != nil {
		return state.Plan{}, err
	}
	if strings.EqualFold(head, ask.Ref) {
		return state.Plan{}, fault("wrong-branch", "", "%s is the default branch of %s", oneLine(ask.Ref, 120), q.Remote)
	}
	p := state.Plan{
		Agent: a.ID, Remote: q.Remote, Ref: ask.Ref, Commit: ask.Commit,
		Base: q.Base.Commit, BaseRef: q.Base.Ref, Old: there[ask.Ref],
	}
	if p.Old == p.Commit {
		return p, nil
	}
	if q.ref(headRef) != ask.Commit {
		if err := g.ingest(ctx, q, ask.Commit, headRef, ""); err != nil {
			return state.Plan{}, err
		}
	}
	known, here, err := g.commitsHere(ctx, q, p, there)
	if err != nil {
		return state.Plan{}, err
	}
	if !here[ask.Commit] {
		return state.Plan{}, fault("bad-workspace", "", "%s is no commit", ask.Commit)
	}
	if err := g.moves(ctx, q, &p, here[p.Old], ask.Force, c); err != nil {
		return state.Plan{}, err
	}
	return p, g.contents(ctx, q, &p, known)
}

// destination holds an agent to its own branch.
func (q quarantine) destination(branch, ref string) error {
	if err := checkBranch(branch); err != nil {
		return err
	}
	own := "refs/heads/" + branch
	if ref != own {
		return fault("wrong-branch", "git push origin HEAD:"+own, "this agent pushes to %s only, not to %s", branch, quote(ref))
	}
	for _, name := range append([]string{"main", "master", "head"}, q.Protected...) {
		if strings.EqualFold(name, branch) {
			return fault("wrong-branch", "start the agent under another name", "%s is never pushed to by an agent", branch)
		}
	}
	return nil
}

// moves finds out what the push does to the remote's branch: whether it is
// new, goes forward, or replaces commits. here says that the commit it is at
// is in the quarantine.
func (g Git) moves(ctx context.Context, q quarantine, p *state.Plan, here, force bool, c Credentials) error {
	if p.Old == "" {
		return nil
	}
	if !here {
		// Somebody else pushed to the branch; their commits are needed to
		// say what would be lost.
		if err := g.fetchRemote(ctx, q.dir, q.Remote, c, p.Old, p.Ref, "refs/fletch/old"); err != nil {
			return err
		}
	}
	forward, err := g.ancestor(ctx, q, p.Old, p.Commit)
	if err != nil || forward {
		return err
	}
	if !force {
		return fault("non-fast-forward", "git pull first, or git push --force, which asks for it",
			"%s has commits that %s does not have", oneLine(p.Ref, 120), p.Commit.Short())
	}
	p.Force = true
	p.Replaces, err = g.number(ctx, q, span(p.Old, []state.Commit{p.Commit}), "rev-list", "--count", "--stdin")
	return err
}

// ancestor reports whether to has from among its ancestors.
func (g Git) ancestor(ctx context.Context, q quarantine, from, to state.Commit) (bool, error) {
	_, err := g.onQuarantine(ctx, q, "comparing histories", nil, 1024, "merge-base", "--is-ancestor", string(from), string(to))
	var no *failed
	if errors.As(err, &no) && no.code == 1 {
		return false, nil
	}
	return err == nil, err
}

// contents fills in what leaves: commits, files, objects, and what a person
// should know about them.
func (g Git) contents(ctx context.Context, q quarantine, p *state.Plan, known []state.Commit) error {
	out, err := g.onQuarantine(ctx, q, "listing what would be pushed", span(p.Commit, known), maxNeed, "rev-list", "--stdin", "--objects", "--no-object-names")
	if err != nil {
		return err
	}
	var need []state.Commit
	for line := range strings.Lines(string(out)) {
		need = append(need, state.Commit(strings.TrimSuffix(line, "\n")))
	}
	need = unique(need)
	p.Need = needHash(need)

	f := findings{q: q, plan: p, need: need}
	if f.sizes, f.kinds, err = g.sizes(ctx, q, need); err != nil {
		return err
	}
	if p.Commits, err = g.commits(ctx, q, p.Commit, known); err != nil {
		return err
	}
	if f.files, err = g.changed(ctx, q, p.Base, p.Commit); err != nil {
		return err
	}
	p.Files = files(f.files)
	for _, file := range p.Files {
		p.Added += file.Added
		p.Removed += file.Removed
	}
	if f.private, err = g.private(ctx, q, need, f.kinds); err != nil {
		return err
	}
	if f.descends, err = g.ancestor(ctx, q, p.Base, p.Commit); err != nil {
		return err
	}
	if f.pointers, err = g.pointers(ctx, q, f.files, f.sizes); err != nil {
		return err
	}
	p.Flags = f.flags()
	return nil
}

func needHash(need []state.Commit) string {
	sum := sha256.New()
	for _, id := range need {
		fmt.Fprintln(sum, id)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// commitsHere looks up which commits are in the quarantine. known are those of
// them that the remote has: it says so now, it was on record when the
// workspace was made, or another agent of the pool was told. What is not here
// is left out; it can exclude nothing.
func (g Git) commitsHere(ctx context.Context, q quarantine, p state.Plan, there map[string]state.Commit) (known []state.Commit, here map[state.Commit]bool, err error) {
	if known, err = q.known(); err != nil {
		return nil, nil, fmt.Errorf("opening the quarantine: %w", err)
	}
	known = append(known, pool{dir: q.Pool}.seenAt(q.Remote)...)
	known = unique(append(known, slices.Collect(maps.Values(there))...))
	known = known[:min(len(known), maxRefs)]
	ask := append(slices.Clone(known), p.Commit)
	if p.Old != "" {
		ask = append(ask, p.Old)
	}
	_, kinds, err := g.sizes(ctx, q, unique(ask))
	if err != nil {
		return nil, nil, err
	}
	here = map[state.Commit]bool{}
	for id, kind := range kinds {
		here[id] = kind == "commit"
	}
	return slices.DeleteFunc(known, func(c state.Commit) bool { return !here[c] }), here, nil
}

// private picks from need what was in the user's repository before the agent
// made it, and is not at the remote as far as is known: it would be
// published with the agent's work. An agent can read the whole pool, so it
// can make any commit of the user's a parent of its own.
//
// The user's own store is asked and not the quarantine, which has whatever
// the agent sent.
func (g Git) private(ctx context.Context, q quarantine, need []state.Commit, kinds map[state.Commit]string) ([]state.Commit, error) {
	theirs := map[state.Commit]bool{}
	stores := []string{q.Pool}
	if !g.SourceGone(q.Source) && !inside(g.Home.Dir(), q.Source) {
		stores = append(stores, q.Source)
	}
	for _, store := range stores {
		out, err := g.read(ctx, host{
			gitDir: store, stdin: list(need), max: maxNeed, limit: g.patience(),
			config: [][2]string{{"safe.directory", "*"}},
			args:   []string{"cat-file", "--batch-check=%(objectname)", "--buffer"},
		})
		if err != nil {
			return nil, fmt.Errorf("looking for commits of yours: %w", err)
		}
		for line := range strings.SplitSeq(string(out), "\n") {
			if c := state.Commit(line); c.Valid() { // "ID missing" is not
				theirs[c] = true
			}
		}
	}
	var commits, others []state.Commit
	for _, id := range need {
		switch {
		case !theirs[id] || empty(id):
		case kinds[id] == "commit":
			commits = append(commits, id)
		default:
			others = append(others, id)
		}
	}
	if len(commits) > 0 || len(others) == 0 {
		return commits, nil
	}
	// An agent that takes back a change makes a file that was there before:
	// it is in the base's history and no secret.
	out, err := g.onQuarantine(ctx, q, "listing the base's history", span(q.Base.Commit, nil), 4*maxNeed, "rev-list", "--stdin", "--objects", "--no-object-names")
	if err != nil {
		return nil, err
	}
	before := map[state.Commit]bool{}
	for line := range strings.Lines(string(out)) {
		before[state.Commit(strings.TrimSuffix(line, "\n"))] = true
	}
	return slices.DeleteFunc(others, func(id state.Commit) bool { return before[id] }), nil
}

// empty reports whether an object is the empty file or the empty directory,
// in either format: everybody has those.
func empty(id state.Commit) bool {
	switch id {
	case "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
		"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
		"6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321":
		return true
	}
	return false
}
