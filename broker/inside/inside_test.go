package inside_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fletch/broker/inside"
	"fletch/broker/mailbox"
	"fletch/home"
)

const branch = "fletch/amber-river"

// shells are what /bin/sh may be in a sandbox.
var shells = map[string]string{"dash": "dash", "bash": "bash --posix", "busybox": "busybox sh"}

// eachShell runs a test with every one of shells that this machine has, in
// place of /bin/sh; one at least.
func eachShell(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	ran := 0
	for name, command := range shells {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Logf("not run with %s: it is not installed", name)
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			_, flags, _ := strings.Cut(command, " ")
			test(t, newWorld(t, strings.TrimSpace(path+" "+flags)))
		})
	}
	if ran == 0 {
		t.Skip("SKIPPED: none of dash, bash and busybox is installed")
	}
}

// world is an agent's sandbox without walls: a repository, the helpers, a
// mailbox; and the hub's side of that mailbox.
type world struct {
	t         *testing.T
	repo, bin string
	env       []string
	mail      string // the mailbox as the agent sees it

	mu   sync.Mutex
	asks []ask
}

type ask struct {
	op, commit, ref string
	force           bool
}

func newWorld(t *testing.T, shell string) *world {
	t.Helper()
	w := &world{t: t, repo: t.TempDir(), bin: t.TempDir()}
	if err := inside.Install(w.bin); err != nil {
		t.Fatal(err)
	}
	for name, body := range inside.Files() {
		body = bytes.Replace(body, []byte("#!/bin/sh"), []byte("#!"+shell), 1)
		if err := os.WriteFile(filepath.Join(w.bin, name), body, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := w.bin + ":" + os.Getenv("PATH")
	if busy, ok := strings.CutSuffix(shell, " sh"); ok {
		applets := t.TempDir()
		for _, name := range []string{"od", "tr", "cat", "mv", "rm", "date", "sleep", "dirname"} {
			if err := os.Symlink(busy, filepath.Join(applets, name)); err != nil {
				t.Fatal(err)
			}
		}
		path = w.bin + ":" + applets + ":" + os.Getenv("PATH")
	}
	w.env = []string{
		"PATH=" + path, "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"FLETCH_BRANCH=" + branch,
	}
	w.must("git", "init", "-q", "-b", "main")
	w.must("git", "commit", "-q", "--allow-empty", "-m", "base")
	w.must("git", "remote", "add", "origin", "fletch::https://example.com/acme/shop.git")
	w.must("git", "config", "remote.origin.push", "HEAD:refs/heads/"+branch)
	w.must("git", "checkout", "-q", "--detach")
	w.must("git", "commit", "-q", "--allow-empty", "-m", "work")
	return w
}

// hub serves a fresh mailbox with reply; the operation "refs" is answered
// with remote.
func (w *world) hub(remote map[string]string, reply func(ask) *mailbox.Reply) {
	w.t.Helper()
	w.serve(func(box *mailbox.Box, m mailbox.Message) {
		answer := &mailbox.Reply{OK: true, Refs: remote}
		if m.Op != "refs" {
			answer = reply(w.note(m))
		}
		if answer == nil {
			return
		}
		if err := box.Reply(m.ID, *answer); err != nil {
			w.t.Errorf("Reply: %v", err)
		}
	})
}

// serve gives the agent a mailbox, until the test ends.
func (w *world) serve(handle func(*mailbox.Box, mailbox.Message)) {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "the hub's")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := home.Open(dir, "")
	if err != nil {
		w.t.Fatal(err)
	}
	box, err := mailbox.Open(h, "abcdefgh")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- box.Watch(ctx, func(m mailbox.Message) { handle(box, m) }) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Watch: %v", err)
		}
		_ = box.Close()
	})
	w.mail = h.Mailbox("abcdefgh")
	w.env = append(w.env, "FLETCH_MAILBOX="+w.mail)
}

// note keeps what was asked.
func (w *world) note(m mailbox.Message) ask {
	var args struct {
		Commit string `json:"commit"`
		Ref    string `json:"ref"`
		Force  bool   `json:"force"`
	}
	if err := m.Decode(&args); err != nil {
		w.t.Errorf("%s: %v", m.Args, err)
	}
	a := ask{m.Op, args.Commit, args.Ref, args.Force}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asks = append(w.asks, a)
	return a
}

func (w *world) asked() []ask {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]ask(nil), w.asks...)
}

