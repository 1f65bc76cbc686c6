//go:build linux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planted is what an agent tries to get past the person.
const planted = "planted-canary-7f31"

func TestACommitWithAZeroByteInItsMessageIsNeverAskedAbout(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	w.launch(`echo work > work.txt; git add -A
{ printf 'tree %s\nparent %s\nauthor Ada <ada@example.com> 1700000000 +0000\ncommitter Ada <ada@example.com> 1700000000 +0000\n\n' $(git write-tree) $(git rev-parse HEAD)
  printf 'Add work\n\000`+planted+`\n'; } > /tmp/raw
git update-ref --no-deref HEAD $(git hash-object -t commit -w --stdin --literally < /tmp/raw); git push; echo "push ended with $?"`, "--name", "fern")
	w.until("fern", "exited")
	if out := w.run("logs", "--text", "fern"); !strings.Contains(out, "nulInCommit") || strings.Contains(out, "push ended with 0") {
		t.Errorf("the agent saw %q", out)
	}
	if all := decode[[]request](t, w.run("requests", "--all", "--json")); len(all) != 0 || w.head(bare, "fletch/fern") != "" {
		t.Errorf("%+v", all)
	}
}

// TestARepositoryOfPipesHoldsUpOnlyItsOwnAgent gives git nothing but FIFOs to
// read: whoever opens one waits for ever.
func TestARepositoryOfPipesHoldsUpOnlyItsOwnAgent(t *testing.T) {
	w := newWorld(t)
	w.remote()
	w.launch(`cd .git; rm -rf packed-refs index HEAD config; mkfifo packed-refs index HEAD config
echo '{"id":"r1","op":"push","args":{"commit":"1111111111111111111111111111111111111111","ref":"refs/heads/fletch/pipes","force":false}}' > "$FLETCH_MAILBOX/requests/r1.json"; read end`, "--name", "pipes")
	w.launch(pushScript, "--name", "fern")
	r := w.asked(1)[0]
	w.run("deny", r.ID)
	w.until("fern", "exited")
	w.run("rm", "--yes", "pipes")
	w.run("hub", "stop")
}

// TestAMailboxFullOfRubbishDelaysNoOtherAgent goes on filling and emptying it,
// so that the kernel's notices overflow.
func TestAMailboxFullOfRubbishDelaysNoOtherAgent(t *testing.T) {
	w := newWorld(t)
	w.remote()
	w.launch(`cd "$FLETCH_MAILBOX/requests"; seq -f 'r%g.json' 2000 | xargs touch; echo '{"id":"full","op":"push"}' > full.json
while :; do seq -f 'y%g' 20000 | xargs touch; seq -f 'y%g' 20000 | xargs rm -f; done`, "--name", "flood")
	w.launch(pushScript, "--name", "fern")
	r := w.asked(1)[0]
	w.run("deny", r.ID)
	w.until("fern", "exited")
}

// TestAnAgentThatFindsTheHubCannotDecide shows FLETCH_HOME to an agent, as a
// careless setting would, and lets the agent run fletch itself.
func TestAnAgentThatFindsTheHubCannotDecide(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("[filesystem]\nallow_read = [\""+w.home+"\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, code := w.try(w.ctx(), "new", "--repo", w.repo, "--name", "fern", "--", "sh", "-c",
		`export FLETCH_HOME=`+w.home+`; echo work > w && git add -A && git commit -qm W && (git push &)
read go; /run/fletch/box ls; /run/fletch/box allow 1 --commit $(git rev-parse HEAD); /run/fletch/box stop --all; /run/fletch/box hub stop; true`)
	if code != 0 {
		return // it is not even started with that setting
	}
	r := w.asked(1)[0]
	hub := w.hub().PID
	w.run("send", "fern", "go")
	w.until("fern", "exited")
	if w.head(bare, "fletch/fern") != "" || w.request(r.ID).State != "pending" || w.hub().PID != hub {
		t.Errorf("it decided: %s", w.run("logs", "--text", "fern"))
	}
}

// TestNothingThatIsPrintedIsObeyedByATerminal has an agent and the remote put
// control and bidi characters wherever they have a word.
func TestNothingThatIsPrintedIsObeyedByATerminal(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	const evil = `\033]0;` + planted + `\007\302\23331m\342\200\256\177\r`
	hook := "#!/bin/sh\nprintf 'no: " + evil + " x\\n' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	w.launch(`evil=$(printf '`+evil+`'); printf '\033]0;%s\007' "$evil"; printf '\033]9;%s\007' "$evil"
echo "$evil" > "f$evil" && echo "$evil" > g && git add -A && git -c user.name="x${evil}y" commit -qm "m $evil"; git push
printf '{"id":"r1","op":"%s"}' "$evil" > "$FLETCH_MAILBOX/requests/r1.json"; printf '[a "%s' "$evil" > .git/config; read end`, "--name", "fern")
	r := w.asked(1)[0]
	look := func(args ...string) {
		t.Helper()
		out, errOut, _ := w.try(w.ctx(), args...)
		for _, bad := range []string{"\x1b", "\x07", "\u009b", "\u202e", "\x7f", "\r"} {
			if strings.Contains(out+errOut, bad) {
				t.Errorf("fletch %s prints %q: %.300q", strings.Join(args, " "), bad, out+errOut)
			}
		}
	}
	lookAround := func() {
		t.Helper()
		for _, command := range []string{"ls", "log", "show fern", "requests --all", "diff " + r.ID, "diff fern", "logs --text fern", "logs --screen fern"} {
			look(strings.Fields(command)...)
		}
	}
	lookAround()
	allow := []string{"allow", r.ID, "--commit", r.Commit}
	for _, f := range r.Flags {
		if f.Red {
			allow = append(allow, "--accept", f.Name)
		}
	}
	look(allow...)
	if state := w.request(r.ID).State; state != "failed" {
		t.Errorf("the remote's hook refuses it, and it is %s", state)
	}
	lookAround()
}
