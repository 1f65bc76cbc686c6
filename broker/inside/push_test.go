package inside_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fletch/broker/mailbox"
)

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
