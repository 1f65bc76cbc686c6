package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"fletch/state"
)

// Log is where the gate puts its events on record. Append returns only when
// the event is durable; an error means that it is not.
type Log interface {
	Append(context.Context, state.Event) (state.Event, error)
}

// maxMail is how many messages may wait for one request. An agent that asks
// again every 100 s reaches it after a day; beyond it the log would only grow.
const maxMail = 1000

// maxReason is how many bytes of a person's reason are kept.
const maxReason = 500

// keptEnds is how many settled requests the gate can still say the fate of.
const keptEnds = 500

// Gate stands between agents that ask and the person who decides. One
// goroutine, [Gate.Run], owns the open requests; every other method sends it
// a command and gets an answer. Methods called before Run wait for it;
// methods called after it ended return [ErrClosed].
//
// There is one path to a [Grant]: a verdict that names the request, its
// commit and its plan hash, and accepts each red flag, is durable in the log;
// only then is anybody told. For one request id at most one Grant is made in
// one process, whoever asks for it.
type Gate struct {
	log      Log
	next     uint64 // highest number used; Run's after it started
	commands chan command
	running  chan struct{} // holds one token; Run takes it for good
	closed   chan struct{}
	made     sync.Map // state.RequestID → struct{}: a Grant was made
}

// command is one thing that somebody wants of the goroutine that owns the
// requests. Its reply channel has room for the answer, so the gate never
// waits for whoever asked.
type command struct {
	do   func(context.Context, *desk) error
	done chan error
}

// desk is what Run owns: the requests that wait, and how the last ones ended.
type desk struct {
	open  map[state.RequestID]*entry
	ends  map[state.RequestID]string // "denied", "allowed", a withdrawal's words
	order []state.RequestID          // of ends, oldest first
}

// entry is one open request. settled closes after end is set, and end is
// never changed again.
type entry struct {
	request state.Request
	settled chan struct{}
	end     ending
}

type ending struct {
	allowed bool
	err     error // for every waiter, when not allowed
}

// New makes a gate that writes to log. next is the highest request number
// ever used in this store; the first request asked gets the one after it.
func New(log Log, next uint64) *Gate {
	running := make(chan struct{}, 1)
	running <- struct{}{}
	return &Gate{log: log, next: next, commands: make(chan command), running: running, closed: make(chan struct{})}
}

// Run owns the open requests until ctx ends; then it returns nil, and every
// waiter gets [ErrClosed]: its request stays pending on record. It starts from
// what fleet has pending, so an agent that asks again joins what was open
// before a restart. Run may be called once.
func (g *Gate) Run(ctx context.Context, fleet state.Fleet) error {
	select {
	case <-g.running:
	default:
		return errors.New("running the gate: it ran before")
	}
	defer close(g.closed)

	d := &desk{open: map[state.RequestID]*entry{}, ends: map[state.RequestID]string{}}
	for _, r := range fleet.Requests {
		if n, err := strconv.ParseUint(string(r.ID), 10, 64); err == nil {
			g.next = max(g.next, n)
		}
		if r.State == state.Pending {
			r.Plan = clonePlan(r.Plan)
			d.open[r.ID] = newEntry(r)
			continue
		}
		d.remember(r.ID, fate(r))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-g.commands:
			// What was begun is finished: an append that is cut short
			// would leave nobody knowing whether it is on record.
			c.done <- c.do(context.WithoutCancel(ctx), d)
		}
	}
}

// ask hands one command to Run. A ctx that ends before Run took the command
// means that nothing happened; afterwards the answer is waited for, so that
// it is never in doubt.
func (g *Gate) ask(ctx context.Context, do func(context.Context, *desk) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := command{do: do, done: make(chan error, 1)}
	select {
	case g.commands <- c:
		return <-c.done
	case <-ctx.Done():
		return ctx.Err()
	case <-g.closed:
		return ErrClosed
	}
}

