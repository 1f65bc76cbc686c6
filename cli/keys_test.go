//go:build linux

package cli_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// terminal is a real tmux with fletch in it.
type terminal struct {
	w      *world
	socket string
}

// terminal runs a command line in a tmux of its own, 80×24 unless size says
// otherwise.
func (w *world) terminal(command string, cols, rows int) *terminal {
	w.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		w.t.Skip("SKIP a real terminal: tmux is not installed")
	}
	// Not in the home: its name must not pass what a socket may have.
	tm := &terminal{w: w, socket: filepath.Join(w.dir, "tmux")}
	tm.do("new-session", "-d", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), "-c", w.repo, command)
	w.t.Cleanup(func() {
		_ = tm.command("kill-server").Run()
	})
	tm.do("set", "-g", "status", "off")
	return tm
}

func (tm *terminal) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-S", tm.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = append(append([]string{}, tm.w.env...), "TMUX=", "LC_ALL=C.UTF-8")
	return cmd
}

func (tm *terminal) do(args ...string) string {
	tm.w.t.Helper()
	out, err := tm.command(args...).CombinedOutput()
	if err != nil {
		tm.w.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (tm *terminal) screen() string {
	tm.w.t.Helper()
	return tm.do("capture-pane", "-p")
}

// shows waits until text is on the screen.
func (tm *terminal) shows(text string) {
	tm.w.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond) // tmux has no way to wait for a text
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if strings.Contains(tm.screen(), text) {
			return
		}
	}
	tm.w.t.Fatalf("the screen never shows %q:\n%s", text, tm.screen())
}

const restless = `n=0; while [ $n -lt 12 ]; do n=$((n+1)); echo $n >> work.txt; git add -A; git commit -qm "Work $n"; FLETCH_WAIT=3 git push >/dev/null 2>&1; done; cat`

// TestAThousandKeysByAccidentAllowNothing types what a person might type by
// accident, thirty keys a second, while requests come and change.
func TestAThousandKeysByAccidentAllowNothing(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	for _, name := range []string{"one", "two", "three"} {
		w.launch(restless, "--name", name)
	}
	w.asked(1)
	tm := w.terminal("while :; do "+fletchBinary+"; done", 100, 30)
	tm.shows("asks to push")
	paste := filepath.Join(w.dir, "paste")
	if err := os.WriteFile(paste, []byte("y\n\x19y\x19\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tm.do("load-buffer", "-b", "p", paste)
	random := rand.New(rand.NewPCG(7, 7))
	keys := [][]string{
		{"send-keys", "y"},
		{"send-keys", "Enter"},
		{"send-keys", "Space"},
		{"send-keys", "C-y"},
		{"send-keys", "-H", "19"},
		{"paste-buffer", "-p", "-b", "p"},
		{"paste-buffer", "-b", "p"},
		{"send-keys", "r"},
		{"send-keys", "C-]"},
		{"send-keys", "j"},
		{"send-keys", "Tab"},
	}
	tick := time.NewTicker(time.Second / 30)
	defer tick.Stop()
	for range 1000 {
		tm.do(keys[random.IntN(len(keys))]...)
		<-tick.C
	}
	for _, r := range decode[[]request](t, w.run("requests", "--all", "--json")) {
		if r.State != "pending" && r.State != "superseded" && r.State != "denied" {
			t.Errorf("request %s is %s", r.ID, r.State)
		}
	}
	if refs := w.git("--git-dir="+bare, "for-each-ref", "refs/heads/fletch"); refs != "" {
		t.Errorf("pushed by accident: %s", refs)
	}
}

// TestOneDeliberateChordAllows is the other half: what must work, works.
func TestOneDeliberateChordAllows(t *testing.T) {
	w := newWorld(t)
	bare := w.remote()
	w.launch(pushScript, "--name", "fern")
	r := w.asked(1)[0]
	tm := w.terminal(fletchBinary, 80, 24)
	tm.shows("ctrl+y allow")
	tm.shows(r.Commit)
	tm.shows("j k scroll   J K file") // armed
	tm.do("send-keys", "C-y")
	tm.shows("✓ pushed")
	if got := w.head(bare, "fletch/fern"); got != r.Commit {
		t.Errorf("the remote has %q, shown was %s", got, r.Commit)
	}
}
