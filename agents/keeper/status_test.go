package keeper

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fletch/agents/term"
)

// follow runs steps on a tracker in a time of its own and gives what it
// published.
func follow(t *testing.T, rules StatusRules, foreground *atomic.Bool, steps func(*tracker)) []string {
	t.Helper()
	var told []string
	synctest.Test(t, func(t *testing.T) {
		tr := newTracker(rules, func() bool { return foreground == nil || foreground.Load() }, func(status, text string) {
			if text != "" {
				status += " (" + text + ")"
			}
			told = append(told, status)
		})
		tr.start()
		steps(tr)
		tr.close()
	})
	return told
}

// outputFor writes every 100 ms for a while.
func outputFor(tr *tracker, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		tr.output()
	}
}

// pass lets time go by; inside a synctest bubble nobody waits for it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("status = %q, want %q", got, want)
	}
}

func TestAnAgentThatFallsSilentIsDone(t *testing.T) {
	want(t, follow(t, StatusRules{Mode: ModeActivity, Task: true}, nil, func(tr *tracker) {
		outputFor(tr, 10*time.Second)
		pass(3 * time.Second)
		outputFor(tr, time.Second)
		pass(2 * time.Second) // a pause for thought
		outputFor(tr, time.Second)
		pass(time.Hour)
	}), working, done, working, done)
}

func TestDrawingTheFirstScreenIsNoWork(t *testing.T) {
	want(t, follow(t, StatusRules{Mode: ModeActivity}, nil, func(tr *tracker) {
		outputFor(tr, 5*time.Second)
		pass(3 * time.Second)
		tr.input([]byte("do it\r"))
		outputFor(tr, 5*time.Second)
		pass(3 * time.Second)
	}), working, idle, working, done)
}

func TestAnEchoIsNoWork(t *testing.T) {
	want(t, follow(t, StatusRules{Mode: ModeActivity, Task: true}, nil, func(tr *tracker) {
		tr.output()
		pass(3 * time.Second)
		for range 50 {
			tr.input([]byte("x"))
			tr.output()
			pass(200 * time.Millisecond)
		}
		tr.redrawn()
		outputFor(tr, 500*time.Millisecond)
		pass(time.Minute)
	}), working, done)
}

func TestAShellIsIdleASecondAfterItsOutput(t *testing.T) {
	var front atomic.Bool
	front.Store(true)
	want(t, follow(t, StatusRules{Mode: ModeShell, Shell: true}, &front, func(tr *tracker) {
		pass(1100 * time.Millisecond)
		tr.output()
		front.Store(false) // a command runs
		pass(time.Hour)
		front.Store(true)
		tr.output() // the prompt
		pass(900 * time.Millisecond)
		tr.output()
		pass(1100 * time.Millisecond)
	}), working, idle, working, idle)
}

func TestACommandWorksUntilItEnds(t *testing.T) {
	want(t, follow(t, StatusRules{Mode: ModeShell}, nil, func(tr *tracker) {
		tr.output()
		pass(time.Hour)
		tr.output()
	}), working)
}

func TestWhatTheProgramSaysGoesFirst(t *testing.T) {
	rules := StatusRules{Mode: ModeActivity, Task: true, Titles: []TitleRule{{"^busy", working}, {"^ask", waiting}, {"^rest", idle}}}
	want(t, follow(t, rules, nil, func(tr *tracker) {
		tr.event(term.Title{Text: "ask away"})
		outputFor(tr, time.Second)
		tr.event(term.Title{Text: "busy bee"})
		pass(time.Hour)
		tr.event(term.Title{Text: "rest"}) // after work: done
		tr.event(term.Status{State: "blocked", Kind: "permission", Text: "run rm?"})
		tr.event(term.Title{Text: "busy again"})
		outputFor(tr, time.Second)
		tr.event(term.Status{State: "blocked", Kind: "question"})
		tr.event(term.Status{State: "idle"})
		tr.event(term.Status{State: "error"})
		tr.event(term.Status{State: "clear"}) // the title counts again
		tr.event(term.Title{Text: "nothing any rule knows"})
		tr.event(term.Bell{})
		pass(time.Hour)
	}), working, waiting, working, done, "waiting (run rm?)", "waiting (question)", idle, waiting, working, done)
}

func TestAnIdleAgentArmsNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTracker(StatusRules{Mode: ModeActivity, Task: true}, nil, func(string, string) {})
		tr.start()
		tr.output()
		pass(time.Minute)
		if tr.armed {
			t.Error("a timer runs though nothing happens")
		}
	})
}
