package gitops

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fletch/gitops/gittest"
	"fletch/state"
)

// hinted is what a person is shown of an error.
type hinted interface {
	Hint() string
	Code() string
}

func TestInspectSaysWhatIsWrongAndTheWayOut(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.Creds = Credentials{Env: gittest.Login(t, "ada", "x")}
	empty := t.TempDir()
	unborn := t.TempDir()
	gittest.Run(t, unborn, "init", "--quiet")
	whole := gittest.Repo(t, nil)
	gittest.Run(t, whole, "branch", "feature/login")
	gittest.Run(t, whole, "config", "uploadpack.allowFilter", "true")
	partial := filepath.Join(t.TempDir(), "partial")
	gittest.Run(t, "/", "clone", "--quiet", "--filter=blob:none", "file://"+whole, partial)
	own := filepath.Join(g.Home.Workspaces(), "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	gittest.Init(t, own, nil)
	redirected := t.TempDir()
	if err := os.WriteFile(filepath.Join(redirected, ".git"), []byte("gitdir: "+own+"/.git\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name, repo, base string
		want             error
		hint             string
	}{
		{"no repository", empty, "", ErrNotRepository, "git init"},
		{"nothing there", filepath.Join(empty, "none"), "", ErrNotRepository, "--repo"},
		{"a relative path", "repo", "", ErrNotRepository, "--repo"},
		{"no commits", unborn, "", ErrNoCommits, "commit"},
		{"a partial clone", partial, "", ErrPartialClone, "filter"},
		{"a near miss", whole, "feature/logni", ErrNoSuchBase, "feature/login"},
		{"an option", whole, "--all", ErrNoSuchBase, ""},
		{"a revision", whole, "main~1", ErrNoSuchBase, "main"},
		{"an unknown commit", whole, strings.Repeat("a", 40), ErrNoSuchBase, ""},
		{"an agent's workspace", own, "", ErrOwnFiles, ""},
		{"a link into one", redirected, "", ErrOwnFiles, ""},
	} {
		_, err := g.Inspect(t.Context(), c.repo, c.base)
		var h hinted
		if !errors.Is(err, c.want) || !errors.As(err, &h) || !strings.Contains(h.Hint(), c.hint) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if strings.ContainsAny(err.Error()+h.Hint(), "\n\x1b") {
			t.Errorf("%s: more than one line: %q", c.name, err)
		}
	}
}

func TestEveryShapeOfRepositoryCanBeWorkedOn(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.Creds = Credentials{Env: gittest.Login(t, "ada", "x")}
	ids := []string{"aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd", "eeeeeeee", "ffffffff", "gggggggg", "hhhhhhhh"}
	origin := gittest.Repo(t, map[string]string{"a": "1\n"})
	gittest.Commit(t, origin, "second", map[string]string{"a": "2\n"})
	in := func(name string) string { return filepath.Join(t.TempDir(), name) }

	shallow := in("shallow")
	gittest.Run(t, "/", "clone", "--quiet", "--depth=1", "file://"+origin, shallow)
	bareRepo := in("bare.git")
	gittest.Run(t, "/", "clone", "--quiet", "--bare", origin, bareRepo)
	borrower := in("borrower")
	gittest.Run(t, "/", "clone", "--quiet", "--shared", origin, borrower)
	gittest.Commit(t, borrower, "third", map[string]string{"a": "3\n"})
	linked := in("linked")
	gittest.Run(t, origin, "worktree", "add", "--quiet", "-b", "side", linked)
	gittest.Commit(t, linked, "on the side", map[string]string{"a": "4\n"})
	sha256 := in("sha256")
	odd := in("odd \n\xff'\"$(id) ü")
	for _, dir := range []string{sha256, odd} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Init(t, sha256, map[string]string{"a": "5\n"}, "--object-format=sha256")
	gittest.Init(t, odd, map[string]string{"a": "6\n"})
	sub := filepath.Join(odd, "deep")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	detached := in("detached")
	gittest.Run(t, "/", "clone", "--quiet", origin, detached)
	gittest.Run(t, detached, "checkout", "--quiet", "--detach", "HEAD~1")

	for i, c := range []struct{ name, repo, top, format, a, ref string }{
		{"shallow", shallow, shallow, "sha1", "2", "main"},
		{"bare", bareRepo, bareRepo, "sha1", "2", "main"},
		{"borrower", borrower, borrower, "sha1", "3", "main"},
		{"linked worktree", linked, linked, "sha1", "4", "side"},
		{"sha256", sha256, sha256, "sha256", "5", "main"},
		{"odd path", odd, odd, "sha1", "6", "main"},
		{"below its top", sub, odd, "sha1", "6", "main"},
		{"detached", detached, detached, "sha1", "1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fixture{t: t, git: g, repo: c.repo, creds: g.Creds}
			f.openAs(agentID(ids[i]), "fletch/x")
			if f.src.Repo != c.top || f.src.Format != c.format || c.ref != "" && f.src.Base.Ref != c.ref {
				t.Errorf("source is %+v", f.src)
			}
			if got := f.inSandbox("cat a; git status --porcelain; git fsck --connectivity-only --no-dangling 2>/dev/null"); got != c.a {
				t.Errorf("the workspace has %q", got)
			}
			head := f.commit("echo work >> a")
			if err := f.git.Ingest(t.Context(), f.agent, head); err != nil {
				t.Error(err)
			}
			work, err := f.git.Measure(t.Context(), f.agent)
			if err != nil || work.Commits != 1 || work.Added != 1 || work.Head != head {
				t.Errorf("measured %+v, %v", work, err)
			}
		})
	}
}

func TestTheBaseIsTheFreshest(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	other := filepath.Join(t.TempDir(), "other")
	gittest.Run(t, "/", "clone", "--quiet", f.bare, other)
	newer := gittest.Commit(t, other, "newer", map[string]string{"b": "b"})
	gittest.Run(t, other, "push", "--quiet", "origin", "HEAD")

	f.open()
	if string(f.src.Base.Commit) != newer || f.src.Base.Stale != "" {
		t.Fatalf("the base is %+v, the remote has %s", f.src.Base, newer)
	}
	if got := f.inSandbox("cat b; git rev-parse origin/main"); got != "b"+newer {
		t.Errorf("the workspace has %q", got)
	}
	// Work on it publishes nothing of the user's.
	head := f.commit("echo 1 > c")
	if p := f.mustPlan(head, false); len(p.Commits) != 1 || len(p.Flags) != 0 {
		t.Errorf("planned %+v", p)
	}

	// Commits of the user's that are newer still are taken, and said.
	gittest.Run(t, f.repo, "pull", "--quiet", f.bare, "main")
	mine := gittest.Commit(t, f.repo, "mine", map[string]string{"mine": "1"})
	f.openAs("bbbbbbbb", "fletch/b")
	if string(f.src.Base.Commit) != mine || !strings.Contains(f.src.Base.Stale, "does not have") {
		t.Errorf("the base is %+v", f.src.Base)
	}
	p := f.mustPlan(f.commit("echo 1 > c"), false)
	wantFlag(t, p, "unpushed", "publishes 1 commit of yours that you never pushed ("+mine[:7]+")")
	if len(p.Commits) != 2 {
		t.Errorf("planned %+v", p.Commits)
	}
}

func TestWithoutAnAnswerTheLocalBaseIsTaken(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	f.git.Creds = Credentials{Env: gittest.Login(t, "ada", "wrong")}
	f.open()
	if !strings.Contains(f.src.Base.Stale, "did not accept your credentials") {
		t.Errorf("the base is %+v", f.src.Base)
	}
}

func TestInspectCountsAndLists(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	gittest.Run(t, f.repo, "branch", "feature")
	gittest.Write(t, f.repo, map[string]string{"new 1": "", "d/new2": "", "README.md": "changed"})
	src, err := f.git.Inspect(t.Context(), f.repo, "feature")
	if err != nil || src.Uncommitted != 3 || src.Base.Ref != "feature" {
		t.Fatalf("%+v, %v", src, err)
	}
	if !slices.Equal(src.Branches, []string{"feature", "main", "origin/main"}) {
		t.Errorf("branches %q", src.Branches)
	}
	src, err = f.git.Inspect(t.Context(), f.repo, "origin/main")
	if err != nil || src.Base.Ref != "origin/main" || src.upstream != "main" {
		t.Errorf("%+v, %v", src, err)
	}
}

func TestUserInformationIsStrippedFromTheRemote(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	gittest.Run(t, f.repo, "config", "url.https://ada:hunter2@forge.example/.insteadOf", "forge:")
	gittest.Run(t, f.repo, "remote", "set-url", "origin", "forge:acme/shop.git")
	src, err := f.git.Inspect(t.Context(), f.repo, "")
	if err != nil || src.Remote != "https://forge.example/acme/shop.git" {
		t.Errorf("remote %q, %v", src.Remote, err)
	}
	gittest.Run(t, f.repo, "remote", "set-url", "origin", "ext::sh -c id")
	src, err = f.git.Inspect(t.Context(), f.repo, "")
	if err != nil || src.Remote != "" || src.NoRemote == "" {
		t.Errorf("remote %q, %q, %v", src.Remote, src.NoRemote, err)
	}
}

func TestGitOlderThanItsFixesIsRefused(t *testing.T) {
	t.Parallel()
	for said, ok := range map[string]bool{
		"git version 2.39.5": true, "git version 2.39.4.windows.1": true, "git version 2.43.0 (Apple Git-1)": true, "git version 3.0": true,
		"git version 2.39.3": false, "git version 2.38.9": false, "git version 1.9.1": false, "git 2.45": false, "": false,
	} {
		if err := checkVersion(said); (err == nil) != ok {
			t.Errorf("%q: %v", said, err)
		}
	}
	if path, err := Find(); err != nil || !filepath.IsAbs(path) {
		t.Errorf("found %q, %v", path, err)
	}
}

// A commit or a tag is never looked up at the remote, so it must not count as
// something the remote has.
func TestACommitAsBaseIsNotTakenForPublished(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	mine := gittest.Commit(t, f.repo, "mine", map[string]string{"mine": "1"})
	gittest.Run(t, f.repo, "tag", "v1")
	for i, base := range []string{mine, "v1"} {
		src, err := f.git.Inspect(t.Context(), f.repo, base)
		if err != nil {
			t.Fatal(err)
		}
		id := agentID([]string{"aaaaaaaa", "bbbbbbbb"}[i])
		if f.src, err = f.git.Open(t.Context(), src, id, "fletch/x", nil); err != nil {
			t.Fatal(err)
		}
		f.agent = state.Agent{ID: id, Branch: "fletch/x", Workspace: f.git.Home.Workspace(string(id))}
		p := f.mustPlan(f.commit("echo 1 > c"), false)
		wantFlag(t, p, "unpushed", "publishes 1 commit of yours that you never pushed ("+mine[:7]+")")
	}
}
