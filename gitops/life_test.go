package gitops

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fletch/gitops/gittest"
	"fletch/home"
	"fletch/state"
)

// fixture is a user's repository with a remote behind a password, and one
// agent of it.
type fixture struct {
	t      testing.TB
	git    Git
	creds  Credentials
	repo   string
	bare   string // the remote's directory
	remote string
	src    Source
	agent  state.Agent
}

const token = "s3cr3t-T0ken/with+odd=chars"

// setup makes everything but the agent.
func setup(t testing.TB, files map[string]string) *fixture {
	t.Helper()
	f := &fixture{t: t}
	forge := t.TempDir()
	f.repo = gittest.Repo(t, files)
	url := gittest.Serve(t, forge, "ada", token)
	f.remote = url + "/shop.git"
	f.bare = gittest.Remote(t, forge, "shop", f.repo, f.remote)
	f.creds = Credentials{Env: gittest.Login(t, "ada", token)}
	f.git = newGit(t)
	f.git.Creds = f.creds
	return f
}

func newGit(t testing.TB) Git {
	t.Helper()
	path := gittest.Path(t)
	// A test's own directory carries its name, which may be too long for a
	// socket.
	dir, err := os.MkdirTemp("", "gitops")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := home.Open(filepath.Join(dir, "h"), dir)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Git{Home: h, Engine: sealer(t), Self: self, Path: path, Store: "test", Patience: time.Minute}
}

// open starts the agent's workspace.
func (f *fixture) open() *fixture {
	f.t.Helper()
	return f.openAs("abcdefgh", "fletch/amber-river")
}

