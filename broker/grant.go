// Package broker is the gate between agents and the outside: a request goes in,
// a person decides, a Grant comes out. It pushes nothing itself.
package broker

import (
	"context"
	"fmt"

	"fletch/state"
)

// Grant is the proof that a person allowed exactly this request. Only the
// gate makes one; the zero value grants nothing.
type Grant struct {
	request state.Request
	made    bool
}

// Request returns what was allowed, and false for a Grant that the gate did
// not make.
func (g Grant) Request() (state.Request, bool) { return g.request, g.made }

// Ticket is one asker's hold on a request. It may be dropped at any time;
// the request stays.
type Ticket struct {
	gate    *Gate
	entry   *entry
	request state.Request
}

// Request is the request as it stood when the ticket was given.
func (t *Ticket) Request() state.Request { return t.request }

// Wait blocks until the request is settled. Errors: [*DeniedError],
// [*SupersededError]; [ErrTaken] when it was allowed and another waiter has
// the one Grant; [ErrClosed] when the gate stopped; ctx's own when ctx ended.
// After the last two nothing happened: the request stays pending, and Wait
// may be called again or the same plan asked again.
//
// Whoever gets the Grant must carry it out and record how that ended. When no
// waiter is left as a person allows, the Grant stays with the request for the
// next Wait or for [Gate.Recover].
func (t *Ticket) Wait(ctx context.Context) (Grant, error) {
	select {
	case <-t.entry.settled:
		return t.answer()
	default:
	}
	select {
	case <-t.entry.settled:
		return t.answer()
	case <-ctx.Done():
		return Grant{}, fmt.Errorf("waiting for request %s: %w", t.request.ID, ctx.Err())
	case <-t.gate.closed:
	}
	// The gate may have settled this one as the last thing it did.
	select {
	case <-t.entry.settled:
		return t.answer()
	default:
		return Grant{}, fmt.Errorf("waiting for request %s: %w", t.request.ID, ErrClosed)
	}
}

func (t *Ticket) answer() (Grant, error) {
	if !t.entry.end.allowed {
		return Grant{}, t.entry.end.err
	}
	if grant, ok := t.gate.grant(t.entry.request); ok {
		return grant, nil
	}
	return Grant{}, fmt.Errorf("waiting for request %s: %w", t.request.ID, ErrTaken)
}

// Recover returns a Grant for every request of fleet that is durably allowed
// and has no outcome, unless this process made its Grant before. The hub
// calls it once, at its start, with the fleet it read from the store; the
// holder first looks at the remote, since the push may have happened just
// before the end of the last process. A record that contradicts itself (its
// plan is not the one that was allowed) grants nothing.
func (g *Gate) Recover(fleet state.Fleet) []Grant {
	var grants []Grant
	for _, r := range fleet.Requests {
		if grant, ok := g.grant(r); ok {
			grants = append(grants, grant)
		}
	}
	return grants
}

// grant is the only place where a Grant is made. r must carry a durable
// verdict that allows exactly its plan; the second call for one id gets
// nothing.
func (g *Gate) grant(r state.Request) (Grant, bool) {
	r.Plan = clonePlan(r.Plan)
	if r.State != state.Allowed || r.Verdict == nil || !r.Verdict.Allow || r.Verdict.Request != r.ID {
		return Grant{}, false
	}
	if r.Plan.Hash() != r.PlanHash || allowable(r, *r.Verdict) != nil {
		return Grant{}, false
	}
	if _, again := g.made.LoadOrStore(r.ID, struct{}{}); again {
		return Grant{}, false
	}
	return Grant{request: r, made: true}, true
}
