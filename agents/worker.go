package agents

import (
	"context"
	"errors"
	"time"

	"fletch/agents/attach"
	"fletch/state"
)

// How long a status must hold before it is news, how long an agent may take
// to end, and how often its work is measured at most.
const (
	statusDebounce  = 300 * time.Millisecond
	stopPatience    = 12 * time.Second
	measureInterval = 2 * time.Second
	measureTimeout  = 2 * time.Minute
)

// command is what a worker is asked to do.
//
//sumtype:decl
type command interface{ command() }

type (
	adopt  struct{}
	begin  struct{ plan launchPlan }
	stop   struct{ reply chan error }
	resume struct {
		env   []string
		reply chan error
	}
	remove struct {
		force bool
		reply chan error
	}
	measure struct{}
)

func (adopt) command()   {}
func (begin) command()   {}
func (stop) command()    {}
func (resume) command()  {}
func (remove) command()  {}
func (measure) command() {}

// worker watches over one agent. Everything in it belongs to the goroutine
// of run; slow work happens in goroutines that hand their end back as a
// function for run to call.
type worker struct {
	s     *Supervisor
	id    state.AgentID
	inbox chan command
	ended chan func() // the ends of background work

	ctx    context.Context // of run
	keeper *attach.Conn    // nil while no keeper is attached
	cancel func()          // ends the start under way; nil when there is none
	onEnd  []chan error    // who waits for the agent to be gone
	gone   bool            // removed: run returns
	ending bool            // a person asked for the end of a start under way

	status  state.StatusChanged // the newest the keeper said
	settle  *time.Timer         // fires when status has held long enough
	dirty   bool                // work changed since it was last measured
	sizing  bool                // a measurement is under way
	resting bool                // measured a moment ago
	rested  *time.Timer         // fires when measuring is allowed again
}

func newWorker(s *Supervisor, id state.AgentID) *worker {
	return &worker{s: s, id: id, inbox: make(chan command, 64), ended: make(chan func(), 64)}
}

// post hands a command over; the worker never blocks long, so neither does
// this.
func (w *worker) post(c command) { w.inbox <- c }

// run serves commands until ctx ends or the agent is removed. Background work
// ends with ctx and is waited for.
func (w *worker) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	w.ctx = ctx
	w.settle, w.rested = idleTimer(), idleTimer()
	defer func() {
		cancel()
		if w.keeper != nil {
			_ = w.keeper.Close()
		}
	}()
	for !w.gone {
		select {
		case c := <-w.inbox:
			w.serve(c)
		case end := <-w.ended:
			end()
		case <-w.settle.C:
			w.flush()
		case <-w.rested.C:
			w.resting = false
			w.size()
		case <-ctx.Done():
			return
		}
	}
}

func idleTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (w *worker) serve(c command) {
	switch c := c.(type) {
	case adopt:
		w.adopt()
	case begin:
		w.start(c.plan, nil)
	case stop:
		w.stop(c.reply)
	case resume:
		w.resume(c.env, c.reply)
	case remove:
		w.remove(c.force, c.reply)
	case measure:
		w.measure()
	}
}

// later runs f apart and then end on the worker's goroutine, unless the
// worker is over by then.
func (w *worker) later(f func() error, end func(error)) {
	w.s.running.Go(func() {
		err := f()
		select {
		case w.ended <- func() { end(err) }:
		case <-w.ctx.Done():
		}
	})
}

// agent is the record as it is now.
func (w *worker) agent() state.Agent {
	a, _ := w.s.Log.Fleet().Agent(w.id)
	return a
}

func (w *worker) record(body state.Body) { w.s.append(w.ctx, w.id, body) }

// adopt picks up where an earlier hub left off: attach to a keeper that
// lives, or find out how it ended.
func (w *worker) adopt() {
	if w.attach() == nil {
		return
	}
	a := w.agent()
	if a.Status.Live() {
		w.record(w.s.ending(a))
	}
}

// start makes the workspace when it is not there and starts the keeper.
// reply, when not nil, is told whether that worked.
func (w *worker) start(plan launchPlan, reply chan error) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancel = cancel
	a := w.agent()
	w.later(func() error { return w.s.bringUp(ctx, a, plan, w.progress) }, func(err error) {
		cancel()
		w.cancel = nil
		if err == nil {
			err = w.attach()
		}
		switch {
		case err != nil:
			w.failed(err, w.ending)
		case w.ending: // the keeper was up before the start could be given up
			_ = w.keeper.Signal("TERM")
		}
		w.ending = false
		if reply != nil {
			reply <- err
		}
	})
}

// progress notes what a start is doing; it is called from the goroutine of
// the start.
func (w *worker) progress(note string) {
	w.record(state.StatusChanged{Status: state.Starting, Note: note})
}

// failed records why a start did not come to be; one that a person stopped
// is no failure.
func (w *worker) failed(err error, stopped bool) {
	change := state.StatusChanged{Status: state.Failed, Reason: oneLine(err.Error())}
	if stopped {
		change = state.StatusChanged{Status: state.Stopped, Reason: "stopped while starting"}
	}
	w.record(change)
	w.tellEnded()
}

