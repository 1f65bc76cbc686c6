//go:build linux

package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fletch/agents/attach"
	"fletch/state"
)

const one, two = state.AgentID("aaaaaaaa"), state.AgentID("bbbbbbbb")

// running is a world in which agent one runs script.
func running(t *testing.T, script string) *world {
	t.Helper()
	w := newWorld(t)
	w.add(one, state.Stopped, script)
	w.run()
	if err := w.Resume(t.Context(), one, clientEnv); err != nil {
		t.Fatal(err)
	}
	w.untilStatus(one, state.Working)
	return w
}

// keeperPID is the process that keeps an agent.
func (w *world) keeperPID(id state.AgentID) int {
	w.Helper()
	conn, err := attach.Dial(w.Context(), w.Home.KeeperSocket(string(id)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleHub})
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.PID()
}

func TestAProgramsOwnEndIsOnRecord(t *testing.T) {
	for script, want := range map[string]state.StatusChanged{
		"exit 0":     {Status: state.Exited},
		"exit 7":     {Status: state.Failed, Reason: "ended with code 7"},
		"kill -9 $$": {Status: state.Failed, Reason: "ended by signal killed"},
	} {
		w := newWorld(t)
		w.add(one, state.Stopped, script)
		w.run()
		if err := w.Resume(t.Context(), one, clientEnv); err != nil {
			t.Fatal(err)
		}
		a := w.until(one, "over", func(a state.Agent) bool { return !a.Status.Live() && a.Exit != nil })
		if a.Status != want.Status || a.Reason != want.Reason {
			t.Errorf("%s: %s %q", script, a.Status, a.Reason)
		}
	}
}

