package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"fletch/broker"
	"fletch/broker/mailbox"
	"fletch/gitops"
	"fletch/hub/wire"
	"fletch/state"
)

// operations are all that an agent may ask of the hub.
var operations = []string{"push", "refs"}

// publisher carries requests from mailboxes to the gate and grants from the
// gate to the remote. Each agent has a turn of its own for reading its
// workspace, so that one that hangs delays no other.
type publisher struct {
	hub  *Hub
	gate *broker.Gate

	calls   chan func(*desk)
	stopped chan struct{} // closed when run serves no more calls
	parts   sync.WaitGroup
	// envs holds, for a request being decided, what the client's environment
	// gives the push. It is never stored.
	envs sync.Map // state.RequestID → []string
}

// desk is what only the goroutine of publisher.run touches.
type desk struct {
	ctx      context.Context
	boxes    map[state.AgentID]*served
	followed map[state.RequestID]bool
	// late holds messages that ask again for what was allowed and is being
	// pushed: they get the outcome of that push.
	late map[state.RequestID][]string
}

// served is one mailbox that is being watched.
type served struct {
	box  *mailbox.Box
	turn chan struct{} // holds one token: who has it may read the workspace
	end  context.CancelFunc
}

func newPublisher(h *Hub) *publisher {
	return &publisher{hub: h, calls: make(chan func(*desk), 64), stopped: make(chan struct{})}
}

// run serves until ctx ends. It starts with what an earlier hub left: pushes
// that were allowed and have no outcome, and requests that still wait.
func (p *publisher) run(ctx context.Context) error {
	d := &desk{ctx: ctx, boxes: map[state.AgentID]*served{}, followed: map[state.RequestID]bool{}, late: map[state.RequestID][]string{}}
	fleet := p.hub.store.Fleet()
	p.parts.Go(func() { p.recover(ctx, fleet) })
	for {
		select {
		case call := <-p.calls:
			call(d)
		case <-ctx.Done():
			close(p.stopped)
			p.parts.Wait()
			return nil
		}
	}
}

// recover takes up what was under way when the last hub ended. A push that
// was allowed is looked up at the remote first: it may have happened.
func (p *publisher) recover(ctx context.Context, fleet state.Fleet) {
	for _, grant := range p.gate.Recover(fleet) {
		p.parts.Go(func() { p.finish(ctx, grant) })
	}
	for _, r := range fleet.Pending() {
		ticket, err := p.gate.Ticket(ctx, r.ID)
		if err != nil {
			p.hub.log.Error("taking up a request", "request", r.ID, "err", err)
			continue
		}
		p.follow(ctx, ticket)
	}
}

// open serves an agent's mailbox from now on.
func (p *publisher) open(id state.AgentID) {
	p.call(func(d *desk) {
		if d.boxes[id] != nil {
			return
		}
		box, err := mailbox.Open(p.hub.Home, id)
		if err != nil {
			p.hub.log.Error("opening a mailbox", "agent", id, "err", err)
			return
		}
		ctx, end := context.WithCancel(d.ctx)
		s := &served{box: box, turn: make(chan struct{}, 1), end: end}
		s.turn <- struct{}{}
		d.boxes[id] = s
		p.parts.Go(func() { p.serve(ctx, id, s) })
	})
}

// serve watches one mailbox until ctx ends; it closes it when nobody uses it
// any more.
func (p *publisher) serve(ctx context.Context, id state.AgentID, s *served) {
	var handlers sync.WaitGroup
	err := s.box.Watch(ctx, func(m mailbox.Message) {
		handlers.Go(func() { p.handle(ctx, id, s, m) })
	})
	if err != nil && ctx.Err() == nil {
		p.hub.log.Error("watching a mailbox", "agent", id, "err", err)
	}
	handlers.Wait()
	<-ctx.Done() // answers may come until it is taken out of service
	if err := s.box.Close(); err != nil {
		p.hub.log.Warn("closing a mailbox", "agent", id, "err", err)
	}
}

// close stops serving an agent's mailbox. Its open requests stay.
func (p *publisher) close(id state.AgentID) {
	p.call(func(d *desk) {
		if s := d.boxes[id]; s != nil {
			s.end()
			delete(d.boxes, id)
		}
	})
}

