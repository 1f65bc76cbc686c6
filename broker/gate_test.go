package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"fletch/state"
)

// record is a Log in memory that can be told to fail, and folds what it
// holds as the store does.
type record struct {
	mu     sync.Mutex
	events []state.Event
	fleet  state.Fleet
	fail   func(state.Body) error
}

var errDisk = errors.New("no space left on device")

func (r *record) Append(_ context.Context, e state.Event) (state.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(e.Body); err != nil {
			return state.Event{}, err
		}
	}
	e.Seq = uint64(len(r.events) + 1)
	r.events = append(r.events, e)
	r.fleet = r.fleet.Apply(e)
	return e, nil
}

func (r *record) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, e := range r.events {
		all = append(all, e.Kind())
	}
	return strings.Join(all, " ")
}

func (r *record) failOn(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = func(b state.Body) error {
		if (state.Event{Body: b}).Kind() == kind {
			return errDisk
		}
		return nil
	}
}

func commit(n int) state.Commit { return state.Commit(fmt.Sprintf("%040x", n)) }

func plan(agent string, n int) state.Plan {
	return state.Plan{
		Agent: state.AgentID(agent), Remote: "https://example.com/acme/shop.git",
		Ref: "refs/heads/fletch/" + agent, Commit: commit(n), Base: commit(1), BaseRef: "main",
		Commits: []state.PlanCommit{{ID: commit(n), Parents: []state.Commit{commit(1)}, Subject: "work"}},
	}
}

func yes(r state.Request) state.Verdict {
	return state.Verdict{Request: r.ID, Allow: true, Commit: r.Plan.Commit, Plan: r.PlanHash}
}

// start runs a gate in a synctest bubble and ends it with the test.
func start(t *testing.T, log *record, fleet state.Fleet) (*Gate, context.CancelFunc) {
	t.Helper()
	g := New(log, 6)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, fleet) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return g, cancel
}

func ask(t *testing.T, g *Gate, p state.Plan, mail string) *Ticket {
	t.Helper()
	ticket, err := g.Ask(t.Context(), p, mail)
	if err != nil {
		t.Fatalf("Ask: %v", err)
	}
	return ticket
}

func TestAllowGrantsExactlyWhatWasOnScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, _ := start(t, log, state.Fleet{})
		ticket := ask(t, g, plan("amber", 2), "m1")
		r := ticket.Request()
		if r.ID != "7" || r.State != state.Pending || r.PlanHash != r.Plan.Hash() || r.Operation != "push" || len(r.Mail) != 1 {
			t.Fatalf("request = %+v", r)
		}
		if err := g.Decide(t.Context(), yes(r)); err != nil {
			t.Fatal(err)
		}
		grant, err := ticket.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, ok := grant.Request()
		if !ok || got.ID != r.ID || got.Plan.Hash() != r.PlanHash || got.Verdict == nil {
			t.Errorf("granted %+v, %v", got, ok)
		}
		if log.kinds() != "asked decided" {
			t.Errorf("log: %s", log.kinds())
		}
	})
}

func TestAllowNeedsTheCommitAndThePlanOnScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, _ := start(t, log, state.Fleet{})
		ticket := ask(t, g, plan("amber", 2), "")
		for name, change := range map[string]func(*state.Verdict){
			"no commit":      func(v *state.Verdict) { v.Commit = "" },
			"short commit":   func(v *state.Verdict) { v.Commit = v.Commit[:12] },
			"another commit": func(v *state.Verdict) { v.Commit = commit(3) },
			"no plan":        func(v *state.Verdict) { v.Plan = "" },
			"another plan":   func(v *state.Verdict) { v.Plan = strings.Repeat("0", 64) },
		} {
			v := yes(ticket.Request())
			change(&v)
			err := g.Decide(t.Context(), v)
			if !errors.Is(err, ErrMoved) || code(err) != "request-moved" || hint(err) == "" {
				t.Errorf("%s: %v (code %q)", name, err, code(err))
			}
		}
		if log.kinds() != "asked" {
			t.Errorf("a refused verdict left a record: %s", log.kinds())
		}
		if err := g.Decide(t.Context(), yes(ticket.Request())); err != nil {
			t.Errorf("the request did not stay pending: %v", err)
		}
	})
}

func TestEachRedFlagIsAcceptedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := start(t, &record{}, state.Fleet{})
		p := plan("amber", 2)
		p.Flags = []state.Flag{{Name: "force", Red: true}, {Name: "secret", Red: true}, {Name: "merge"}}
		ticket := ask(t, g, p, "")
		v := yes(ticket.Request())
		v.Accept = []string{"force", "merge"}
		err := g.Decide(t.Context(), v)
		if !errors.Is(err, ErrFlags) || !strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "force") {
			t.Errorf("one flag short: %v", err)
		}
		v.Accept = []string{"force", "secret"}
		if err := g.Decide(t.Context(), v); err != nil {
			t.Errorf("all red flags accepted: %v", err)
		}
	})
}

func TestNewerPlanOfABranchTakesTheOldOnesPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, _ := start(t, log, state.Fleet{})
		old := ask(t, g, plan("amber", 2), "m1")
		other := ask(t, g, plan("fern", 2), "m9")
		moved := ask(t, g, plan("amber", 3), "m2")
		_, err := old.Wait(t.Context())
		var gone *SupersededError
		if !errors.As(err, &gone) || gone.Why != "moved on: 0000000 is now 0000000" {
			t.Errorf("old waiter: %v", err)
		}
		if err := g.Decide(t.Context(), yes(old.Request())); !errors.Is(err, ErrSettled) || !strings.Contains(err.Error(), "moved on") {
			t.Errorf("allowing the old one: %v", err)
		}
		for _, ticket := range []*Ticket{other, moved} {
			if err := g.Decide(t.Context(), yes(ticket.Request())); err != nil {
				t.Errorf("request %s: %v", ticket.Request().ID, err)
			}
		}
		if want := "asked asked withdrawn asked decided decided"; log.kinds() != want {
			t.Errorf("log: %s, want %s", log.kinds(), want)
		}
	})
}

func TestOtherAgentsRequestOfOneBranchStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := start(t, &record{}, state.Fleet{})
		mine := ask(t, g, plan("amber", 2), "")
		theirs := plan("fern", 3)
		theirs.Ref = mine.Request().Plan.Ref
		ask(t, g, theirs, "")
		if err := g.Decide(t.Context(), yes(mine.Request())); err != nil {
			t.Errorf("another agent took my request away: %v", err)
		}
	})
}

func TestWhatWasBegunIsFinishedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, finish := make(chan struct{}), make(chan struct{})
		log := &record{}
		g := New(logFunc(func(ctx context.Context, e state.Event) (state.Event, error) {
			if _, ok := e.Body.(state.Decided); ok {
				close(begun)
				<-finish
			}
			if ctx.Err() != nil {
				return state.Event{}, ctx.Err()
			}
			return log.Append(ctx, e)
		}), 0)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- g.Run(ctx, state.Fleet{}) }()
		ticket := ask(t, g, plan("amber", 2), "")
		decided := make(chan error, 1)
		impatient, leave := context.WithCancel(t.Context())
		go func() { decided <- g.Decide(impatient, yes(ticket.Request())) }()
		<-begun
		stop()
		leave()
		close(finish)
		if err := <-decided; err != nil {
			t.Errorf("Decide: %v", err)
		}
		if err := <-ran; err != nil {
			t.Errorf("Run: %v", err)
		}
		if _, err := ticket.Wait(t.Context()); err != nil {
			t.Errorf("Wait: %v", err)
		}
		if log.kinds() != "asked decided" {
			t.Errorf("log: %s", log.kinds())
		}
	})
}

// logFunc is a Log of one function.
type logFunc func(context.Context, state.Event) (state.Event, error)

func (f logFunc) Append(ctx context.Context, e state.Event) (state.Event, error) { return f(ctx, e) }

func TestFullDiskAllowsAndAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, _ := start(t, log, state.Fleet{})
		log.failOn("asked")
		if _, err := g.Ask(t.Context(), plan("amber", 2), "m1"); !errors.Is(err, errDisk) {
			t.Fatalf("Ask: %v", err)
		}
		log.failOn("decided")
		ticket := ask(t, g, plan("amber", 2), "m1")
		if ticket.Request().ID != "8" {
			t.Errorf("id %s: the number of a failed asking was used again", ticket.Request().ID)
		}
		for _, v := range []state.Verdict{yes(ticket.Request()), {Request: "8"}} {
			if err := g.Decide(t.Context(), v); !errors.Is(err, errDisk) {
				t.Errorf("Decide: %v", err)
			}
		}
		waiting, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() { _, err := ticket.Wait(waiting); got <- err }()
		synctest.Wait()
		select {
		case err := <-got:
			t.Fatalf("a waiter was told something: %v", err)
		default:
		}
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("Wait: %v", err)
		}
		log.failOn("")
		if err := g.Decide(t.Context(), yes(ticket.Request())); err != nil {
			t.Errorf("the request did not stay pending: %v", err)
		}
	})
}

func TestRequestsGoWithTheirAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := start(t, &record{}, state.Fleet{})
		gone, stays := ask(t, g, plan("amber", 2), ""), ask(t, g, plan("fern", 2), "")
		if err := g.WithdrawAgent(t.Context(), "amber", "its agent was removed"); err != nil {
			t.Fatal(err)
		}
		if err := g.Decide(t.Context(), yes(gone.Request())); !errors.Is(err, ErrSettled) || !strings.Contains(err.Error(), "its agent was removed") {
			t.Errorf("allowing it: %v", err)
		}
		if err := g.Withdraw(t.Context(), gone.Request().ID, "again"); !errors.Is(err, ErrSettled) {
			t.Errorf("withdrawing it again: %v", err)
		}
		if err := g.Withdraw(t.Context(), stays.Request().ID, "its branch is gone"); err != nil {
			t.Error(err)
		}
		if _, err := stays.Wait(t.Context()); err == nil || err.Error() != "its branch is gone" {
			t.Errorf("Wait: %v", err)
		}
	})
}

func TestCancelledCallersChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, _ := start(t, log, state.Fleet{})
		ticket := ask(t, g, plan("amber", 2), "")
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Ask(over, plan("amber", 3), ""); !errors.Is(err, context.Canceled) {
			t.Errorf("Ask: %v", err)
		}
		if err := g.Decide(over, yes(ticket.Request())); !errors.Is(err, context.Canceled) {
			t.Errorf("Decide: %v", err)
		}
		if _, err := ticket.Wait(over); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait: %v", err)
		}
		if log.kinds() != "asked" {
			t.Errorf("log: %s", log.kinds())
		}
	})
}

func TestGateRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := start(t, &record{}, state.Fleet{})
		synctest.Wait()
		if err := g.Run(t.Context(), state.Fleet{}); err == nil {
			t.Error("a second Run owned the requests too")
		}
	})
}

func TestUnaskablePlansAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, _ := start(t, log, state.Fleet{})
		for name, change := range map[string]func(*state.Plan){
			"no agent":        func(p *state.Plan) { p.Agent = "" },
			"no remote":       func(p *state.Plan) { p.Remote = "" },
			"a branch name":   func(p *state.Plan) { p.Commit = "HEAD" },
			"lease by name":   func(p *state.Plan) { p.Old = "main" },
			"the base branch": func(p *state.Plan) { p.BaseRef = "fletch/amber" },
			"main":            func(p *state.Plan) { p.Ref = "refs/heads/main" },
			"a tag":           func(p *state.Plan) { p.Ref = "refs/tags/v1" },
		} {
			p := plan("amber", 2)
			change(&p)
			if _, err := g.Ask(t.Context(), p, "m1"); err == nil {
				t.Errorf("%s: asked", name)
			}
		}
		if _, err := g.Ask(t.Context(), plan("amber", 2), "../x"); err == nil {
			t.Error("asked with a path as message id")
		}
		if log.kinds() != "" {
			t.Errorf("log: %s", log.kinds())
		}
	})
}

func code(err error) string {
	var c interface{ Code() string }
	if errors.As(err, &c) {
		return c.Code()
	}
	return ""
}

func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
