//go:build linux

package cli_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fletch/state"
)

// hubUnder starts this world's hub with a bound on its open files; soft and
// hard may differ. The hub inherits it from the client that starts it, and
// every keeper from the hub.
func (w *world) hubUnder(soft, hard string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx(), "sh", "-c", "ulimit -Sn "+soft+" && ulimit -Hn "+hard+" && exec "+fletchBinary+" ls")
	cmd.Env, cmd.Dir = w.env, w.repo
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("starting a hub: %v\n%s", err, out)
	}
}

// hubEnds waits until this world's hub, which pid is, has ended.
func (w *world) hubEnds(pid int) {
	w.t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, int(patience.Milliseconds())); n == 0 {
		w.t.Errorf("hub %d does not end (%v)", pid, err)
	}
}

func TestWithFewOpenFilesALaunchIsRefusedAndNoRowIsDead(t *testing.T) {
	w := newWorld(t)
	w.hubUnder("64", "64") // less than a sandbox wants, and enough for six agents
	refused := 0
	for range 10 {
		out, errOut, code := w.try(w.ctx(), "new", "--json", "--copies", "3", "--", "cat")
		switch {
		case code == 0:
		case strings.Contains(errOut, `"too-many-agents"`), strings.Contains(errOut, `"engine-unavailable"`):
			refused++
		default:
			t.Fatalf("exit %d: %s%s", code, out, errOut)
		}
	}
	if refused == 0 {
		t.Error("thirty agents run with 64 open files")
	}
	for _, a := range decode[[]state.Agent](t, w.run("ls", "--json")) {
		if !a.Status.Live() {
			t.Errorf("%s is a dead row: %s %s", a.Name, a.Status, a.Reason)
		}
	}
}

func TestALowSoftLimitOnOpenFilesIsNoLimit(t *testing.T) {
	w := newWorld(t)
	w.hubUnder("64", "4096")
	for range 3 {
		w.run("new", "--copies", "9", "--no-wait", "--", "cat")
	}
	for _, a := range decode[[]state.Agent](t, w.run("ls", "--json")) {
		w.until(a.Name, "working", "idle", "failed")
		if now := w.agent(a.Name); !now.Status.Live() {
			t.Errorf("%s is %s: %s", now.Name, now.Status, now.Reason)
		}
	}
	for name, pid := range w.keepers() {
		var limit unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil || limit.Cur < 4000 {
			t.Errorf("keeper %s may open %d files (%v)", name, limit.Cur, err)
		}
	}
}

func TestAHubWithFewOpenFilesRecordsNoLivingAgentAsDead(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		w.run("new", "--copies", "5", "--", "cat")
	}
	w.run("stop", decode[[]state.Agent](t, w.run("ls", "--json"))[0].Name) // one that is really over
	first := w.hub().PID
	w.run("hub", "stop")
	w.hubEnds(first)
	w.hubUnder("64", "64") // room for six of the nine
	live := 0
	for _, a := range decode[[]state.Agent](t, w.run("ls", "--json")) {
		if a.Status.Live() {
			live++
		}
	}
	if live != 9 {
		t.Errorf("%d of 9 agents are live on record:\n%s", live, w.run("ls"))
	}
	if n := len(w.keepers()); n != 9 {
		t.Errorf("%d of 9 keepers live", n)
	}
}

func TestTheSocketsOfADeadHubAndADeadKeeperAreReplaced(t *testing.T) {
	w := newWorld(t)
	a := w.launch("cat", "--name", "again")
	hub, keeper := w.hub().PID, w.keeperOf(a.ID)
	for _, pid := range []int{hub, keeper} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitGone(pid)
	}
	for _, socket := range []string{"hub.sock", "run/" + string(a.ID) + "/keeper.sock"} {
		if _, err := os.Lstat(filepath.Join(w.home, socket)); err != nil {
			t.Fatalf("no dead socket to replace: %v", err)
		}
	}
	w.until("again", "failed")
	if now := w.agent("again"); now.Status != state.Failed || now.Reason != "its keeper died" {
		t.Errorf("it is %s: %s", now.Status, now.Reason)
	}
	w.run("resume", "again")
	w.until("again", "working", "idle")
	w.run("send", "again", "heard")
	w.run("stop", "again")
	if out := w.run("logs", "again"); !strings.Contains(out, "heard") {
		t.Errorf("its output is %q", out)
	}
	log, err := os.ReadFile(filepath.Join(w.home, "run/hub.log"))
	if err != nil || !strings.Contains(string(log), `"reason":"its keeper died"`) {
		t.Errorf("the hub's log does not say why the agent ended (%v)", err)
	}
}

func TestAnIdleHubEndsOnlyWithNobodyAndNothingToServe(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "FLETCH_HUB_IDLE=300ms")
	a := w.launch("cat", "--name", "only")
	pid := w.hub().PID
	// A watcher that outlives the agent; the hub may end only after both.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := exec.CommandContext(ctx, fletchBinary, "log", "--follow", "--json")
	watch.Env, watch.Dir = w.env, w.repo
	events, err := watch.StdoutPipe()
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.awaitLine(events, `"kind":"created"`)
	// With a live agent and nobody connected it stays.
	quiet := time.NewTimer(1500 * time.Millisecond)
	defer quiet.Stop()
	<-quiet.C
	if now := w.hub().PID; now != pid {
		t.Fatalf("hub %d ended with a live agent; %d serves now", pid, now)
	}
	if err := syscall.Kill(w.keeperOf(a.ID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.awaitLine(events, "its keeper died")
	again := time.NewTimer(1500 * time.Millisecond)
	defer again.Stop()
	<-again.C
	if now := w.hub().PID; now != pid {
		t.Fatalf("hub %d ended with a client; %d serves now", pid, now)
	}
	cancel()
	_ = watch.Wait()
	w.hubEnds(pid)
	log, err := os.ReadFile(filepath.Join(w.home, "run/hub.log"))
	if err != nil || !strings.Contains(string(log), `"why":"nobody and nothing to serve"`) {
		t.Errorf("the hub's log does not say why it ended (%v)", err)
	}
}

func TestTheHubsLogSaysWhoEndedIt(t *testing.T) {
	w := newWorld(t)
	w.run("ls")
	first := w.hub().PID
	w.run("hub", "stop")
	w.hubEnds(first)
	w.run("ls")
	second := w.hub().PID
	if err := syscall.Kill(second, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.hubEnds(second)
	raw, err := os.ReadFile(filepath.Join(w.home, "run/hub.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range []string{"told it to", "terminated"} {
		if !strings.Contains(string(raw), why) {
			t.Errorf("no %q in\n%s", why, raw)
		}
	}
}