func (w *world) run(name string, args ...string) (string, int) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), name, args...)
	cmd.Dir, cmd.Env = w.repo, w.env
	if path := filepath.Join(w.bin, name); fileExists(path) {
		cmd.Path, cmd.Err = path, nil
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (w *world) must(name string, args ...string) string {
	w.t.Helper()
	out, code := w.run(name, args...)
	if code != 0 {
		w.t.Fatalf("%s %v: exit %d\n%s", name, args, code, out)
	}
	return strings.TrimSpace(out)
}

func (w *world) fails(want string, name string, args ...string) string {
	w.t.Helper()
	out, code := w.run(name, args...)
	if code == 0 || !strings.Contains(out, want) {
		w.t.Errorf("%s %v: exit %d, want a failure with %q\n%s", name, args, code, want, out)
	}
	return out
}

func (w *world) head() string { return w.must("git", "rev-parse", "HEAD") }

func done(ask) *mailbox.Reply {
	return &mailbox.Reply{OK: true, Lines: []string{"pushed to example.com/acme/shop"}}
}

func TestOrdinaryPushesFromADetachedHeadReachTheHub(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(map[string]string{"refs/heads/main": w.must("git", "rev-parse", "HEAD^")}, done)
		for _, args := range [][]string{
			{"push"},
			{"push", "-u", "origin", "HEAD"},
			{"push", "origin", "HEAD:" + branch},
			{"push", "origin", "HEAD:refs/heads/" + branch},
			{"push", "-q", "origin", w.head() + ":" + branch},
		} {
			before := len(w.asked())
			out := w.must("git", args...)
			asks := w.asked()
			want := ask{"push", w.head(), "refs/heads/" + branch, false}
			if len(asks) != before+1 || asks[before] != want {
				t.Errorf("%v asked %+v, want %+v\n%s", args, asks[before:], want, out)
			}
			for _, line := range []string{
				"fletch: waiting for approval of fletch/amber-river (" + w.head()[:7] + "); nothing has left this machine yet\n",
				"fletch: pushed to example.com/acme/shop",
			} {
				if !strings.Contains(out+"\n", line) {
					t.Errorf("%v does not say %q:\n%s", args, line, out)
				}
			}
		}
	})
}

func TestPushTracksWhatTheRemoteHas(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(map[string]string{"refs/heads/" + branch: w.head(), "refs/tags/v1": w.head()}, done)
		if out := w.must("git", "push"); !strings.Contains(out, "up-to-date") || len(w.asked()) != 0 {
			t.Errorf("asked %v\n%s", w.asked(), out)
		}
		w.must("git", "commit", "-q", "--allow-empty", "-m", "more")
		w.must("git", "push")
		if got := w.must("git", "rev-parse", "refs/remotes/origin/"+branch); got != w.head() {
			t.Errorf("the tracking branch is %s, want %s", got, w.head())
		}
	})
}

func TestDenialReachesTheAgentWithItsReason(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(nil, func(ask) *mailbox.Reply {
			r := mailbox.Refuse("denied: use tabs, not \"spaces\" \\ $(touch pwned) `id` %s\x1b[2J")
			return &r
		})
		out := w.fails("fletch: denied: use tabs, not 'spaces' / $(touch pwned) `id` %s�[2J\n", "git", "push")
		if !strings.Contains(out, "[remote rejected] HEAD -> "+branch+" (fletch: denied: use tabs") {
			t.Errorf("git says:\n%s", out)
		}
		if fileExists(filepath.Join(w.repo, "pwned")) {
			t.Error("a reason was run")
		}
	})
}

func TestFletchIsNamedOnceInALine(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(nil, func(ask) *mailbox.Reply {
			return &mailbox.Reply{OK: true, Lines: []string{"fletch: one", "two"}}
		})
		if out := w.must("git", "push"); !strings.Contains(out, "\nfletch: one\nfletch: two\n") {
			t.Errorf("git says:\n%s", out)
		}
		w.hub(nil, func(ask) *mailbox.Reply {
			r := mailbox.Refuse("fletch: one", "two")
			return &r
		})
		w.fails("\nfletch: one\nfletch: two\n", "git", "push")
		w.fails("(fletch: one)", "git", "push")
	})
}

