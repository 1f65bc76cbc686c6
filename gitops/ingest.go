package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fletch/sandbox"
	"fletch/state"
)

// Refs of a quarantine that an ingest fills.
const (
	headRef = "a/head" // what the agent committed
	snapRef = "a/snap" // with what it did not commit on top
)

// Head asks the workspace which commit is checked out. The answer is the
// agent's word until Ingest took that commit over. Errors: [ErrUnborn],
// [ErrBroken], [ErrTimeout].
func (g Git) Head(ctx context.Context, a state.Agent) (state.Commit, error) {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return "", err
	}
	out, err := g.output(ctx, sealed{
		agent: a.ID, what: "reading the workspace's HEAD",
		argv:   g.gitIn(g.Home.Workspace(string(a.ID)), "rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}"),
		mounts: g.readWorkspace(q),
	}, 256)
	var no *failed
	if errors.As(err, &no) {
		if strings.HasSuffix(no.Error(), ": ") {
			return "", fault("no-head", "", "the workspace has no commit checked out")
		}
		return "", fault("bad-workspace", "", "%v", err)
	}
	if err != nil {
		return "", err
	}
	return q.commit(out)
}

// commit reads one full object name that a workspace printed.
func (q quarantine) commit(out []byte) (state.Commit, error) {
	c := state.Commit(strings.TrimSuffix(string(out), "\n"))
	if !c.Valid() || (len(c) == 64) != (q.Format == "sha256") {
		return "", fault("bad-workspace", "", "the workspace names %s, which is no commit", quote(string(out)))
	}
	return c, nil
}

// readWorkspace shows a workspace as nothing but files to read, and the
// objects it borrows.
func (g Git) readWorkspace(q quarantine) []sandbox.Mount {
	return []sandbox.Mount{
		{Source: g.Home.Workspace(string(q.agent))},
		{Source: filepath.Join(q.Pool, "objects")},
	}
}

// Ingest takes commit c, and all it needs, from the agent's workspace into
// the quarantine. Every object is hashed again and checked on the way; c in
// the quarantine is what its name says. It does nothing when c is there
// already. Errors: [ErrBroken], [ErrTimeout], [ErrQuota].
func (g Git) Ingest(ctx context.Context, a state.Agent, c state.Commit) error {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return err
	}
	if _, err := q.commit([]byte(c)); err != nil {
		return err
	}
	return g.ingest(ctx, q, c, headRef, "")
}

// ingest brings c to refs/fletch/<into>. objects is a directory with more
// objects of the workspace, or empty.
func (g Git) ingest(ctx context.Context, q quarantine, c state.Commit, into, objects string) error {
	unlock, err := lockFile(ctx, q.dir+".lock")
	if err != nil {
		return fmt.Errorf("ingesting %s: %w", c.Short(), err)
	}
	defer unlock()
	if q.ref(into) == c {
		return nil
	}
	if err := g.transfer(ctx, q, c, into, objects); err != nil {
		return err
	}
	// A workspace that says it is shallow makes fetch succeed and change
	// nothing: only the ref tells whether the commit came.
	if got := q.ref(into); got != c {
		return fault("bad-workspace", "", "the workspace did not give commit %s: it has no complete history of it", c.Short())
	}
	return nil
}

