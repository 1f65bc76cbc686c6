package gitops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"fletch/broker"
	"fletch/state"
)

// Push carries out what a person allowed, and nothing else: the one commit,
// to the one branch, if that is at the remote what it was when they looked.
// outcome says what happened in a line for people.
//
// Errors: [ErrMoved] when the branch is somewhere else, [ErrRefused] with the
// remote's words made safe, [ErrAuth], [ErrUnreachable], [ErrQuarantine]. A
// cancelled ctx may leave the push done or not done; [Git.Outcome] tells.
func (g Git) Push(ctx context.Context, grant broker.Grant, c Credentials) (outcome string, err error) {
	r, ok := grant.Request()
	if !ok {
		return "", errors.New("pushing: nobody allowed it")
	}
	return g.push(ctx, r, c)
}

func (g Git) push(ctx context.Context, r state.Request, c Credentials) (string, error) {
	p := r.Plan
	if p.Hash() != r.PlanHash || r.Agent != p.Agent {
		return "", errors.New("pushing: the request is not about its plan")
	}
	q, err := g.quarantine(p.Agent)
	if err != nil {
		return "", err
	}
	branch, ok := strings.CutPrefix(p.Ref, "refs/heads/")
	if !ok {
		return "", fault("wrong-branch", "", "%s is no branch", quote(p.Ref))
	}
	if err := q.destination(branch, p.Ref); err != nil {
		return "", err
	}
	if p.Remote != q.Remote {
		return "", fault("bad-remote", "", "the request is about another remote than this agent's")
	}
	for _, id := range []state.Commit{p.Commit, p.Old} {
		if id != "" && !id.Valid() {
			return "", fmt.Errorf("pushing: %q is no commit", string(id))
		}
	}
	// The lease makes git refuse unless the branch is exactly at Old; it is
	// also what lets a forced push through, so there is no other force.
	out, said, err := g.talk(ctx, reach{
		remote: p.Remote, creds: c, gitDir: q.dir,
		args: []string{
			"push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "--no-signed",
			"--force-with-lease=" + p.Ref + ":" + string(p.Old),
			"--", p.Remote, string(p.Commit) + ":" + p.Ref,
		},
	})
	if err := pushed(p, string(out), said, err); err != nil {
		return "", err
	}
	refs, _, err := g.list(ctx, p.Remote, c, p.Ref)
	if err != nil {
		return "", fmt.Errorf("pushed, but the remote does not confirm it: %w", err)
	}
	if refs[p.Ref] != p.Commit {
		return "", fault("remote-moved", "look at the remote", "%s took the push and has now %s at %s", p.Remote, first(string(refs[p.Ref]), "nothing"), branch)
	}
	words := fmt.Sprintf("%s is now %s", branch, p.Commit.Short())
	if remote := remoteWords(said); remote != "" {
		words += "; the remote says: " + remote
	}
	return words, nil
}

// pushed reads git's report of one ref. err is what git itself ended with.
func pushed(p state.Plan, out, said string, err error) error {
	for line := range strings.SplitSeq(out, "\n") {
		fields := strings.SplitN(line, "\t", 3)
		if len(fields) != 3 || !strings.HasSuffix(fields[1], ":"+p.Ref) {
			continue
		}
		switch fields[0] {
		case " ", "*", "+", "=":
			if err != nil {
				return err
			}
			return nil
		case "!":
			why := oneLine(fields[2], 300)
			if strings.Contains(why, "stale info") || strings.Contains(why, "fetch first") || strings.Contains(why, "non-fast-forward") ||
				strings.Contains(why, "cannot lock ref") || strings.Contains(why, "failed to update ref") && strings.Contains(said, "but expected") {
				return fault("remote-moved", "push again: what it would replace is looked at anew", "%s is not at the remote what it was: %s", oneLine(p.Ref, 120), why)
			}
			words := why
			if remote := remoteWords(said); remote != "" {
				words += ": " + remote
			}
			return fault("remote-refused", "", "the remote refused: %s", words)
		}
	}
	if err != nil {
		return err
	}
	return fault("remote-refused", "", "git does not say what became of the push: %s", oneLine(said, 300))
}

// remoteWords picks what the remote itself wrote: lines that git marks so.
func remoteWords(said string) string {
	var words []string
	for line := range strings.SplitSeq(strings.ReplaceAll(said, "\r", "\n"), "\n") {
		if text, ok := strings.CutPrefix(line, "remote:"); ok {
			if text = oneLine(text, 200); text != "" {
				words = append(words, text)
			}
		}
	}
	return oneLine(strings.Join(words, " "), 600)
}

// Where says where a request's branch is at the remote.
type Where string

// The closed set of places a branch can be at.
const (
	AtCommit  Where = "at-commit" // it was pushed
	AtOld     Where = "at-old"    // it was not: the branch is what it was, or is still not there
	Elsewhere Where = "elsewhere" // somebody else moved it
)

// Outcome looks up what became of a request that was allowed and has no
// outcome on record. Errors are those of RemoteRefs; then nothing is known.
func (g Git) Outcome(ctx context.Context, a state.Agent, r state.Request, c Credentials) (Where, error) {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return "", err
	}
	if r.Agent != a.ID || r.Plan.Remote != q.Remote {
		return "", fault("bad-remote", "", "the request is about another remote than this agent's")
	}
	refs, _, err := g.list(ctx, r.Plan.Remote, c, r.Plan.Ref)
	if err != nil {
		return "", err
	}
	switch refs[r.Plan.Ref] {
	case r.Plan.Commit:
		return AtCommit, nil
	case r.Plan.Old:
		return AtOld, nil
	}
	return Elsewhere, nil
}