// call has run do f; a publisher that has ended does nothing any more.
func (p *publisher) call(f func(*desk)) {
	select {
	case p.calls <- f:
	case <-p.stopped:
	}
}

// handle does what one message asks.
func (p *publisher) handle(ctx context.Context, id state.AgentID, s *served, m mailbox.Message) {
	if r, ok := p.known(id, m.ID); ok {
		// A message that was dispatched before is never dispatched again.
		p.answerKnown(r, s, m.ID)
		return
	}
	var err error
	switch m.Op {
	case "refs":
		err = p.refs(ctx, id, s, m)
	case "push":
		err = p.push(ctx, id, s, m)
	default:
		p.reply(id, s.box, m.ID, mailbox.UnknownOperation(m.Op, operations...))
		p.notice(ctx, id, "unknown operation "+m.Op)
	}
	if err != nil && ctx.Err() == nil {
		p.refused(ctx, id, s, m.ID, err)
	}
}

// known finds the request that a mailbox id belongs to.
func (p *publisher) known(id state.AgentID, mail string) (state.Request, bool) {
	for _, r := range p.hub.store.Fleet().Requests {
		if r.Agent == id && slices.Contains(r.Mail, mail) {
			return r, true
		}
	}
	return state.Request{}, false
}

func (p *publisher) answerKnown(r state.Request, s *served, mail string) {
	if r.State == state.Pending || r.State == state.Allowed {
		return // whoever follows the request answers when it settles
	}
	p.reply(r.Agent, s.box, mail, outcomeReply(r))
}

// refused tells the agent, and its activity, why nothing was asked.
func (p *publisher) refused(ctx context.Context, id state.AgentID, s *served, mail string, err error) {
	described := wire.Describe(err)
	lines := []string{"fletch: " + described.Message}
	if described.Way != "" {
		lines = append(lines, "fletch: "+described.Way)
	}
	p.reply(id, s.box, mail, mailbox.Refuse(lines...))
	p.notice(ctx, id, described.Message)
}

// notice puts a refusal into an agent's activity.
func (p *publisher) notice(ctx context.Context, id state.AgentID, text string) {
	body := state.Noticed{Kind: "refused", Text: "refused: " + broker.Sanitize(text, 250)}
	if _, err := p.hub.store.Append(ctx, state.Event{Agent: id, Body: body}); err != nil {
		p.hub.log.Error("recording a refusal", "agent", id, "err", err)
	}
}

func (p *publisher) reply(id state.AgentID, box *mailbox.Box, mail string, r mailbox.Reply) {
	if err := box.Reply(mail, r); err != nil {
		p.hub.log.Warn("answering an agent", "agent", id, "mail", mail, "err", err)
	}
}

// refs answers with the real values of the remote's branches.
func (p *publisher) refs(ctx context.Context, id state.AgentID, s *served, m mailbox.Message) error {
	a, ok := p.hub.store.Fleet().Agent(id)
	if !ok {
		return errors.New("the agent is gone")
	}
	refs, err := p.hub.git.RemoteRefs(ctx, a, p.hub.credentials())
	if err != nil {
		return err
	}
	values := make(map[string]string, len(refs))
	for ref, commit := range refs {
		values[ref] = string(commit)
	}
	p.reply(id, s.box, m.ID, mailbox.Reply{OK: true, Refs: values})
	return nil
}

// pushArgs is what the remote helper sends.
type pushArgs struct {
	Commit state.Commit `json:"commit"`
	Ref    string       `json:"ref"`
	Force  bool         `json:"force"`
}