func (f *fixture) openAs(id state.AgentID, branch string) *fixture {
	f.t.Helper()
	src, err := f.git.Inspect(f.t.Context(), f.repo, "")
	if err != nil {
		f.t.Fatal(err)
	}
	f.src, err = f.git.Open(f.t.Context(), src, id, branch, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.agent = state.Agent{
		ID: id, Repo: f.src.Repo, Remote: f.src.Remote, Branch: branch, Base: f.src.Base,
		Workspace: f.git.Home.Workspace(string(id)),
	}
	return f
}

// commit makes a commit in the workspace, as the agent.
func (f *fixture) commit(script string) state.Commit {
	f.t.Helper()
	return state.Commit(f.inSandbox(script + "\ngit add -A; git commit -q --allow-empty -m work; git rev-parse HEAD"))
}

func (f *fixture) plan(c state.Commit, force bool) (state.Plan, error) {
	f.t.Helper()
	return f.git.Plan(f.t.Context(), f.agent, Ask{Commit: c, Ref: "refs/heads/" + f.agent.Branch, Force: force}, f.creds)
}

func (f *fixture) mustPlan(c state.Commit, force bool) state.Plan {
	f.t.Helper()
	p, err := f.plan(c, force)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *fixture) push(p state.Plan) (string, error) {
	f.t.Helper()
	return f.git.push(f.t.Context(), state.Request{ID: "1", Agent: f.agent.ID, Plan: p, PlanHash: p.Hash()}, f.creds)
}

func (f *fixture) mustPush(p state.Plan) {
	f.t.Helper()
	if _, err := f.push(p); err != nil {
		f.t.Fatal(err)
	}
}

// at is where a branch is at the remote.
func (f *fixture) at(branch string) string {
	f.t.Helper()
	out, err := gittest.Try(f.t, f.bare, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return out
}

func wantFlag(t testing.TB, p state.Plan, name, text string) {
	t.Helper()
	for _, f := range p.Flags {
		if f.Name == name {
			if f.Text != text {
				t.Errorf("flag %s says %q, want %q", name, f.Text, text)
			}
			return
		}
	}
	t.Errorf("no flag %s in %v", name, p.Flags)
}

func TestWorkGoesFromCloneToRemote(t *testing.T) {
	t.Parallel()
	f := setup(t, map[string]string{"README.md": "# shop\n", "src/cart.go": "package cart\n"}).open()

	if f.src.Base.Stale != "" || f.src.Remote != f.remote {
		t.Fatalf("opened %+v", f.src)
	}
	if got := f.inSandbox("git status --porcelain; git rev-parse HEAD; git config user.email; git config remote.origin.url; git config remote.origin.push; git symbolic-ref -q HEAD || echo detached; cat src/cart.go"); got !=
		string(f.src.Base.Commit)+"\nada@example.com\nfletch::"+f.remote+"\nHEAD:refs/heads/fletch/amber-river\ndetached\npackage cart" {
		t.Fatalf("the workspace is\n%s", got)
	}
	head := f.commit("echo 'func Add() {}' >> src/cart.go; echo new > 'a b.txt'")
	if got, err := f.git.Head(t.Context(), f.agent); err != nil || got != head {
		t.Fatalf("head %s, %v; want %s", got, err, head)
	}
	work, err := f.git.Measure(t.Context(), f.agent)
	if err != nil || work != (state.Work{Head: head, Commits: 1, Files: 2, Added: 2}) {
		t.Fatalf("measured %+v, %v", work, err)
	}
	if err := f.git.Ingest(t.Context(), f.agent, head); err != nil {
		t.Fatal(err)
	}
	p := f.mustPlan(head, false)
	if p.Old != "" || p.Force || len(p.Flags) != 0 || p.Added != 2 || len(p.Commits) != 1 || p.Commits[0].Subject != "work" || len(p.Files) != 2 {
		t.Fatalf("planned %+v", p)
	}
	patch, err := f.git.Patch(t.Context(), f.agent, p)
	if err != nil || len(patch.Omitted) > 0 || !strings.Contains(patch.Diff, "+func Add() {}") || len(patch.Files) != 2 {
		t.Fatalf("patch %+v, %v", patch, err)
	}
	if f.at("fletch/amber-river") != "" {
		t.Fatal("something was published before it was pushed")
	}
	outcome, err := f.push(p)
	if err != nil || f.at("fletch/amber-river") != string(head) {
		t.Fatalf("pushed %q, %v; the remote has %q", outcome, err, f.at("fletch/amber-river"))
	}
	where, err := f.git.Outcome(t.Context(), f.agent, state.Request{Agent: f.agent.ID, Plan: p}, f.creds)
	if err != nil || where != AtCommit {
		t.Fatalf("outcome %s, %v", where, err)
	}
	if p, err := f.plan(head, false); err != nil || p.Old != head {
		t.Fatalf("planning it again gives %+v, %v", p, err)
	}

	next := f.commit("echo more >> README.md")
	p = f.mustPlan(next, false)
	if p.Old != head || p.Force || len(p.Commits) != 1 {
		t.Fatalf("planned %+v", p)
	}
	f.mustPush(p)
}

func TestForceReplacesOnlyWhatThePersonSaw(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	first := f.commit("echo 1 > a")
	f.mustPush(f.mustPlan(first, false))
	f.commit("echo 2 > a")
	second := state.Commit(f.inSandbox("git reset -q --hard HEAD~2; echo 3 > b; git add -A; git commit -q -m other; git rev-parse HEAD"))

	if _, err := f.plan(second, false); !errors.Is(err, ErrNotForward) {
		t.Fatalf("planned without force: %v", err)
	}
	p := f.mustPlan(second, true)
	if !p.Force || p.Replaces != 1 || p.Old != first {
		t.Fatalf("planned %+v", p)
	}
	wantFlag(t, p, "force", "FORCE replaces 1 commit")

	// Somebody else pushes to the branch while the person reads.
	other := filepath.Join(t.TempDir(), "other")
	gittest.Run(t, "/", "clone", "--quiet", "--branch=fletch/amber-river", f.bare, other)
	theirs := gittest.Commit(t, other, "theirs", map[string]string{"c": "c"})
	gittest.Run(t, other, "push", "--quiet", "origin", "HEAD")
	if _, err := f.push(p); !errors.Is(err, ErrMoved) {
		t.Fatalf("pushed over somebody else's commit: %v", err)
	}
	if f.at("fletch/amber-river") != theirs {
		t.Fatal("somebody else's commit is gone")
	}
	where, err := f.git.Outcome(t.Context(), f.agent, state.Request{Agent: f.agent.ID, Plan: p}, f.creds)
	if err != nil || where != Elsewhere {
		t.Fatalf("outcome %s, %v", where, err)
	}
	p = f.mustPlan(second, true)
	if p.Replaces != 2 || string(p.Old) != theirs {
		t.Fatalf("planned %+v", p)
	}
	f.mustPush(p)
	if f.at("fletch/amber-river") != string(second) {
		t.Fatal("it was not pushed")
	}
}

func TestAPushGoesToTheAgentsOwnBranchOnly(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	head := f.commit("echo 1 > a")
	for _, ref := range []string{
		"refs/heads/main", "refs/heads/fletch/other", "refs/tags/v1", "fletch/amber-river", "", "HEAD",
		"refs/heads/fletch/amber-river:refs/heads/main", "+refs/heads/fletch/amber-river", "refs/heads/fletch/amber-river\n", "--mirror",
	} {
		if _, err := f.git.Plan(t.Context(), f.agent, Ask{Commit: head, Ref: ref, Force: true}, f.creds); !errors.Is(err, ErrWrongBranch) {
			t.Errorf("planned a push to %q: %v", ref, err)
		}
	}
	for _, branch := range []string{"main", "Main", "master", "-x", "a..b", "a//b", "x.lock", "refs/heads/main", strings.Repeat("a", 40)} {
		a := f.agent
		a.Branch = branch
		if _, err := f.git.Plan(t.Context(), a, Ask{Commit: head, Ref: "refs/heads/" + branch}, f.creds); !errors.Is(err, ErrWrongBranch) {
			t.Errorf("planned a push to an agent's branch %q: %v", branch, err)
		}
	}
	if f.at("main") != string(f.src.Base.Commit) {
		t.Error("main moved")
	}
}

func TestNothingIsPushedWithoutAGrant(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	head := f.commit("echo 1 > a")
	p := f.mustPlan(head, false)
	r := state.Request{ID: "1", Agent: f.agent.ID, Plan: p, PlanHash: p.Hash()}
	r.Plan.Commit = f.src.Base.Commit
	if _, err := f.git.push(t.Context(), r, f.creds); err == nil {
		t.Error("pushed another commit than the plan's hash is about")
	}
	other := p
	other.Ref = "refs/heads/main"
	if _, err := f.push(other); !errors.Is(err, ErrWrongBranch) {
		t.Errorf("pushed to main: %v", err)
	}
	other = p
	other.Remote = strings.Replace(p.Remote, "shop", "evil", 1)
	if _, err := f.push(other); !errors.Is(err, ErrRemote) {
		t.Errorf("pushed to another remote: %v", err)
	}
	if out := gittest.Run(t, f.bare, "for-each-ref", "--format=%(refname)"); out != "refs/heads/main" {
		t.Errorf("the remote has %s", out)
	}
}

func TestSnapshotHasUncommittedWorkAndLeavesNoTrace(t *testing.T) {
	t.Parallel()
	f := setup(t, map[string]string{"a": "1\n", ".gitignore": "ignored\n"}).open()
	f.inSandbox("echo 2 > a; printf 'x\\0y' > bin; mkdir d; echo new > 'd/new file'; echo no > ignored; git add d")
	before := f.inSandbox("find .git | sort; cat .git/index | cksum; git status --porcelain")
	patch, err := f.git.Changes(t.Context(), f.agent)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range patch.Files {
		names = append(names, file.Path)
	}
	if !slices.Equal(names, []string{"a", "bin", "d/new file"}) || !strings.Contains(patch.Diff, "+2") || patch.Head != f.src.Base.Commit {
		t.Errorf("changes are %v of %s:\n%s", names, patch.Head, patch.Diff)
	}
	if after := f.inSandbox("find .git | sort; cat .git/index | cksum; git status --porcelain"); after != before {
		t.Errorf("the agent's repository changed:\n%s\n%s", before, after)
	}
	one, err1 := f.git.Snapshot(t.Context(), f.agent)
	two, err2 := f.git.Snapshot(t.Context(), f.agent)
	if err1 != nil || err2 != nil || one != two || one == f.src.Base.Commit {
		t.Errorf("two snapshots of one state: %s %v, %s %v", one, err1, two, err2)
	}
	left, _ := filepath.Glob(filepath.Join(f.git.Home.Run("abcdefgh"), "*"))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRemovedWorkComesBack(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	head := f.commit("echo 1 > a")
	entry, err := f.git.Remove(t.Context(), f.agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(f.agent.Workspace); !os.IsNotExist(err) {
		t.Fatal("the workspace is still there")
	}
	if err := f.git.Restore(t.Context(), entry, "ijklmnop"); err == nil {
		t.Fatal("restored as another agent")
	}
	if err := f.git.Restore(t.Context(), "../workspaces", f.agent.ID); err == nil {
		t.Fatal("restored from outside the trash")
	}
	if err := f.git.Restore(t.Context(), entry, f.agent.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := f.git.Head(t.Context(), f.agent); err != nil || got != head {
		t.Fatalf("head %s, %v", got, err)
	}
	if _, err = f.git.Remove(t.Context(), f.agent.ID); err != nil {
		t.Fatal(err)
	}
	if n, err := f.git.Purge(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	if n, err := f.git.Purge(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
}

func TestACancelledOpenLeavesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	src, err := f.git.Inspect(t.Context(), f.repo, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = f.git.Open(ctx, src, "abcdefgh", "fletch/x", func(text string) {
		if text == "checking out" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("opened: %v", err)
	}
	for _, dir := range []string{f.git.Home.Workspace("abcdefgh"), f.git.Home.Quarantine("abcdefgh")} {
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left behind", dir)
		}
	}
}

func agentID(s string) state.AgentID { return state.AgentID(s) }