// Ask puts plan before the person and returns a ticket to wait with. mail is
// the mailbox id of the message that asks, or empty. When the same agent has
// an open request with the identical plan, mail joins that one and nothing
// new is asked; an open request for the same ref with another plan is
// withdrawn first ("moved on: 9f3c1e7 is now 77ab901").
//
// A plan that no person could rightly allow (no full commit, a protected or
// odd ref) is an error, and so is a log that cannot be written: then nothing
// was asked.
func (g *Gate) Ask(ctx context.Context, plan state.Plan, mail string) (*Ticket, error) {
	plan = clonePlan(plan)
	if err := askable(plan, mail); err != nil {
		return nil, fmt.Errorf("asking: %w", err)
	}
	var t *Ticket
	err := g.ask(ctx, func(ctx context.Context, d *desk) error {
		e, err := g.open(ctx, d, plan, mail)
		if err == nil {
			t = g.ticket(e)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("asking: %w", err)
	}
	return t, nil
}

// Ticket gives a ticket for a request that is open already. After a restart
// the hub takes one for each pending request: whoever asked may be gone, and
// an allow still needs somebody to carry it out. A request that is not open
// is [ErrSettled].
func (g *Gate) Ticket(ctx context.Context, id state.RequestID) (*Ticket, error) {
	var t *Ticket
	err := g.ask(ctx, func(_ context.Context, d *desk) error {
		e, ok := d.open[id]
		if !ok {
			return d.gone(id)
		}
		t = g.ticket(e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("attaching to request %s: %w", printable(id), err)
	}
	return t, nil
}

func (g *Gate) ticket(e *entry) *Ticket {
	t := &Ticket{gate: g, entry: e, request: e.request}
	t.request.Plan = clonePlan(t.request.Plan)
	return t
}

func (g *Gate) open(ctx context.Context, d *desk, plan state.Plan, mail string) (*entry, error) {
	hash := plan.Hash()
	for _, e := range d.open {
		if e.request.Agent == plan.Agent && e.request.PlanHash == hash {
			return e, g.join(ctx, e, mail)
		}
	}
	for _, e := range d.open {
		if e.request.Agent != plan.Agent || e.request.Plan.Ref != plan.Ref {
			continue
		}
		if err := g.withdraw(ctx, d, e, movedOn(e.request.Plan, plan)); err != nil {
			return nil, err
		}
	}
	// The number is used up even when the append fails: an id that might
	// be on record must never mean something else.
	g.next++
	r := state.Request{
		ID:        state.RequestID(strconv.FormatUint(g.next, 10)),
		Agent:     plan.Agent,
		Operation: "push",
		Plan:      plan,
		PlanHash:  hash,
		Asked:     time.Now().UTC(),
		State:     state.Pending,
	}
	if mail != "" {
		r.Mail = []string{mail}
	}
	e := newEntry(r)
	r.Plan = clonePlan(r.Plan) // the log shares nothing with the gate
	if err := g.append(ctx, r.Agent, state.Asked{Request: r}); err != nil {
		return nil, err
	}
	d.open[r.ID] = e
	return e, nil
}

// join adds mail to an open request, unless it is there already: after a
// restart every unanswered message is delivered again.
func (g *Gate) join(ctx context.Context, e *entry, mail string) error {
	if mail == "" || slices.Contains(e.request.Mail, mail) {
		return nil
	}
	if len(e.request.Mail) >= maxMail {
		return refuse(ErrCrowded, "%d messages wait for request %s already", maxMail, e.request.ID)
	}
	if err := g.append(ctx, e.request.Agent, state.Joined{Request: e.request.ID, Mail: mail}); err != nil {
		return err
	}
	e.request.Mail = append(slices.Clone(e.request.Mail), mail)
	return nil
}

// Decide carries out a person's verdict: it is durable before anyone is told.
// A denial needs only the request id; an allow needs the commit and plan hash
// that were on screen and every red flag by name. Errors: [ErrSettled] (no
// longer open), [ErrMoved] (commit or plan differ), [ErrFlags] (a red flag
// was not accepted), [ErrClosed], or the log's own; after any of them the
// request is what it was before.
func (g *Gate) Decide(ctx context.Context, v state.Verdict) error {
	v.Accept = slices.Clone(v.Accept)
	v.Reason = Sanitize(v.Reason, maxReason)
	err := g.ask(ctx, func(ctx context.Context, d *desk) error {
		e, ok := d.open[v.Request]
		if !ok {
			return d.gone(v.Request)
		}
		if v.Allow {
			if err := allowable(e.request, v); err != nil {
				return err
			}
		}
		if err := g.append(ctx, e.request.Agent, state.Decided{Verdict: v}); err != nil {
			return err
		}
		e.request.Verdict = &v
		if v.Allow {
			e.request.State = state.Allowed
			d.settle(e, "allowed", ending{allowed: true})
			return nil
		}
		e.request.State = state.Denied
		d.settle(e, "denied", ending{err: &DeniedError{Request: e.request.ID, Reason: v.Reason}})
		return nil
	})
	if err != nil {
		return fmt.Errorf("deciding request %s: %w", printable(v.Request), err)
	}
	return nil
}

// Withdraw ends an open request without an answer; its waiters get a
// [*SupersededError] with why. A request that is not open is [ErrSettled].
func (g *Gate) Withdraw(ctx context.Context, id state.RequestID, why string) error {
	why = Sanitize(why, maxReason)
	err := g.ask(ctx, func(ctx context.Context, d *desk) error {
		e, ok := d.open[id]
		if !ok {
			return d.gone(id)
		}
		return g.withdraw(ctx, d, e, why)
	})
	if err != nil {
		return fmt.Errorf("withdrawing request %s: %w", printable(id), err)
	}
	return nil
}

// WithdrawAgent ends every open request of one agent, before the agent itself
// goes: a request without its agent must not be allowed any more. No open
// request is no error.
func (g *Gate) WithdrawAgent(ctx context.Context, agent state.AgentID, why string) error {
	why = Sanitize(why, maxReason)
	err := g.ask(ctx, func(ctx context.Context, d *desk) error {
		for _, e := range d.open {
			if e.request.Agent != agent {
				continue
			}
			if err := g.withdraw(ctx, d, e, why); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("withdrawing the requests of an agent: %w", err)
	}
	return nil
}

func (g *Gate) withdraw(ctx context.Context, d *desk, e *entry, why string) error {
	if err := g.append(ctx, e.request.Agent, state.Withdrawn{Request: e.request.ID, Why: why}); err != nil {
		return err
	}
	e.request.State = state.Superseded
	d.settle(e, why, ending{err: &SupersededError{Request: e.request.ID, Why: why}})
	return nil
}

func (g *Gate) append(ctx context.Context, agent state.AgentID, body state.Body) error {
	if _, err := g.log.Append(ctx, state.Event{Agent: agent, Body: body}); err != nil {
		return fmt.Errorf("recording it: %w", err)
	}
	return nil
}

func newEntry(r state.Request) *entry {
	return &entry{request: r, settled: make(chan struct{})}
}

// settle takes e off the desk and tells its waiters. It is called exactly
// once per entry, after the record.
func (d *desk) settle(e *entry, words string, end ending) {
	delete(d.open, e.request.ID)
	d.remember(e.request.ID, words)
	e.end = end
	close(e.settled)
}

func (d *desk) remember(id state.RequestID, words string) {
	d.ends[id] = words
	d.order = append(d.order, id)
	if len(d.order) > keptEnds {
		delete(d.ends, d.order[0])
		d.order = slices.Delete(d.order, 0, 1)
	}
}

// gone says why a request is not open.
func (d *desk) gone(id state.RequestID) error {
	words, ok := d.ends[id]
	if !ok {
		return refuse(ErrSettled, "there is no open request %s", printable(id))
	}
	return refuse(ErrSettled, "%s", words)
}

// fate puts a settled request of an earlier run into words.
func fate(r state.Request) string {
	switch r.State {
	case state.Denied, state.Allowed, state.Pushed:
		return string(r.State)
	case state.Pending, state.Superseded, state.Errored:
	}
	if r.Outcome != "" {
		return r.Outcome
	}
	return string(r.State)
}
