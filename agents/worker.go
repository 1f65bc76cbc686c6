package agents

import (
	"context"
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

// How long a keeper that lives but cannot be listened to is left alone before
// the next try: longer each time.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// command is what a worker is asked to do.
//
//sumtype:decl
type command interface{ command() }

type (
	adopt  struct{}
	begin  struct{ plan launchPlan } // its place is taken already
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
	ended chan func()   // the ends of background work
	over  chan struct{} // closed when run has returned: nobody serves inbox

	ctx    context.Context // of run
	keeper *attach.Conn    // nil while no keeper is attached
	cancel func()          // ends the start under way; nil when there is none
	onEnd  []chan error    // who waits for the agent to be gone
	gone   bool            // removed: run returns
	going  bool            // being removed: nothing else is begun
	ending bool            // a person asked for the end of a start under way
	seated bool            // holds one of the places that open files allow

	retry *time.Timer   // fires when an unheard keeper is tried again
	pause time.Duration // until the next try after that

	status  state.StatusChanged // the newest the keeper said
	settle  *time.Timer         // fires when status has held long enough
	dirty   bool                // work changed since it was last measured
	sizing  bool                // a measurement is under way
	resting bool                // measured a moment ago
	rested  *time.Timer         // fires when measuring is allowed again
}

func newWorker(s *Supervisor, id state.AgentID) *worker {
	return &worker{
		s: s, id: id, inbox: make(chan command, 64), ended: make(chan func(), 64), over: make(chan struct{}),
		settle: idleTimer(), rested: idleTimer(), retry: idleTimer(), pause: firstRetry,
	}
}

// post hands a command over; the worker never blocks long, so neither does
// this. A worker that is over takes nothing.
func (w *worker) post(c command) {
	select {
	case w.inbox <- c:
	case <-w.over:
	}
}

// run serves commands until ctx ends or the agent is removed. Background work
// ends with ctx and is waited for.
func (w *worker) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	w.ctx = ctx
	defer func() {
		cancel()
		close(w.over)
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
		case <-w.retry.C:
			w.adopt()
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
		w.begin(c.plan)
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
