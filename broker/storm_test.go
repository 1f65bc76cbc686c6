package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"fletch/state"
)

// TestStormGrantsOnlyWhatIsOnRecord lets agents ask, move on and give up
// while several people decide, right, wrong and twice, on a disk that fails
// now and then. Whatever the order: one grant per id at most, only after its
// durable allow, only for the plan that was allowed, and every waiter is
// answered.
func TestStormGrantsOnlyWhatIsOnRecord(t *testing.T) {
	const agents, rounds, people = 4, 150, 3
	log := &record{}
	var dice sync.Mutex
	failing := rand.New(rand.NewPCG(1, 2))
	log.fail = func(state.Body) error {
		dice.Lock()
		defer dice.Unlock()
		if failing.IntN(10) == 0 {
			return errDisk
		}
		return nil
	}
	g := New(log, 0)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx, state.Fleet{}) }()

	seen := make(chan state.Request, 4*agents*rounds)
	var granted sync.Map // id → Grant
	var waiters, askers, deciders sync.WaitGroup
	for a := range agents {
		askers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(a), 3))
			for i := range rounds {
				p := plan(fmt.Sprint("agent", a), 2+rng.IntN(3))
				ticket, err := g.Ask(ctx, p, fmt.Sprintf("m%d-%d", a, i))
				if err != nil {
					if !errors.Is(err, errDisk) {
						t.Errorf("Ask: %v", err)
					}
					continue
				}
				seen <- ticket.Request()
				waiting, giveUp := context.WithCancel(ctx)
				if rng.IntN(4) == 0 {
					giveUp()
				}
				waiters.Go(func() {
					defer giveUp()
					settleOne(t, log, &granted, ticket, waiting)
				})
			}
		})
	}
	for p := range people {
		deciders.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(p), 4))
			for r := range seen {
				v := yes(r)
				switch rng.IntN(5) {
				case 0:
					v = state.Verdict{Request: r.ID, Reason: "no"}
				case 1:
					v.Plan = strings.Repeat("0", 64)
				case 2:
					continue
				}
				err := g.Decide(ctx, v)
				if err != nil && !errors.Is(err, ErrSettled) && !errors.Is(err, ErrMoved) && !errors.Is(err, errDisk) {
					t.Errorf("Decide: %v", err)
				}
			}
		})
	}
	askers.Wait()
	close(seen)
	deciders.Wait()
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	waiters.Wait() // hangs if an answer was lost

	log.mu.Lock()
	defer log.mu.Unlock()
	for _, grant := range g.Recover(log.fleet) {
		r, _ := grant.Request()
		if _, twice := granted.LoadOrStore(r.ID, grant); twice {
			t.Errorf("request %s was granted and recovered", r.ID)
		}
	}
	allowed := checkOrder(t, log.events)
	n := 0
	granted.Range(func(id, grant any) bool {
		n++
		r, ok := grant.(Grant).Request()
		if !ok || r.Plan.Hash() != allowed[id.(state.RequestID)] {
			t.Errorf("request %v: granted a plan that was not allowed", id)
		}
		return true
	})
	if n != len(allowed) || n == 0 {
		t.Errorf("%d grants for %d allowed requests", n, len(allowed))
	}
}

// settleOne waits for a ticket's answer and checks that a grant came after
// its record.
func settleOne(t *testing.T, log *record, granted *sync.Map, ticket *Ticket, ctx context.Context) {
	grant, err := ticket.Wait(ctx)
	var denied *DeniedError
	var gone *SupersededError
	switch {
	case err == nil:
		r, ok := grant.Request()
		if !ok || r.ID != ticket.Request().ID {
			t.Errorf("ticket %s got grant %+v", ticket.Request().ID, r)
		}
		if _, twice := granted.LoadOrStore(r.ID, grant); twice {
			t.Errorf("request %s was granted twice", r.ID)
		}
		log.mu.Lock()
		defer log.mu.Unlock()
		if onRecord, ok := log.fleet.Request(r.ID); ok && onRecord.State != state.Allowed {
			t.Errorf("request %s was granted while it is %s on record", r.ID, onRecord.State)
		}
	case errors.As(err, &denied), errors.As(err, &gone), errors.Is(err, ErrTaken), errors.Is(err, ErrClosed), errors.Is(err, context.Canceled):
	default:
		t.Errorf("Wait: %v", err)
	}
}

// checkOrder follows the log: at most one end per request, never two open for
// one agent and ref, ids that only grow. It returns the plan hash of each
// allowed request.
func checkOrder(t *testing.T, events []state.Event) map[state.RequestID]string {
	t.Helper()
	open := map[state.RequestID]state.Request{}
	of := map[state.AgentID]state.RequestID{}
	allowed := map[state.RequestID]string{}
	last := 0
	end := func(id state.RequestID) state.Request {
		r, ok := open[id]
		if !ok {
			t.Errorf("request %s ended while it was not open", id)
		}
		delete(open, id)
		delete(of, r.Agent)
		return r
	}
	for _, e := range events {
		switch body := e.Body.(type) {
		case state.Asked:
			r := body.Request
			var n int
			if _, err := fmt.Sscan(string(r.ID), &n); err != nil || n <= last {
				t.Errorf("id %s after %d", r.ID, last)
			}
			last = n
			if other, ok := of[r.Agent]; ok {
				t.Errorf("%s and %s are open for %s at once", other, r.ID, r.Agent)
			}
			open[r.ID], of[r.Agent] = r, r.ID
		case state.Decided:
			r := end(body.Verdict.Request)
			if body.Verdict.Allow {
				if body.Verdict.Plan != r.Plan.Hash() {
					t.Errorf("request %s was allowed for another plan", r.ID)
				}
				allowed[r.ID] = r.Plan.Hash()
			}
		case state.Withdrawn:
			end(body.Request)
		case state.Joined:
			if _, ok := open[body.Request]; !ok {
				t.Errorf("joined %s, which is not open", body.Request)
			}
		default:
			t.Errorf("the gate recorded %s", e.Kind())
		}
	}
	return allowed
}
