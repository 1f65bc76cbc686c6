package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fletch/sandbox"
	"fletch/state"
)

// snapshotScript makes a commit of the work tree as it is, in an index and an
// object directory of its own, so that the agent's repository does not
// change. It is fixed text: what the agent chose is in files, not in it.
// Fixed dates and names give equal trees equal commits. It prints HEAD (or
// "-") and the snapshot, which is HEAD when there is nothing to add.
const snapshotScript = `set -u
head=$("$GIT" -c safe.directory='*' rev-parse --verify --quiet 'HEAD^{commit}') || head=
git() { "$GIT" -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.bigFileThreshold=1m -c gc.auto=0 -c advice.addEmbeddedRepo=false "$@"; }
if [ -f .git/index ]; then cp .git/index "$GIT_INDEX_FILE" || exit 3; fi
git add --all --ignore-errors . >/dev/null 2>/dev/null
tree=$(git write-tree) || exit 4
if [ -n "$head" ]; then
	if [ "$(git rev-parse --verify --quiet "$head^{tree}")" = "$tree" ]; then printf '%s %s\n' "$head" "$head"; exit 0; fi
	commit=$(git commit-tree -p "$head" -m 'work that is not committed' "$tree") || exit 5
else
	commit=$(git commit-tree -m 'work that is not committed' "$tree") || exit 5
fi
printf '%s %s\n' "${head:--}" "$commit"
`

// Snapshot takes the workspace as it is, uncommitted and untracked files
// included, ignored ones not, into the quarantine, and returns the commit
// that holds it: HEAD itself when nothing is uncommitted. The agent's
// repository does not change. Errors: [ErrBroken], [ErrTimeout], [ErrQuota].
func (g Git) Snapshot(ctx context.Context, a state.Agent) (state.Commit, error) {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return "", err
	}
	_, snap, err := g.snapshot(ctx, q)
	return snap, err
}

// snapshot makes the commit and ingests it. head is empty when the workspace
// has no commit checked out.
func (g Git) snapshot(ctx context.Context, q quarantine) (head, snap state.Commit, err error) {
	id := string(q.agent)
	if err := os.MkdirAll(g.Home.Run(id), 0o700); err != nil {
		return "", "", fmt.Errorf("taking a snapshot: %w", err)
	}
	dir, err := os.MkdirTemp(g.Home.Run(id), "snapshot-")
	if err != nil {
		return "", "", fmt.Errorf("taking a snapshot: %w", err)
	}
	defer func() { _ = g.discard(dir) }()
	objects := filepath.Join(dir, "objects")
	if err := os.Mkdir(objects, 0o700); err != nil {
		return "", "", fmt.Errorf("taking a snapshot: %w", err)
	}
	ws := g.Home.Workspace(id)
	out, err := g.output(ctx, sealed{
		agent: q.agent, what: "taking a snapshot", dir: ws,
		argv: []string{"/bin/sh", "-c", snapshotScript},
		env: []string{
			"GIT=" + g.Path, "GIT_INDEX_FILE=/tmp/index", "GIT_OBJECT_DIRECTORY=" + objects,
			"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + configQuote(filepath.Join(ws, ".git", "objects")),
			"GIT_AUTHOR_NAME=fletch", "GIT_AUTHOR_EMAIL=snapshot@fletch.invalid", "GIT_AUTHOR_DATE=2000-01-01T00:00:00Z",
			"GIT_COMMITTER_NAME=fletch", "GIT_COMMITTER_EMAIL=snapshot@fletch.invalid", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z",
		},
		mounts: append(g.readWorkspace(q), sandbox.Mount{Source: objects, Write: true}),
	}, 256)
	var no *failed
	if errors.As(err, &no) {
		return "", "", fault("bad-workspace", "", "%v", err)
	}
	if err != nil {
		return "", "", err
	}
	first, second, ok := strings.Cut(strings.TrimSuffix(string(out), "\n"), " ")
	if !ok {
		return "", "", fault("bad-workspace", "", "the workspace gave no snapshot: %s", quote(string(out)))
	}
	if first != "-" {
		if head, err = q.commit([]byte(first)); err != nil {
			return "", "", err
		}
	}
	if snap, err = q.commit([]byte(second)); err != nil {
		return "", "", err
	}
	return head, snap, g.ingest(ctx, q, snap, snapRef, objects)
}

// Measure is the size of an agent's work against its base, uncommitted work
// included. What was measured last is remembered in the quarantine, so an
// unchanged workspace costs one sandbox.
func (g Git) Measure(ctx context.Context, a state.Agent) (state.Work, error) {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return state.Work{}, err
	}
	head, snap, err := g.snapshot(ctx, q)
	if err != nil {
		return state.Work{}, err
	}
	if m, ok := q.measured(); ok && m.Snap == snap && m.Work.Head == head {
		return m.Work, nil
	}
	work := state.Work{Head: head}
	if head != "" {
		work.Commits, err = g.number(ctx, q, span(head, []state.Commit{q.Base.Commit}), "rev-list", "--count", "--stdin")
		if err != nil {
			return state.Work{}, err
		}
	}
	files, err := g.changed(ctx, q, q.Base.Commit, snap)
	if err != nil {
		return state.Work{}, err
	}
	work.Files = len(files)
	for _, f := range files {
		work.Added += f.Added
		work.Removed += f.Removed
	}
	q.remember(measured{snap, work})
	return work, nil
}

// measured is what Measure found the last time.
type measured struct {
	Snap state.Commit `json:"snap"`
	Work state.Work   `json:"work"`
}

const measuredFile = "fletch-measured.json"

func (q quarantine) measured() (measured, bool) {
	var m measured
	data, err := readSmall(filepath.Join(q.dir, measuredFile), 64<<10)
	if err != nil || json.Unmarshal(data, &m) != nil {
		return m, false
	}
	return m, true
}

// remember is a convenience: when it does not work, the next measure counts
// again.
func (q quarantine) remember(m measured) {
	body, err := json.Marshal(m)
	if err != nil {
		return
	}
	name := filepath.Join(q.dir, measuredFile)
	file, err := os.CreateTemp(q.dir, measuredFile+".*")
	if err != nil {
		return
	}
	_, err = file.Write(body)
	if errors.Join(err, file.Close()) != nil || os.Rename(file.Name(), name) != nil {
		_ = os.Remove(file.Name())
	}
}
