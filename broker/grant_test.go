package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"fletch/state"
)

func TestOneGrantHoweverManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, _ := start(t, log, state.Fleet{})
		var tickets []*Ticket
		for i := range 5 {
			tickets = append(tickets, ask(t, g, plan("amber", 2), fmt.Sprint("m", i)))
		}
		if err := g.Decide(t.Context(), yes(tickets[0].Request())); err != nil {
			t.Fatal(err)
		}
		granted := 0
		for _, ticket := range tickets {
			_, err := ticket.Wait(t.Context())
			switch {
			case err == nil:
				granted++
			case !errors.Is(err, ErrTaken):
				t.Errorf("Wait: %v", err)
			}
		}
		granted += len(g.Recover(log.fleet))
		if granted != 1 {
			t.Errorf("%d grants for one request", granted)
		}
	})
}

func TestGrantOfALostAskerIsRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, _ := start(t, log, state.Fleet{})
		ticket := ask(t, g, plan("amber", 2), "m1")
		if err := g.Decide(t.Context(), yes(ticket.Request())); err != nil {
			t.Fatal(err)
		}
		if n := len(g.Recover(log.fleet)); n != 1 {
			t.Errorf("recovered %d grants, want 1", n)
		}
		if n := len(g.Recover(log.fleet)); n != 0 {
			t.Errorf("recovered %d grants again", n)
		}
		if _, err := ticket.Wait(t.Context()); !errors.Is(err, ErrTaken) {
			t.Errorf("Wait after Recover: %v", err)
		}
	})
}

func TestRestartKeepsPendingAndRecoversAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		g, stop := start(t, log, state.Fleet{})
		pending, allowed := ask(t, g, plan("amber", 2), "m1"), ask(t, g, plan("fern", 4), "m2")
		if err := g.Decide(t.Context(), yes(allowed.Request())); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { _, err := pending.Wait(t.Context()); got <- err }()
		synctest.Wait()
		stop()
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Errorf("waiter at the end: %v", err)
		}
		if _, err := g.Ask(t.Context(), plan("amber", 9), ""); !errors.Is(err, ErrClosed) {
			t.Errorf("Ask after the end: %v", err)
		}

		again := New(log, 0)
		grants := again.Recover(log.fleet)
		if len(grants) != 1 {
			t.Fatalf("%d grants recovered, want 1", len(grants))
		}
		if r, ok := grants[0].Request(); !ok || r.ID != allowed.Request().ID {
			t.Errorf("recovered %+v", r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- again.Run(ctx, log.fleet) }()
		rejoined := ask(t, again, plan("amber", 2), "m1") // delivered again
		if rejoined.Request().ID != pending.Request().ID || len(rejoined.Request().Mail) != 1 {
			t.Errorf("asked anew: %+v", rejoined.Request())
		}
		held, err := again.Ticket(t.Context(), pending.Request().ID)
		if err != nil || held.Request().PlanHash != pending.Request().PlanHash {
			t.Errorf("attaching to what was pending: %v", err)
		}
		if _, err := again.Ticket(t.Context(), allowed.Request().ID); !errors.Is(err, ErrSettled) {
			t.Errorf("attaching to what was settled: %v", err)
		}
		if fresh := ask(t, again, plan("calm", 5), ""); fresh.Request().ID != "9" {
			t.Errorf("id %s: a number was used again", fresh.Request().ID)
		}
		if err := again.Decide(t.Context(), yes(allowed.Request())); !errors.Is(err, ErrSettled) {
			t.Errorf("deciding what was decided before the restart: %v", err)
		}
		if err := again.Decide(t.Context(), yes(pending.Request())); err != nil {
			t.Error(err)
		}
		if _, err := held.Wait(t.Context()); err != nil {
			t.Errorf("nobody can carry out what was allowed after the restart: %v", err)
		}
		cancel()
		<-done
	})
}