func TestNoWordsOfADenialLookLikeSuccessToGit(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		reasons := []string{"up to date", "no match", "non-fast forward", "already exists", "fetch first", "needs force", "stale info", "", "ok"}
		var next atomic.Int32
		w.hub(nil, func(ask) *mailbox.Reply {
			r := mailbox.Refuse(reasons[next.Load()])
			return &r
		})
		for i := range reasons {
			next.Store(int32(i))
			w.fails("[remote rejected]", "git", "push")
		}
	})
}

func TestPushThatNobodyAnswersEndsAndSaysHowToGoOn(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.env = append(w.env, "FLETCH_WAIT=1")
		w.hub(nil, func(ask) *mailbox.Reply { return nil })
		out := w.fails("fletch: not answered yet; push the same commit again to keep waiting", "git", "push")
		if !strings.Contains(out, "[remote rejected]") {
			t.Errorf("git says:\n%s", out)
		}
		// The request stays for whoever starts the hub next.
		left, err := os.ReadDir(filepath.Join(w.mail, "requests"))
		if err != nil || len(left) != 1 {
			t.Errorf("%d requests are left (%v), want 1", len(left), err)
		}
		if out, code := w.run("fletch-request", "push", "commit="+w.head(), "ref=refs/heads/"+branch, "force=false"); code != 3 {
			t.Errorf("fletch-request: exit %d, want 3\n%s", code, out)
		}
	})
}

func TestWhatMayNotBePushedIsNeverAsked(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(map[string]string{"refs/heads/" + branch: w.must("git", "rev-parse", "HEAD^"), "refs/heads/main": w.must("git", "rev-parse", "HEAD^")}, done)
		w.must("git", "tag", "-m", "annotated", "v1")
		blob := w.must("sh", "-c", "echo hello | git hash-object -w --stdin")
		w.must("git", "tag", "blob", blob)
		right := "this agent may push to fletch/amber-river only: git push origin HEAD:refs/heads/fletch/amber-river"
		for _, c := range []struct {
			want string
			args []string
		}{
			{"deleting is not allowed", []string{"--delete", "origin", branch}},
			{"deleting is not allowed", []string{"origin", ":" + branch}},
			{"deleting is not allowed", []string{"origin", ":main"}},
			{right, []string{"origin", "HEAD:main"}},
			{right, []string{"--force", "origin", "HEAD:refs/heads/master"}},
			{right, []string{"origin", "HEAD:refs/heads/fletch/other"}},
			{right, []string{"origin", "v1"}},
			{right, []string{"origin", "HEAD:refs/tags/v2"}},
			{right, []string{"origin", "HEAD:refs/heads/" + branch + "2"}},
			{"", []string{"--tags"}},
			{"", []string{"--mirror"}},
			{"only a commit can be pushed", []string{"--force", "origin", "v1:refs/heads/" + branch}},
			{"", []string{"origin", "blob:refs/heads/" + branch}},
			{"", []string{"--atomic"}},
			{"", []string{"--push-option=ci.skip"}},
		} {
			w.fails(c.want, "git", append([]string{"push"}, c.args...)...)
		}
		for _, a := range w.asked() {
			if a.ref != "refs/heads/"+branch || a.commit != w.head() {
				t.Errorf("asked %+v", a)
			}
		}
	})
}

func TestEachOfTwoRefsHasItsOwnAnswer(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(nil, done)
		out := w.fails("this agent may push to", "git", "push", "origin", "HEAD:refs/heads/main", "HEAD:"+branch)
		if !strings.Contains(out, "[new branch]") || len(w.asked()) != 1 {
			t.Errorf("asked %+v\n%s", w.asked(), out)
		}
	})
}

func TestForceAndLeaseAreAskedAsForce(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		old := w.head()
		w.hub(map[string]string{"refs/heads/" + branch: old}, done)
		w.must("git", "commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
		w.fails("non-fast-forward", "git", "push")
		w.must("git", "push", "--force")
		w.must("git", "push", "--force-with-lease="+branch+":"+old)
		w.must("git", "push", "origin", "+HEAD:"+branch)
		asks := w.asked()
		if len(asks) != 3 {
			t.Fatalf("asked %+v", asks)
		}
		for _, a := range asks {
			if !a.force || a.commit != w.head() {
				t.Errorf("asked %+v", a)
			}
		}
	})
}

func TestDryRunAsksNothing(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(nil, done)
		w.must("git", "push", "--dry-run")
		if len(w.asked()) != 0 {
			t.Errorf("asked %+v", w.asked())
		}
	})
}