// push takes the commit into quarantine, plans it and puts it before the
// person. The agent's answer comes when the request settles.
func (p *publisher) push(ctx context.Context, id state.AgentID, s *served, m mailbox.Message) error {
	var args pushArgs
	if err := json.Unmarshal(m.Args, &args); err != nil || !args.Commit.Valid() {
		return errors.New(`push wants {"commit":FULLSHA,"ref":REF,"force":BOOL}`)
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	a, ok := p.hub.store.Fleet().Agent(id)
	if !ok {
		return errors.New("the agent is gone")
	}
	if own := "refs/heads/" + a.Branch; args.Ref != own {
		return wire.Errorf("wrong-branch", "push to "+a.Branch, "this agent may push to %s only, not to %s", a.Branch, broker.Sanitize(args.Ref, 120))
	}
	failpoint("push-read")
	if err := p.hub.git.Ingest(ctx, a, args.Commit); err != nil {
		return err
	}
	failpoint("push-ingested")
	began := time.Now()
	plan, err := p.hub.git.Plan(ctx, a, gitops.Ask{Commit: args.Commit, Ref: args.Ref, Force: args.Force}, p.hub.credentials())
	if err != nil {
		return err
	}
	if plan.Old == plan.Commit {
		p.reply(id, s.box, m.ID, mailbox.Reply{OK: true, Lines: []string{"fletch: " + plan.Commit.Short() + " is there already"}})
		return nil
	}
	failpoint("push-planned")
	if twin, ok := p.twin(id, plan.Hash(), "", began); ok {
		p.await(twin.ID, s, m.ID)
		return nil
	}
	ticket, err := p.gate.Ask(ctx, plan, m.ID)
	if err != nil {
		return err
	}
	failpoint("push-asked")
	if twin, ok := p.twin(id, plan.Hash(), ticket.Request().ID, began); ok {
		// The person allowed it between the look above and the question:
		// asking again could only end in a stale lease.
		p.await(twin.ID, s, m.ID)
		return p.gate.Withdraw(ctx, ticket.Request().ID, "allowed already")
	}
	p.follow(ctx, ticket)
	return nil
}

// twin finds a request for exactly this plan that was allowed and is being
// pushed, or was pushed since the plan was begun. One that was pushed before
// is no twin: the plan then says that the remote has lost it.
func (p *publisher) twin(id state.AgentID, hash string, not state.RequestID, began time.Time) (state.Request, bool) {
	for _, r := range p.hub.store.Fleet().Requests {
		same := r.Agent == id && r.PlanHash == hash && r.ID != not
		if same && (r.State == state.Allowed || r.State == state.Pushed && r.Settled.After(began)) {
			return r, true
		}
	}
	return state.Request{}, false
}

// await has a message answered with the outcome of an allowed request.
func (p *publisher) await(id state.RequestID, s *served, mail string) {
	p.call(func(d *desk) {
		r, ok := p.hub.store.Fleet().Request(id)
		if ok && r.State == state.Allowed {
			d.late[id] = append(d.late[id], mail)
			return
		}
		p.reply(r.Agent, s.box, mail, outcomeReply(r))
	})
}

// follow sees a request through to its end, once, whoever asked.
func (p *publisher) follow(_ context.Context, ticket *broker.Ticket) {
	p.call(func(d *desk) {
		id := ticket.Request().ID
		if d.followed[id] {
			return
		}
		d.followed[id] = true
		p.parts.Go(func() { p.see(d.ctx, ticket) })
	})
}

func (p *publisher) see(ctx context.Context, ticket *broker.Ticket) {
	grant, err := ticket.Wait(ctx)
	var denied *broker.DeniedError
	var superseded *broker.SupersededError
	switch {
	case err == nil:
		p.publish(ctx, grant)
	case errors.As(err, &denied), errors.As(err, &superseded):
		p.answer(ticket.Request().ID)
	case ctx.Err() == nil && !errors.Is(err, broker.ErrTaken) && !errors.Is(err, broker.ErrClosed):
		p.hub.log.Error("waiting for a verdict", "request", ticket.Request().ID, "err", err)
	}
}

// publish pushes what was allowed and records what became of it.
func (p *publisher) publish(ctx context.Context, grant broker.Grant) {
	request, ok := grant.Request()
	if !ok {
		return
	}
	failpoint("push-granted")
	outcome, err := p.hub.git.Push(ctx, grant, p.credentials(request.ID))
	if ctx.Err() != nil {
		return // the next hub looks at the remote and finishes this
	}
	failpoint("push-done")
	p.conclude(ctx, request, outcome, err)
}

// finish ends a push that an earlier hub had begun or was about to: it asks
// the remote what is there.
func (p *publisher) finish(ctx context.Context, grant broker.Grant) {
	request, ok := grant.Request()
	if !ok {
		return
	}
	a, there := p.hub.store.Fleet().Agent(request.Agent)
	if !there {
		p.conclude(ctx, request, "", errors.New("its agent was removed before it was pushed"))
		return
	}
	where, err := p.hub.git.Outcome(ctx, a, request, p.credentials(request.ID))
	switch {
	case err != nil:
		p.conclude(ctx, request, "", fmt.Errorf("fletch ended before it was pushed, and the remote does not say what it has: %w", err))
	case where == gitops.AtCommit:
		p.conclude(ctx, request, "pushed before fletch ended", nil)
	case where == gitops.AtOld:
		p.publish(ctx, grant)
	default:
		p.conclude(ctx, request, "", errors.New("the remote's branch moved before it was pushed; push again to ask anew"))
	}
}

// conclude records the outcome and answers everyone who waits.
func (p *publisher) conclude(ctx context.Context, request state.Request, outcome string, err error) {
	var body state.Body = state.Published{Request: request.ID, Outcome: broker.Sanitize(outcome, 500)}
	if err != nil {
		body = state.PublishFailed{Request: request.ID, Outcome: broker.Sanitize(err.Error(), 500)}
	}
	if _, err := p.hub.store.Append(ctx, state.Event{Agent: request.Agent, Body: body}); err != nil {
		p.hub.log.Error("recording the outcome of a push", "request", request.ID, "err", err)
		return
	}
	failpoint("push-recorded")
	p.envs.Delete(request.ID)
	p.answer(request.ID)
	_ = p.hub.supervisor.Measure(ctx, request.Agent)
}

// answer tells every message that waits for a request how it ended.
func (p *publisher) answer(id state.RequestID) {
	r, ok := p.hub.store.Fleet().Request(id)
	if !ok {
		return
	}
	p.call(func(d *desk) {
		s := d.boxes[r.Agent]
		if s == nil {
			delete(d.late, id)
			return // the agent's program ended; nobody waits
		}
		for _, mail := range slices.Concat(r.Mail, d.late[id]) {
			p.reply(r.Agent, s.box, mail, outcomeReply(r))
		}
		delete(d.late, id)
	})
}

// outcomeReply puts the end of a request into the words an agent is told.
func outcomeReply(r state.Request) mailbox.Reply {
	switch r.State {
	case state.Pushed:
		return mailbox.Reply{OK: true, Lines: []string{"fletch: pushed " + r.Plan.Commit.Short() + " to " + r.Plan.Ref}}
	case state.Denied:
		words := "fletch: denied"
		if r.Verdict != nil && r.Verdict.Reason != "" {
			words += ": " + r.Verdict.Reason
		}
		return mailbox.Refuse(words)
	case state.Superseded:
		return mailbox.Refuse("fletch: " + r.Outcome)
	case state.Errored:
		return mailbox.Refuse("fletch: not pushed: " + r.Outcome)
	case state.Pending, state.Allowed:
	}
	return mailbox.Reply{Code: mailbox.CodeWaiting, Lines: []string{"fletch: not answered yet; push the same commit again to keep waiting"}}
}

// decide carries a person's verdict to the gate. The environment is kept
// until the push is over: the grant may be used before Decide returns.
func (p *publisher) decide(ctx context.Context, v wire.Verdict) error {
	if v.Allow {
		p.envs.Store(v.Request, v.Env)
	}
	err := p.gate.Decide(ctx, v.Verdict)
	if err != nil {
		p.envs.Delete(v.Request)
	}
	failpoint("push-decided")
	return err
}

// credentials is what a push may use: the environment of whoever allowed it,
// else the hub's own.
func (p *publisher) credentials(id state.RequestID) gitops.Credentials {
	if env, ok := p.envs.Load(id); ok {
		if list, ok := env.([]string); ok && len(list) > 0 {
			return gitops.Credentials{Env: list}
		}
	}
	return p.hub.credentials()
}

// nextRequest is the highest request number that was ever used.
func nextRequest(fleet state.Fleet) uint64 {
	var highest uint64
	for _, r := range fleet.Requests {
		if n, err := strconv.ParseUint(string(r.ID), 10, 64); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}
