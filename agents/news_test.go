//go:build linux

package agents

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"fletch/agents/attach"
	"fletch/state"
)

func TestEveryWayInWhichAnAgentEnds(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		exit   string // exit.json; empty for none
		boot   string // of the last start; empty for none
		status state.Status
		want   state.StatusChanged
	}{
		"stopped by a person":    {`{"code":143,"signal":"terminated","reason":"stopped"}`, "", state.Working, state.StatusChanged{Status: state.Stopped}},
		"ended well":             {`{"code":0}`, "", state.Working, state.StatusChanged{Status: state.Exited}},
		"ended badly":            {`{"code":3}`, "", state.Idle, state.StatusChanged{Status: state.Failed, Reason: "ended with code 3"}},
		"killed":                 {`{"code":137,"signal":"killed"}`, "", state.Working, state.StatusChanged{Status: state.Failed, Reason: "ended by signal killed"}},
		"killed with code 0":     {`{"code":0,"signal":"killed"}`, "", state.Working, state.StatusChanged{Status: state.Failed, Reason: "ended by signal killed"}},
		"a broken sandbox":       {`{"code":0,"reason":"bwrap:\u001b[2J gone\nnow"}`, "", state.Working, state.StatusChanged{Status: state.Failed, Reason: "bwrap:[2J gone now"}},
		"ended before a restart": {`{"code":0}`, "an earlier boot", state.Working, state.StatusChanged{Status: state.Exited}},
		"the machine restarted":  {"", "an earlier boot", state.Working, state.StatusChanged{Status: state.Stopped, Reason: "the machine restarted"}},
		"restarted at its start": {"", "an earlier boot", state.Starting, state.StatusChanged{Status: state.Stopped, Reason: "the machine restarted"}},
		"a dead keeper":          {"", bootID(), state.Working, state.StatusChanged{Status: state.Failed, Reason: "its keeper died"}},
		"half an exit file":      {`{"code":`, bootID(), state.Working, state.StatusChanged{Status: state.Failed, Reason: "its keeper died"}},
		"a hub that died":        {"", bootID(), state.Starting, state.StatusChanged{Status: state.Failed, Reason: "fletch ended while it was starting"}},
		"never started":          {"", "", state.Starting, state.StatusChanged{Status: state.Failed, Reason: "fletch ended while it was starting"}},
	} {
		dir := w.Home.Run(string(one))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"exit.json": c.exit, "boot": c.boot} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := w.ending(state.Agent{ID: one, Status: c.status})
		if got.Status != c.want.Status || got.Reason != c.want.Reason {
			t.Errorf("%s: %s %q, want %s %q", name, got.Status, got.Reason, c.want.Status, c.want.Reason)
		}
		if known := json.Valid([]byte(c.exit)); known != (got.Exit != nil) {
			t.Errorf("%s: exit %+v", name, got.Exit)
		}
	}
}

// told is a worker that listens to a keeper's news without one.
func told(t *testing.T, w *world, status state.Status) *worker {
	t.Helper()
	w.add(one, status, "cat")
	agent := newWorker(w.Supervisor, one)
	agent.ctx, agent.keeper, agent.resting = t.Context(), new(attach.Conn), true
	return agent
}

// hold lets d pass as the worker's loop would.
func (w *worker) hold(d time.Duration) {
	end := time.After(d)
	for {
		select {
		case <-w.settle.C:
			w.flush()
		case <-end:
			return
		}
	}
}

func says(status state.Status, text string) attach.News {
	return attach.News{Kind: attach.NewsStatus, Status: string(status), Text: text}
}

func (w *worker) statuses(log *record) (all []string) {
	for _, body := range log.of(w.id) {
		if c, ok := body.(state.StatusChanged); ok {
			all = append(all, string(c.Status))
		}
	}
	return all
}

func TestAStatusIsNewsOnceItHasHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		agent := told(t, w, state.Idle)
		for range 10 { // a flicker
			agent.heard(says(state.Working, ""))
			agent.hold(100 * time.Millisecond)
			agent.heard(says(state.Idle, ""))
			agent.hold(100 * time.Millisecond)
		}
		agent.hold(time.Second)
		if got := agent.statuses(w.log); len(got) != 0 {
			t.Errorf("a flicker is on record: %v", got)
		}
		agent.heard(says(state.Working, ""))
		agent.hold(299 * time.Millisecond)
		if got := agent.statuses(w.log); len(got) != 0 {
			t.Errorf("too early: %v", got)
		}
		agent.hold(2 * time.Millisecond)
		agent.heard(says(state.Working, "")) // the same once more is no news
		agent.hold(time.Second)
		if got := strings.Join(agent.statuses(w.log), " "); got != "working" {
			t.Errorf("on record: %s", got)
		}
	})
}

