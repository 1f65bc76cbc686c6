//go:build linux

package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fletch/state"
)

// fletchBinary is the real program, built once with failpoints.
var fletchBinary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fletch-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// The sandboxes of an ordinary user show it, so others may read it.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fletchBinary = filepath.Join(dir, "fletch")
	build := exec.Command("go", "build", "-tags", "failpoints", "-o", fletchBinary, "fletch")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building fletch:", err)
		return 1
	}
	return m.Run()
}

// patience bounds every wait for something that should happen: a loaded
// machine with two cores must not fail a test.
const patience = 90 * time.Second

// world is one FLETCH_HOME with a repository beside it, and everything that
// is started in it ends with the test.
type world struct {
	t    *testing.T
	dir  string
	home string
	repo string
	env  []string
}

// newWorld makes an empty home and a repository with one commit.
func newWorld(t *testing.T) *world {
	t.Helper()
	// A short path: t.TempDir carries the test's name, and sockets must fit.
	dir, err := os.MkdirTemp("/var/tmp", "fw")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "h"), repo: filepath.Join(dir, "repo")}
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "user"), "LANG=C.UTF-8", "TERM=xterm-256color",
		"FLETCH_HOME=" + w.home, "SHELL=/bin/sh",
	}
	if err := os.MkdirAll(filepath.Join(dir, "user"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	w.git("init", "-q", "-b", "main", w.repo)
	w.write("README.md", "one\n")
	w.commit("first")
	return w
}

// end stops every agent and the hub, and shows the hub's log of a test that
// failed.
func (w *world) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, _, _ = w.try(ctx, "stop", "--all")
	var hub struct{ PID int }
	if out, _, code := w.try(ctx, "hub", "status", "--json"); code == 0 {
		_ = json.Unmarshal([]byte(out), &hub)
		_, _, _ = w.try(ctx, "hub", "stop")
		waitGone(hub.PID)
	}
	if w.t.Failed() {
		for _, name := range []string{"run/hub.log"} {
			if raw, err := os.ReadFile(filepath.Join(w.home, name)); err == nil {
				w.t.Logf("%s:\n%s", name, tailOf(raw, 8000))
			}
		}
		logs, _ := filepath.Glob(filepath.Join(w.home, "run", "*", "keeper.log"))
		for _, name := range logs {
			if raw, err := os.ReadFile(name); err == nil {
				w.t.Logf("%s:\n%s", name, tailOf(raw, 2000))
			}
		}
	}
	if err := os.RemoveAll(w.dir); err != nil {
		w.t.Errorf("removing the test's home: %v", err)
	}
}

func tailOf(raw []byte, most int) []byte { return raw[max(0, len(raw)-most):] }

// waitGone waits until a process, which is no child of the test, is no more.
func waitGone(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // no such process
	}
	defer func() { _ = unix.Close(fd) }()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if n, err := unix.Poll(poll, int(patience.Milliseconds())); n > 0 || !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// try runs fletch and returns what it printed and its exit code.
func (w *world) try(ctx context.Context, args ...string) (out, errOut string, code int) {
	return w.tryEnv(ctx, nil, args...)
}

func (w *world) tryEnv(ctx context.Context, env []string, args ...string) (out, errOut string, code int) {
	cmd := exec.CommandContext(ctx, fletchBinary, args...)
	cmd.Env = append(append([]string{}, w.env...), env...)
	cmd.Dir = w.repo
	if _, err := os.Stat(w.repo); err != nil {
		cmd.Dir = w.dir
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A hub started by this command holds no pipe of it, but be sure.
	cmd.WaitDelay = patience
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		code = exit.ExitCode()
	default:
		code = -1
		stderr.WriteString(err.Error())
	}
	return stdout.String(), stderr.String(), code
}

// run is try for what must work.
func (w *world) run(args ...string) string {
	w.t.Helper()
	out, errOut, code := w.try(w.ctx(), args...)
	if code != 0 {
		w.t.Fatalf("fletch %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// refused is try for what must not: it returns code, message and hint of the
// error that fletch prints.
func (w *world) refused(args ...string) (code, message, hint string) {
	w.t.Helper()
	out, errOut, exit := w.try(w.ctx(), append([]string{args[0], "--json"}, args[1:]...)...)
	if exit == 0 {
		w.t.Fatalf("fletch %s worked:\n%s", strings.Join(args, " "), out)
	}
	var failure struct {
		Error struct{ Code, Message, Hint string }
	}
	lines := strings.Split(strings.TrimSpace(errOut), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &failure); err != nil {
		w.t.Fatalf("fletch %s: no JSON error: %q", strings.Join(args, " "), errOut)
	}
	return failure.Error.Code, failure.Error.Message, failure.Error.Hint
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*patience)
	w.t.Cleanup(cancel)
	return ctx
}

// launch starts a shell agent that runs script.
func (w *world) launch(script string, flags ...string) state.Agent {
	w.t.Helper()
	args := append([]string{"new", "--json", "--repo", w.repo}, flags...)
	args = append(args, "--", "sh", "-c", script)
	return decode[state.Agent](w.t, w.run(args...))
}

func (w *world) agent(name string) state.Agent {
	w.t.Helper()
	return decode[state.Agent](w.t, w.run("show", "--json", name))
}

// until waits until an agent has one of the statuses.
func (w *world) until(name string, statuses ...string) {
	w.t.Helper()
	w.run("wait", name, "--until", strings.Join(statuses, ","), "--timeout", patience.String())
}

// request is what fletch requests prints.
type request struct {
	ID, Agent, Operation, Remote, Ref, Commit, Base, Plan, State, Outcome string
	Flags                                                                 []state.Flag
}

// asked waits until n requests are pending and returns them, oldest first.
func (w *world) asked(n int) []request {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, fletchBinary, "requests", "--follow", "--json")
	cmd.Env, cmd.Dir = w.env, w.repo
	lines, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer cancel()
	open := map[string]request{}
	for stream := json.NewDecoder(lines); ; {
		var r request
		if err := stream.Decode(&r); err != nil {
			w.t.Fatalf("there are %d requests, not %d (%v): %s\n%s", len(open), n, err, w.run("requests", "--all"), w.run("log"))
		}
		open[r.ID] = r
		if r.State != "pending" {
			delete(open, r.ID)
		}
		if len(open) == n {
			return slices.SortedFunc(maps.Values(open), func(a, b request) int { return cmp.Compare(a.ID, b.ID) })
		}
	}
}

func (w *world) request(id string) request {
	w.t.Helper()
	for _, r := range decode[[]request](w.t, w.run("requests", "--all", "--json")) {
		if r.ID == id {
			return r
		}
	}
	w.t.Fatalf("there is no request %s", id)
	return request{}
}

// git runs git on the user's side.
func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(append([]string{}, w.env...), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	if _, err := os.Stat(w.repo); err == nil {
		cmd.Dir = w.repo
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.repo, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) commit(message string) string {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "-m", message)
	return w.git("rev-parse", "HEAD")
}

func decode[T any](t *testing.T, raw string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatalf("reading %q: %v", raw, err)
	}
	return out
}

// background starts fletch and returns its pid; it is killed with the test.
func (w *world) background(args ...string) int {
	w.t.Helper()
	cmd := exec.Command(fletchBinary, args...)
	cmd.Env, cmd.Dir = w.env, w.repo
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return cmd.Process.Pid
}
