//go:build linux

package cli_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fletch/gitops/gittest"
)

// remote gives the world a real git server over HTTP that asks for a
// password to push, and the user a credential for it. It returns the bare
// repository behind it.
func (w *world) remote() string {
	w.t.Helper()
	bare := filepath.Join(w.dir, "served", "shop.git")
	w.git("init", "-q", "--bare", "-b", "main", bare)
	const user, token = "ada", "s3cret-canary-51c2"
	address := gittest.Serve(w.t, filepath.Join(w.dir, "served"), user, token) + "/shop.git"
	at, err := url.Parse(address)
	if err != nil {
		w.t.Fatal(err)
	}
	line := at.Scheme + "://" + user + ":" + token + "@" + at.Host + "\n"
	secrets := filepath.Join(w.dir, "user", ".git-credentials")
	if err := os.WriteFile(secrets, []byte(line), 0o600); err != nil {
		w.t.Fatal(err)
	}
	config := "[credential]\n\thelper = store\n[user]\n\tname = Ada\n\temail = ada@example.com\n"
	if err := os.WriteFile(filepath.Join(w.dir, "user", ".gitconfig"), []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.git("remote", "add", "origin", address)
	w.git("push", "-q", "origin", "main")
	return bare
}

// head is what a branch of the served repository is, or empty.
func (w *world) head(bare, branch string) string {
	return w.git("--git-dir="+bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

const pushScript = `echo work >> work.txt && git add -A && git commit -qm "Add work" && git push; echo "push ended with $?"`

func TestADeniedPushLeavesTheRemoteAsItWasAndTellsTheAgentWhy(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	w.launch(pushScript, "--name", "fern")
	r := w.asked(1)[0]
	if r.Ref != "refs/heads/fletch/fern" || r.Operation != "push" || len(r.Commit) != 40 {
		t.Errorf("%+v", r)
	}
	w.run("deny", r.ID, "--reason", "use a fake clock")
	w.until("fern", "exited")
	out := w.run("logs", "--text", "fern")
	if !strings.Contains(out, "denied: use a fake clock") || strings.Contains(out, "push ended with 0") {
		t.Errorf("the agent saw %q", out)
	}
	if w.head(bare, "fletch/fern") != "" {
		t.Error("something was pushed")
	}
}

func TestAnAllowedPushPutsExactlyTheShownCommitOnTheRemote(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	w.launch(pushScript, "--name", "fern")
	r := w.asked(1)[0]
	w.run("allow", r.ID, "--commit", r.Commit, "--plan", r.Plan)
	w.until("fern", "exited")
	if out := w.run("logs", "--text", "fern"); !strings.Contains(out, "push ended with 0") {
		t.Errorf("the agent saw %q", out)
	}
	if got := w.head(bare, "fletch/fern"); got != r.Commit {
		t.Errorf("the remote has %q, shown was %s", got, r.Commit)
	}
	if settled := w.request(r.ID); settled.State != "pushed" {
		t.Errorf("%+v", settled)
	}
}

func TestAVerdictForAnotherCommitIsRefusedAndNothingIsPushed(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	w.launch(pushScript, "--name", "fern")
	r := w.asked(1)[0]
	other := strings.Repeat("1", 40)
	if code, _, hint := w.refused("allow", r.ID, "--commit", other); code != "request-moved" || hint == "" {
		t.Errorf("code %q hint %q", code, hint)
	}
	if code, _, _ := w.refused("allow", r.ID, "--commit", r.Commit, "--plan", strings.Repeat("0", 64)); code != "request-moved" {
		t.Errorf("code %q", code)
	}
	if w.head(bare, "fletch/fern") != "" {
		t.Error("something was pushed")
	}
	w.run("deny", r.ID)
}

func TestANewerPushTakesThePlaceOfTheOneThatWaits(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	w.launch(`echo a > a && git add a && git commit -qm A && (git push > one 2>&1 &) ; read go; echo b > b && git add b && git commit -qm B && git push; cat one`, "--name", "fern")
	old := w.asked(1)[0]
	w.run("send", "fern", "go")
	var now request
	for now = old; now.ID == old.ID; {
		now = w.asked(1)[0]
	}
	if code, _, _ := w.refused("allow", old.ID, "--commit", old.Commit); code == "" {
		t.Error("the old request could be allowed")
	}
	w.run("allow", now.ID, "--commit", now.Commit)
	w.until("fern", "exited")
	if got := w.head(bare, "fletch/fern"); got != now.Commit {
		t.Errorf("the remote has %q, want %s", got, now.Commit)
	}
	if state := w.request(old.ID).State; state != "superseded" {
		t.Errorf("the old request is %s", state)
	}
}

func TestTheSameCommitPushedTwiceIsOneRequest(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	w.launch(`echo a > a && git add a && git commit -qm A; FLETCH_WAIT=1 git push; echo "first ended with $?"; git push; echo "second ended with $?"`, "--name", "fern")
	r := w.asked(1)[0]
	w.until("fern", "working")
	w.run("allow", r.ID, "--commit", r.Commit)
	w.until("fern", "exited")
	if got := w.head(bare, "fletch/fern"); got != r.Commit {
		t.Errorf("the remote has %q", got)
	}
	if all := decode[[]request](t, w.run("requests", "--all", "--json")); len(all) != 1 {
		t.Errorf("%d requests: %+v", len(all), all)
	}
}

// TestTheHubCutDownAtAnyStepNeitherPushesTwiceNorLosesAnything kills the hub
// at each step between ask and push, as a power cut would, and then goes on.
func TestTheHubCutDownAtAnyStepNeitherPushesTwiceNorLosesAnything(t *testing.T) {
	for _, step := range []string{"push-read", "push-ingested", "push-planned", "push-asked", "push-decided", "push-granted", "push-done", "push-recorded"} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			bare := w.remote()
			fused := append([]string{}, w.env...)
			w.env = append(w.env, "FLETCH_FAILPOINT="+step)
			w.run("ls") // this starts the hub that will die
			doomed := w.hub().PID
			w.env = fused
			w.launch(pushScript, "--name", "fern")
			early := !strings.Contains("push-decided push-granted push-done push-recorded", step)
			if early {
				waitGone(doomed)
			}
			r := w.asked(1)[0]
			shown := r.Commit
			_, _, _ = w.try(w.ctx(), "allow", r.ID, "--commit", shown) // its hub may die under it
			if !early {
				waitGone(doomed)
			}
			w.until("fern", "exited")
			settled := w.request(r.ID)
			if got := w.head(bare, "fletch/fern"); got != shown || settled.State != "pushed" {
				t.Errorf("the remote has %q, shown was %s; the request is %s: %s", got, shown, settled.State, settled.Outcome)
			}
			if n := strings.Count(w.git("--git-dir="+bare, "reflog", "show", "refs/heads/fletch/fern"), "\n"); n > 0 {
				t.Errorf("the branch was written %d times", n+1)
			}
			w.run("log", "--verify")
		})
	}
}