func TestARunningAgentIsNeitherContinuedNorRemoved(t *testing.T) {
	w := running(t, "cat")
	for what, err := range map[string]error{
		"resume": w.Resume(t.Context(), one, clientEnv),
		"remove": w.Remove(t.Context(), one, false),
	} {
		if code(err) != "still-running" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := w.Stop(t.Context(), one); err != nil {
		t.Error(err)
	}
	if a, _ := w.log.Fleet().Agent(one); a.Status != state.Stopped {
		t.Errorf("it is %s: %s", a.Status, a.Reason)
	}
	if err := w.Stop(t.Context(), one); code(err) != "not-running" {
		t.Errorf("a second stop: %v", err)
	}
}

func TestRemovingByForceStopsFirstAndKeepsTheWorkForUndo(t *testing.T) {
	w := running(t, "echo precious > work; cat")
	pid := w.keeperPID(one)
	if err := w.Remove(t.Context(), one, true); err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(pid, 0) == nil {
		// It has said that it ended; it may take a moment to be gone.
		w.reaped.Wait()
	}
	if _, there := w.log.Fleet().Agent(one); there {
		t.Error("it is on record")
	}
	for what, err := range map[string]error{
		"stop":   w.Stop(t.Context(), one),
		"resume": w.Resume(t.Context(), one, clientEnv),
		"remove": w.Remove(t.Context(), one, true),
	} {
		if code(err) != "no-such-agent" {
			t.Errorf("%s: %v", what, err)
		}
	}
	back, err := w.Undo(t.Context())
	if err != nil || back.ID != one || back.Status != state.Stopped {
		t.Fatalf("%+v %v", back, err)
	}
	if _, err := os.Stat(filepath.Join(back.Workspace, "work")); err != nil {
		t.Errorf("its work: %v", err)
	}
	if err := w.Resume(t.Context(), one, clientEnv); err != nil {
		t.Errorf("continuing it: %v", err)
	}
	if _, err := w.Undo(t.Context()); code(err) != "nothing-to-undo" {
		t.Errorf("a second undo: %v", err)
	}
}

func TestAStartCanBeStopped(t *testing.T) {
	t.Setenv(keeperVariable, "hang")
	w := newWorld(t)
	w.add(one, state.Stopped, "cat")
	w.run()
	resumed := make(chan error, 1)
	go func() { resumed <- w.Resume(t.Context(), one, clientEnv) }()
	w.untilStatus(one, state.Starting)
	if err := w.Stop(t.Context(), one); err != nil {
		t.Error(err)
	}
	if err := <-resumed; err == nil {
		t.Error("the start worked")
	}
	if a, _ := w.log.Fleet().Agent(one); a.Status != state.Stopped || a.Reason != "stopped while starting" {
		t.Errorf("it is %s: %s", a.Status, a.Reason)
	}
}

func TestAKeeperThatCannotStartIsAFailureWithItsReason(t *testing.T) {
	for behaviour, want := range map[string]string{
		"die":    "the keeper ended without a word",
		"refuse": "no[2J sandbox",
	} {
		t.Setenv(keeperVariable, behaviour)
		w := newWorld(t)
		w.add(one, state.Stopped, "cat")
		w.run()
		if err := w.Resume(t.Context(), one, clientEnv); err == nil {
			t.Errorf("%s: it worked", behaviour)
		}
		if a, _ := w.log.Fleet().Agent(one); a.Status != state.Failed || !strings.Contains(a.Reason, want) {
			t.Errorf("%s: it is %s: %q", behaviour, a.Status, a.Reason)
		}
	}
}

func TestWhatCannotBePlannedLeavesTheAgentAsItWas(t *testing.T) {
	w := newWorld(t)
	a := w.add(one, state.Failed, "cat")
	if err := os.WriteFile(w.Home.Config(), []byte("nonsense = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run()
	if err := w.Resume(t.Context(), one, clientEnv); code(err) != "bad-settings" {
		t.Errorf("%v", err)
	}
	if now, _ := w.log.Fleet().Agent(one); now.Status != a.Status || now.Note != "" {
		t.Errorf("it is %s (%s)", now.Status, now.Note)
	}
}

func TestAKilledKeeperIsAFailure(t *testing.T) {
	w := running(t, "cat")
	if err := syscall.Kill(w.keeperPID(one), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if a := w.untilStatus(one, state.Failed); a.Reason != "its keeper died" {
		t.Errorf("reason %q", a.Reason)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.served, one) {
		t.Error("its mailbox is still served")
	}
}

// again is another supervisor over the same home and record, as after the
// death of a hub.
func (w *world) again() *world {
	w.Helper()
	next := newWorld(w.T)
	next.Home, next.Git, next.Supervisor.Log, next.log = w.Home, w.Git, w.log, w.log
	return next
}

func TestTheNextHubAdoptsWhatLivesAndRecordsWhatEnded(t *testing.T) {
	w := running(t, "cat")
	w.add(two, state.Working, "true") // its keeper is no more
	next := w.again()
	next.run()
	if a := next.untilStatus(two, state.Failed); a.Reason != "its keeper died" {
		t.Errorf("reason %q", a.Reason)
	}
	next.until(one, "served", func(state.Agent) bool {
		next.mu.Lock()
		defer next.mu.Unlock()
		return slices.Contains(next.served, one)
	})
	if a, _ := w.log.Fleet().Agent(one); !a.Status.Live() {
		t.Errorf("the one that lives is %s: %s", a.Status, a.Reason)
	}
}

func TestWithoutAPlaceALivingAgentStaysOnRecordAsItIs(t *testing.T) {
	w := running(t, "cat")
	next := w.again()
	next.Places = 1
	next.taken.Store(1)
	before := len(w.log.of(one))
	next.run()
	if err := next.Stop(t.Context(), one); code(err) != "keeper-silent" {
		t.Errorf("%v", err)
	}
	for _, body := range w.log.of(one)[before:] {
		if c, ok := body.(state.StatusChanged); ok && !c.Status.Live() {
			t.Errorf("it is on record as %s: %s", c.Status, c.Reason)
		}
	}
	next.give(1)
	next.until(one, "served", func(state.Agent) bool { // at the next try
		if next.mu.TryLock() {
			defer next.mu.Unlock()
			if slices.Contains(next.served, one) {
				return true
			}
		}
		_, _ = w.log.Append(t.Context(), state.Event{Body: state.Left{}}) // look again
		return false
	})
}

func TestAKeeperThatLivesIsNotDeadForWantOfASocket(t *testing.T) {
	w := newWorld(t)
	w.add(one, state.Starting, "cat")
	dir := w.Home.Run(string(one))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(dir, "keeper.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	w.run()
	if err := w.Stop(t.Context(), one); code(err) != "keeper-silent" { // adopting came first
		t.Errorf("%v", err)
	}
	if n := len(w.log.of(one)); n != 1 {
		t.Errorf("recorded: %+v", w.log.of(one)[1:])
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if a := w.untilStatus(one, state.Failed); a.Reason != "fletch ended while it was starting" {
		t.Errorf("reason %q", a.Reason)
	}
}

func TestNoMoreAgentsLiveThanThereArePlaces(t *testing.T) {
	w := newWorld(t)
	w.add(one, state.Stopped, "cat")
	w.add(two, state.Stopped, "cat")
	w.Places = 1
	w.run()
	if err := w.Resume(t.Context(), one, clientEnv); err != nil {
		t.Fatal(err)
	}
	if err := w.Resume(t.Context(), two, clientEnv); code(err) != "too-many-agents" {
		t.Errorf("%v", err)
	}
	if a, _ := w.log.Fleet().Agent(two); a.Status != state.Stopped || len(w.log.of(two)) != 1 {
		t.Errorf("it is %s: %s", a.Status, a.Reason)
	}
	if err := w.Stop(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := w.Resume(t.Context(), two, clientEnv); err != nil {
		t.Errorf("the place is free again: %v", err)
	}
	if n := w.taken.Load(); n != 1 {
		t.Errorf("%d places are taken", n)
	}
}

func TestSeenClearsOnlyDone(t *testing.T) {
	w := newWorld(t)
	w.add(one, state.Done, "cat")
	w.add(two, state.Failed, "cat")
	for _, id := range []state.AgentID{one, two} {
		if err := w.Seen(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	first, _ := w.log.Fleet().Agent(one)
	second, _ := w.log.Fleet().Agent(two)
	if first.Status != state.Idle || second.Status != state.Failed {
		t.Errorf("%s and %s", first.Status, second.Status)
	}
	if err := w.Seen(t.Context(), "cccccccc"); code(err) != "no-such-agent" {
		t.Errorf("%v", err)
	}
}