func TestFetchSaysThatItIsNotThere(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(nil, done)
		for _, args := range [][]string{{"fetch"}, {"fetch", "origin", "main"}, {"ls-remote", "origin"}} {
			w.fails("fletch: fetching goes through fletch and is not there yet", "git", args...)
		}
	})
}

func TestSilentHubEndsAPushBeforeItIsAsked(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.serve(func(*mailbox.Box, mailbox.Message) {})
		w.env = append(w.env, "FLETCH_WAIT=1")
		w.fails("fletch: nothing was asked and nothing has left this machine; push again later", "git", "push")
	})
}

func TestHelpersOutsideASandboxSayWhatIsMissing(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.fails("there is no mailbox here", "git", "push")
		w.env = append(w.env, "FLETCH_BRANCH=")
		w.fails("no branch is recorded", "git", "push")
	})
}

func TestHalfAResponseIsNoAnswer(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		whole := `{"id":"%s","ok":true,"code":0,"refs":"","text":"one\ntwo"}` + "\n"
		most := len(fmt.Sprintf(whole, strings.Repeat("a", 32))) - 3
		for _, cut := range []int{0, 50, most} {
			w.respond(func(id, path string) {
				writeInPieces(t, path, fmt.Sprintf(whole, id)[:cut])
			})
			w.env = append(w.env, "FLETCH_WAIT=1")
			if out, code := w.run("fletch-request", "refs"); code != 3 {
				t.Errorf("cut at %d: exit %d, want 3\n%s", cut, code, out)
			}
		}
		w.respond(func(id, path string) {
			pieces := strings.SplitAfter(fmt.Sprintf(whole, id), ",")
			writeInPieces(t, path, pieces...)
		})
		w.env = append(w.env, "FLETCH_WAIT=100")
		if out := w.must("fletch-request", "refs"); out != "one\ntwo" {
			t.Errorf("read %q", out)
		}
		w.respond(func(_, path string) {
			writeInPieces(t, path, fmt.Sprintf(whole, "another"))
		})
		w.env = append(w.env, "FLETCH_WAIT=1")
		if out, code := w.run("fletch-request", "refs"); code != 3 {
			t.Errorf("the answer to another: exit %d, want 3\n%s", code, out)
		}
	})
}

// respond serves a fresh mailbox by hand: write gets a request's id and the
// path of its response.
func (w *world) respond(write func(id, path string)) {
	w.t.Helper()
	var responses string
	ready := make(chan struct{})
	w.serve(func(_ *mailbox.Box, m mailbox.Message) {
		<-ready
		write(m.ID, filepath.Join(responses, m.ID+".json"))
	})
	responses = filepath.Join(w.mail, "responses")
	close(ready)
}

func writeInPieces(t *testing.T, path string, pieces ...string) {
	file, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	for _, piece := range pieces {
		if _, err := file.WriteString(piece); err != nil {
			t.Error(err)
		}
		if err := file.Sync(); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestRefusesWhatItCannotSay(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(nil, done)
		for _, args := range [][]string{
			{},
			{"Push"},
			{"../x"},
			{"push;id"},
			{"push", "novalue"},
			{"push", "Key=v"},
			{"push", "=v"},
			{"push", `ref=a"b`},
			{"push", `ref=a\b`},
			{"push", "ref=a\nb"},
			{"push", "ref=é"},
			{"push", "ref=$(id)"},
			{"push", "ref=\x1b"},
		} {
			if out, code := w.run("fletch-request", args...); code != 2 {
				t.Errorf("%q: exit %d, want 2\n%s", args, code, out)
			}
		}
		left, err := os.ReadDir(filepath.Join(w.mail, "requests"))
		if err != nil || len(left) != 0 || len(w.asked()) != 0 {
			t.Errorf("%d files, asked %v (%v)", len(left), w.asked(), err)
		}
		if out := w.must("fletch-request", "push", "ref=a b", "force=true"); out != "pushed to example.com/acme/shop" {
			t.Errorf("said %q", out)
		}
	})
}

func TestInstallReplacesHelpersAsAWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	for range 2 {
		if err := inside.Install(dir); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(inside.Files()) {
		t.Errorf("%d files (%v), want %d", len(entries), err, len(inside.Files()))
	}
	for name, body := range inside.Files() {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o755 || info.Size() != int64(len(body)) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