// TestTheTokenAppearsNowhere looks for the password, in every form it could
// take, in argv and environments while a push runs, and on disk, in logs,
// transcripts and the agent's screen afterwards.
func TestTheTokenAppearsNowhere(t *testing.T) {
	w := newWorld(t)
	w.remote()
	w.launch(pushScript+`; env; cat /proc/1/environ | tr '\0' '\n'`, "--name", "fern")
	r := w.asked(1)[0]
	forms := tokenForms("s3cret-canary-51c2", "ada")
	found := make(chan string, 1)
	stop := make(chan struct{})
	go func() { found <- scanProcesses(forms, stop) }()
	w.run("allow", r.ID, "--commit", r.Commit)
	close(stop)
	if where := <-found; where != "" {
		t.Errorf("the token stood in %s", where)
	}
	w.until("fern", "exited")
	screen := w.run("logs", "--raw", "fern") + w.run("log", "--json") + w.run("requests", "--all", "--json")
	for _, form := range forms {
		if strings.Contains(screen, form) {
			t.Errorf("%q is on a screen or in the log", form)
		}
	}
	err := filepath.WalkDir(w.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, form := range forms {
			if strings.Contains(string(raw), form) {
				t.Errorf("%q is in %s", form, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// tokenForms lists how a token could be written: raw, URL-encoded, hex, and
// base64 in its three alignments, alone and behind its user.
func tokenForms(token, user string) []string {
	forms := []string{token, url.QueryEscape(token), hex.EncodeToString([]byte(token))}
	for _, prefix := range []string{"", "x", "xy", user + ":"} {
		coded := base64.StdEncoding.EncodeToString([]byte(prefix + token))
		// The first and last characters also depend on what stands around.
		forms = append(forms, coded[4:len(coded)-4])
	}
	return forms
}

// scanProcesses looks at every process's argv and environment until stop
// closes; it returns where it found one of forms.
func scanProcesses(forms []string, stop chan struct{}) string {
	where := ""
	for {
		select {
		case <-stop:
			return where
		default:
		}
		for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/proc/[0-9]*/environ"} {
			names, _ := filepath.Glob(pattern)
			for _, name := range names {
				raw, _ := os.ReadFile(name)
				for _, form := range forms {
					if strings.Contains(string(raw), form) {
						where = name + ": " + strings.ReplaceAll(string(raw), "\x00", " ")
					}
				}
			}
		}
	}
}

func TestHostileMailDelaysNothing(t *testing.T) {
	w := newWorld(t)
	w.remote()
	script := `cd "$FLETCH_MAILBOX/requests" &&
mkfifo fifo.json; ln -s /etc/passwd link.json; truncate -s 10G huge.json; printf '{"id":"half' > half.json; mkdir dir.json
touch "$FLETCH_MAILBOX/responses/forged.json" 2>/dev/null && echo FORGED
mv "$FLETCH_MAILBOX/responses" "$FLETCH_MAILBOX/elsewhere" 2>/dev/null && echo REDIRECTED
cd - >/dev/null; ` + pushScript
	w.launch(script, "--name", "fern")
	r := w.asked(1)[0]
	w.run("deny", r.ID)
	w.until("fern", "exited")
	out := w.run("logs", "--text", "fern")
	if strings.Contains(out, "FORGED") || strings.Contains(out, "REDIRECTED") {
		t.Errorf("%q", out)
	}
}

func TestAnAgentCannotDecideItsOwnRequest(t *testing.T) {
	w := newWorld(t)
	w.remote()
	w.launch(`ls `+w.home+` ; cat `+w.home+`/hub.sock; echo looked; `+pushScript, "--name", "fern")
	w.asked(1)
	out := w.run("logs", "--text", "fern")
	if strings.Contains(out, "state.db") {
		t.Errorf("it sees fletch's state: %q", out)
	}
}

func TestTheDemoPlaysAndEveryRowHolds(t *testing.T) {
	w := newWorld(t)
	rows := decode[[]struct {
		What, Found string
		OK          bool
	}](t, w.run("demo", "--headless", "--json"))
	if len(rows) < 10 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if !r.OK {
			t.Errorf("%s: %s", r.What, r.Found)
		}
	}
	transcripts, err := filepath.Glob(filepath.Join(w.home, "run", "*", "transcript"))
	if err != nil || len(transcripts) != 3 {
		t.Fatalf("%v %v", transcripts, err)
	}
	for _, name := range transcripts {
		raw, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(raw), "WORKED") {
			t.Errorf("%v: %s", err, raw)
		}
	}
}

func TestACommitWhoseBranchWasDeletedAtTheRemoteIsAskedAboutAgain(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	w.launch(pushScript+`; read go; git push; echo "second ended with $?"`, "--name", "fern")
	first := w.asked(1)[0]
	w.run("allow", first.ID, "--commit", first.Commit)
	w.git("--git-dir="+bare, "update-ref", "-d", "refs/heads/fletch/fern")
	w.run("send", "fern", "go")
	again := w.asked(1)[0]
	if again.ID == first.ID {
		t.Error("it is the settled request")
	}
	w.run("deny", again.ID)
	w.until("fern", "exited")
	out := w.run("logs", "--text", "fern")
	if strings.Contains(out, "second ended with 0") && w.head(bare, "fletch/fern") == "" {
		t.Errorf("the agent was told that it was pushed, and the remote has nothing:\n%s", out)
	}
}