func TestDoneStaysThoughTheKeeperSaysIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		agent := told(t, w, state.Working)
		agent.heard(says(state.Done, ""))
		agent.hold(time.Second)
		agent.heard(says(state.Idle, ""))
		agent.hold(time.Second)
		if got := strings.Join(agent.statuses(w.log), " "); got != "done" {
			t.Errorf("on record: %s", got)
		}
		agent.heard(says(state.Waiting, "may I?"))
		agent.hold(time.Second)
		if a, _ := w.log.Fleet().Agent(one); a.Status != state.Waiting || a.Reason != "may I?" {
			t.Errorf("it is %s: %s", a.Status, a.Reason)
		}
	})
}

func TestNoKeepersWordEndsAnAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		agent := told(t, w, state.Working)
		for _, status := range []state.Status{state.Stopped, state.Exited, state.Failed, state.Starting, "", "root"} {
			agent.heard(says(status, ""))
			agent.hold(time.Second)
		}
		if got := agent.statuses(w.log); len(got) != 0 {
			t.Errorf("on record: %v", got)
		}
	})
}

func TestNewsOfBlockedHostsAndSandboxesAreOnRecordMadePlain(t *testing.T) {
	w := newWorld(t)
	agent := told(t, w, state.Working)
	agent.heard(attach.News{Kind: attach.NewsBlocked, Text: "evil.example:443\x1b[31m\n"})
	agent.heard(attach.News{Kind: attach.NewsAttested, Facts: []attach.Fact{{Name: "net\x07", Value: "private", Known: "observed"}}})
	agent.heard(attach.News{Kind: attach.NewsBell})
	agent.heard(attach.Exit{})
	bodies := w.log.of(one)[1:]
	if len(bodies) != 2 {
		t.Fatalf("%+v", bodies)
	}
	if n, ok := bodies[0].(state.Noticed); !ok || n.Kind != "blocked-host" || n.Text != "blocked: evil.example:443[31m" {
		t.Errorf("%+v", bodies[0])
	}
	if s, ok := bodies[1].(state.Sealed); !ok || s.Attestation.Engine != "fake" || s.Attestation.Facts[0] != (state.Fact{Name: "net", Value: "private", Known: "observed"}) {
		t.Errorf("%+v", bodies[1])
	}
}

func TestWorkIsMeasuredAtMostEveryTwoSecondsAndOnceMoreAtTheEnd(t *testing.T) {
	w := newWorld(t) // its files, outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		log := &record{changed: make(chan struct{})}
		s := New(w.Config)
		s.Log = log
		var at []time.Duration
		start := time.Now()
		s.testOnlyMeasure = func(context.Context, state.Agent) (state.Work, error) {
			at = append(at, time.Since(start))
			time.Sleep(100 * time.Millisecond) // measuring takes a while
			return state.Work{Files: len(at)}, nil
		}
		a := state.Agent{ID: one, Status: state.Working, Workspace: "/w"}
		if _, err := log.Append(t.Context(), state.Event{Agent: one, Body: state.Created{Agent: a}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		agent := newWorker(s, one)
		s.running.Go(func() { agent.run(ctx) })
		for range 50 { // five seconds of it
			agent.post(measure{})
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		cancel()
		s.running.Wait()
		want := []time.Duration{0, 2100 * time.Millisecond, 4200 * time.Millisecond, 6300 * time.Millisecond}
		if len(at) != len(want) {
			t.Fatalf("measured at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("measured at %v, want %v", at, want)
				break
			}
		}
		if a, _ := log.Fleet().Agent(one); a.Work.Files != len(want) {
			t.Errorf("on record: %+v", a.Work)
		}
	})
}

func TestOneLineIsOnePrintableLine(t *testing.T) {
	for text, want := range map[string]string{
		"  fine ":               "fine",
		"two\nlines\r\tand":     "two lines  and",
		"\x1b]0;x\x07y":         "]0;xy",
		"bidi \u202e\u200bgone": "bidi gone",
		"bad \xff bytes":        "bad  bytes",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzOneLineIsOnePrintableLineOf256Bytes(f *testing.F) {
	f.Add("a\x1b[2Jb")
	f.Add(strings.Repeat("漢", 100))
	f.Add(strings.Repeat("x", 252) + "漢字")
	f.Fuzz(func(t *testing.T, text string) {
		got := oneLine(text)
		odd := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
		if len(got) > 256 || !utf8.ValidString(got) || strings.ContainsFunc(got, odd) || got != strings.TrimSpace(got) {
			t.Errorf("%q", got)
		}
	})
}