func TestRecordThatContradictsItselfGrantsNothing(t *testing.T) {
	r := state.Request{ID: "7", Agent: "amber", Plan: plan("amber", 2), State: state.Allowed}
	r.PlanHash = r.Plan.Hash()
	v := yes(r)
	r.Verdict = &v
	if n := len(New(nil, 0).Recover(state.Fleet{Requests: []state.Request{r}})); n != 1 {
		t.Fatalf("a sound record gives %d grants", n)
	}
	for name, change := range map[string]func(*state.Request){
		"pending":           func(r *state.Request) { r.State = state.Pending },
		"already pushed":    func(r *state.Request) { r.State = state.Pushed },
		"no verdict":        func(r *state.Request) { r.Verdict = nil },
		"verdict denies":    func(r *state.Request) { r.Verdict.Allow = false },
		"verdict of 8":      func(r *state.Request) { r.Verdict.Request = "8" },
		"another commit":    func(r *state.Request) { r.Plan.Commit = commit(9) },
		"another ref":       func(r *state.Request) { r.Plan.Ref = "refs/heads/fletch/other" },
		"hash of something": func(r *state.Request) { r.PlanHash = strings.Repeat("0", 64) },
		"flag since":        func(r *state.Request) { r.Plan.Flags = []state.Flag{{Name: "force", Red: true}} },
	} {
		r, v := r, v
		r.Verdict = &v
		change(&r)
		if n := len(New(nil, 0).Recover(state.Fleet{Requests: []state.Request{r}})); n != 0 {
			t.Errorf("%s: %d grants", name, n)
		}
	}
}

func TestPlanChangedAfterAskingIsNotWhatIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := start(t, &record{}, state.Fleet{})
		p := plan("amber", 2)
		ticket := ask(t, g, p, "")
		p.Commits[0].Subject = "something else"
		ticket.Request().Plan.Commits[0].ID = commit(99)
		if err := g.Decide(t.Context(), yes(ticket.Request())); err != nil {
			t.Fatal(err)
		}
		grant, err := ticket.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := grant.Request(); r.Plan.Commits[0].Subject != "work" || r.Plan.Commits[0].ID != commit(2) {
			t.Errorf("granted %+v", r.Plan.Commits[0])
		}
	})
}

func TestDenialReachesEveryWaiterWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := start(t, &record{}, state.Fleet{})
		first, second := ask(t, g, plan("amber", 2), "m1"), ask(t, g, plan("amber", 2), "m2")
		if first.Request().ID != second.Request().ID {
			t.Fatal("the same plan was asked twice")
		}
		got := make(chan error, 2)
		for _, ticket := range []*Ticket{first, second} {
			go func() { _, err := ticket.Wait(t.Context()); got <- err }()
		}
		synctest.Wait()
		if err := g.Decide(t.Context(), state.Verdict{Request: first.Request().ID, Reason: "use tabs\x1b[2J\n"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var denied *DeniedError
			if err := <-got; !errors.As(err, &denied) || denied.Reason != "use tabs\uFFFD[2J" {
				t.Errorf("waiter got %v", err)
			}
		}
	})
}

func TestZeroGrantAndZeroVerdictAllowNothing(t *testing.T) {
	if _, ok := (Grant{}).Request(); ok {
		t.Error("a zero Grant grants")
	}
	synctest.Test(t, func(t *testing.T) {
		g, _ := start(t, &record{}, state.Fleet{})
		ticket := ask(t, g, plan("amber", 2), "")
		if err := g.Decide(t.Context(), state.Verdict{}); !errors.Is(err, ErrSettled) {
			t.Errorf("the zero verdict: %v", err)
		}
		if err := g.Decide(t.Context(), state.Verdict{Request: ticket.Request().ID}); err != nil {
			t.Fatal(err)
		}
		_, err := ticket.Wait(t.Context())
		var denied *DeniedError
		if !errors.As(err, &denied) {
			t.Errorf("a verdict of only an id: %v, want a denial", err)
		}
	})
}
