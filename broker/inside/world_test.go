package inside_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