// transfer joins two sandboxes: in one, upload-pack reads the workspace; in
// the other, fetch fills the quarantine. Neither sees what the other has.
// Between them fletch counts bytes and time.
func (g Git) transfer(ctx context.Context, q quarantine, c state.Commit, into, objects string) error {
	limited, stop := context.WithTimeoutCause(ctx, g.patience(), fault("workspace-hangs", "", "the workspace did not give commit %s within %s", c.Short(), g.patience()))
	defer stop()
	limited, cancel := context.WithCancelCause(limited)
	defer cancel(nil)

	fromWorkspace, toFetch, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("ingesting %s: %w", c.Short(), err)
	}
	fromFetch, toWorkspace, err := oneWay()
	if err != nil {
		return errors.Join(fmt.Errorf("ingesting %s: %w", c.Short(), err), fromWorkspace.Close(), toFetch.Close())
	}

	// upload-pack ends when the fetch's end of the pipe closes, and the
	// other way round: each one's ends are closed as it ends.
	var upload error
	var uploading sync.WaitGroup
	uploading.Go(func() {
		defer func() { _, _ = toFetch.Close(), fromFetch.Close() }()
		counted := &meter{to: toFetch, left: g.quota(), over: func() {
			cancel(fault("over-quota", "", "the workspace sent more than %d MB for commit %s", g.quota()/1e6, c.Short()))
		}}
		upload = g.run(limited, g.uploadPack(q, objects, fromFetch, counted))
	})
	fetch := g.run(limited, g.fetchFrom(q, c, into, fromWorkspace, toWorkspace))
	_, _ = fromWorkspace.Close(), toWorkspace.Close()
	if fetch != nil {
		// What the fetch left unread would keep upload-pack from ending.
		grace := time.AfterFunc(2*time.Second, func() { cancel(errors.New("the fetch ended")) })
		defer grace.Stop()
	}
	uploading.Wait()

	cause := context.Cause(limited)
	var known *Fault
	switch {
	case fetch == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("ingesting %s: %w", c.Short(), ctx.Err())
	case errors.As(cause, &known):
		return known
	case upload != nil:
		return fault("bad-workspace", "", "taking over %s: %v (%v)", c.Short(), fetch, upload)
	}
	return fault("bad-workspace", "", "taking over %s: %v", c.Short(), fetch)
}

// uploadPack is the sending side: it sees the workspace and the pool, and
// can write nothing.
func (g Git) uploadPack(q quarantine, objects string, in io.Reader, out io.Writer) sealed {
	s := sealed{
		agent: q.agent, what: "reading the workspace",
		argv: []string{
			g.Path, "-c", "safe.directory=*", "-c", "uploadpack.allowAnySHA1InWant=true", "-c", "core.hooksPath=/dev/null",
			"upload-pack", "--strict", "--timeout=60", filepath.Join(g.Home.Workspace(string(q.agent)), ".git"),
		},
		mounts: g.readWorkspace(q), stdin: in, stdout: out,
	}
	if objects != "" {
		s.mounts = append(s.mounts, sandbox.Mount{Source: objects})
		s.env = []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + configQuote(objects)}
	}
	return s
}

// fetchFrom is the receiving side: it sees the quarantine, the pool, and the
// two descriptors that lead to the sender. The path in its command line is
// never opened.
func (g Git) fetchFrom(q quarantine, c state.Commit, into string, in, out *os.File) sealed {
	self, err := filepath.EvalSymlinks(g.Self) // mounts follow no links
	if err != nil {
		self = g.Self
	}
	return sealed{
		agent: q.agent, what: "filling the quarantine",
		argv: g.gitOn(q.dir,
			"-c", "fetch.fsckObjects=true", "-c", "fetch.unpackLimit=1", "-c", "transfer.unpackLimit=1",
			"-c", "core.bigFileThreshold=1m", "-c", "core.logAllRefUpdates=false", "-c", "fetch.writeCommitGraph=false",
			"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
			"--upload-pack="+shellQuote(self)+" internal upload-pack",
			"--", "/workspace", "+"+string(c)+":refs/fletch/"+into),
		env:    []string{"GIT_ALLOW_PROTOCOL=file"},
		mounts: append(q.writable(), sandbox.Mount{Source: self}),
		keep:   []*os.File{in, out},
	}
}

// meter passes bytes on until there were too many.
type meter struct {
	to   io.Writer
	left int64
	over func()
}

func (m *meter) Write(p []byte) (int, error) {
	if m.left -= int64(len(p)); m.left < 0 {
		m.over()
		return 0, errFull
	}
	return m.to.Write(p)
}

// UploadPack is "fletch internal upload-pack PATH": what git starts in the
// quarantine's sandbox in place of an upload-pack. It joins standard input
// and output to the descriptors 3 (from the workspace's upload-pack) and 4
// (to it). PATH is ignored. The result is the process's exit code.
func UploadPack(args []string) int {
	if len(args) > 1 {
		return 2
	}
	from, to := os.NewFile(3, "from the workspace"), os.NewFile(4, "to the workspace")
	if from == nil || to == nil {
		return 2
	}
	go func() {
		_, _ = io.Copy(to, os.Stdin)
		hangUp(to)
	}()
	if _, err := io.Copy(os.Stdout, from); err != nil {
		return 1
	}
	return 0
}