// attach connects to the agent's keeper and listens to it.
func (w *worker) attach() error {
	conn, err := attach.Dial(w.ctx, w.s.Home.KeeperSocket(string(w.id)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleHub})
	if err != nil {
		return err
	}
	w.keeper = conn
	w.s.Started(w.id)
	w.s.running.Go(func() { w.listen(conn) })
	return nil
}

// listen hands every message of a keeper to the worker until the connection
// ends.
func (w *worker) listen(conn *attach.Conn) {
	for {
		message, err := conn.Next(w.ctx)
		end := func() { w.heard(message) }
		if err != nil {
			end = func() { w.lost(conn) }
		}
		select {
		case w.ended <- end:
		case <-w.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// lost is called when a keeper's connection ended: the keeper wrote its exit
// file, or it died.
func (w *worker) lost(conn *attach.Conn) {
	_ = conn.Close()
	w.keeper = nil
	w.settle.Stop()
	w.record(w.s.ending(w.agent()))
	w.s.Ended(w.id)
	w.tellEnded()
	w.measure()
}

func (w *worker) tellEnded() {
	for _, waiting := range w.onEnd {
		waiting <- nil
	}
	w.onEnd = nil
}

func (w *worker) stop(reply chan error) {
	switch {
	case w.cancel != nil:
		w.ending = true
		w.cancel()
	case w.keeper != nil:
		if err := w.keeper.Signal("TERM"); err != nil {
			reply <- err
			return
		}
	default:
		reply <- refuse("not-running", "fletch resume continues it", "it is not running")
		return
	}
	ended := make(chan error, 1)
	w.onEnd = append(w.onEnd, ended)
	keeper := w.keeper
	w.s.running.Go(func() { w.insist(keeper, ended, reply) })
}

// insist waits for the agent to end. A keeper that does not bring that about
// is killed: its sandbox dies with it.
func (w *worker) insist(keeper *attach.Conn, ended, reply chan error) {
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case err := <-ended:
		reply <- err
		return
	case <-w.ctx.Done():
		reply <- w.ctx.Err()
		return
	case <-patience.C:
	}
	if keeper != nil {
		if err := killKeeper(keeper.PID()); err != nil {
			reply <- err
			return
		}
	}
	select {
	case err := <-ended:
		reply <- err
	case <-w.ctx.Done():
		reply <- w.ctx.Err()
	}
}

func (w *worker) resume(env []string, reply chan error) {
	a := w.agent()
	if w.cancel != nil || w.keeper != nil || a.Status.Live() {
		reply <- refuse("still-running", "fletch stop "+a.Name+" ends it", "%s is running", a.Name)
		return
	}
	w.record(state.StatusChanged{Status: state.Starting, Note: "continuing"})
	ctx := w.ctx
	var plan launchPlan
	w.later(func() (err error) {
		plan, err = w.s.planResume(ctx, a, env)
		return err
	}, func(err error) {
		if err != nil {
			w.record(state.StatusChanged{Status: a.Status, Reason: a.Reason, Exit: a.Exit})
			reply <- err
			return
		}
		w.start(plan, reply)
	})
}

func (w *worker) remove(force bool, reply chan error) {
	a := w.agent()
	if w.cancel != nil || w.keeper != nil {
		if !force {
			reply <- refuse("still-running", "fletch stop "+a.Name+" first, or fletch rm --yes "+a.Name, "%s is running", a.Name)
			return
		}
		stopped := make(chan error, 1)
		w.stop(stopped)
		w.later(func() error { return <-stopped }, func(err error) {
			if err != nil {
				reply <- err
				return
			}
			w.remove(false, reply)
		})
		return
	}
	var entry string
	ctx := w.ctx
	w.later(func() (err error) {
		entry, err = w.s.Git.Remove(ctx, a.ID)
		return err
	}, func(err error) {
		if err == nil {
			_, err = w.s.Log.Append(ctx, state.Event{Agent: a.ID, Body: state.Removed{Trash: entry, Agent: w.agent()}})
		}
		w.gone = err == nil
		w.s.Ended(w.id)
		reply <- err
	})
}

// measure marks the work as changed and measures it when that is allowed.
func (w *worker) measure() {
	w.dirty = true
	w.size()
}

func (w *worker) size() {
	a := w.agent()
	if !w.dirty || w.sizing || w.resting || w.cancel != nil || a.Workspace == "" {
		return
	}
	w.dirty, w.sizing = false, true
	ctx, cancel := context.WithTimeout(w.ctx, measureTimeout)
	var work state.Work
	w.later(func() (err error) {
		defer cancel()
		work, err = w.s.Git.Measure(ctx, a)
		return err
	}, func(err error) {
		w.sizing = false
		switch {
		case err == nil && work != w.agent().Work:
			w.record(state.Measured{Work: work})
		case err != nil && !errors.Is(err, context.Canceled):
			w.s.Slog.Warn("measuring work", "agent", w.id, "err", err)
		}
		w.resting = true
		w.rested.Reset(measureInterval)
	})
}
