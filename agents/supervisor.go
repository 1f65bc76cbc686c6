// Package agents turns what a person asks for into agents: a workspace, a
// sandbox, a keeper, and the events that say how each one is doing. Every
// agent has a goroutine of its own, so that one that hangs delays no other.
package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fletch/gitops"
	"fletch/home"
	"fletch/sandbox"
	"fletch/state"
)

// Log is where events become durable and where the fleet is read.
type Log interface {
	Append(ctx context.Context, e state.Event) (state.Event, error)
	Fleet() state.Fleet
}

// Config is everything a Supervisor works with.
type Config struct {
	Home       home.Home
	RuntimeDir string // XDG_RUNTIME_DIR of the hub, for keepers
	Self       string // the fletch executable
	Store      string // the store's uuid
	Log        Log
	Git        gitops.Git
	Engine     func(name string) (sandbox.Engine, error)
	// Bin is the directory of helpers shown inside as /run/fletch/bin.
	Bin   string
	Slog  *slog.Logger
	Clock func() time.Time
	// Started is called when an agent's mailbox should be served, and Ended
	// when it should not any more.
	Started func(state.AgentID)
	Ended   func(state.AgentID)
	// Places is how many agents may be live at once, for the hub's open
	// files; 0 for any number. One more is refused before it is on record.
	Places int
}

// Supervisor owns one worker per agent.
type Supervisor struct {
	Config
	calls   chan func(*owner)
	running sync.WaitGroup
	reaped  sync.WaitGroup // keepers that are children of this hub; they outlive Run
	taken   atomic.Int64   // of Places

	// testOnlyMeasure takes the place of Git.Measure.
	testOnlyMeasure func(context.Context, state.Agent) (state.Work, error)
}

// owner is what only the goroutine of Run touches.
type owner struct {
	ctx     context.Context
	workers map[state.AgentID]*worker
	closing bool
}

// New makes a Supervisor; Run starts it.
func New(c Config) *Supervisor {
	return &Supervisor{Config: c, calls: make(chan func(*owner))}
}

// Run adopts every agent that is on record, then serves calls until ctx ends.
// Agents go on when it returns; only the workers that watch them end.
func (s *Supervisor) Run(ctx context.Context) error {
	own := &owner{ctx: ctx, workers: map[state.AgentID]*worker{}}
	for _, a := range s.Log.Fleet().Agents {
		s.hire(own, a.ID).post(adopt{})
	}
	for {
		select {
		case call := <-s.calls:
			call(own)
		case <-ctx.Done():
			own.closing = true
			s.running.Wait()
			return nil
		}
	}
}

// hire starts the worker of an agent.
func (s *Supervisor) hire(own *owner, id state.AgentID) *worker {
	w := newWorker(s, id)
	own.workers[id] = w
	s.running.Go(func() { w.run(own.ctx) })
	return w
}

// on runs f on the owner's goroutine and waits for it.
func (s *Supervisor) on(ctx context.Context, f func(*owner) error) error {
	done := make(chan error, 1)
	select {
	case s.calls <- func(own *owner) { done <- f(own) }:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Launch records new agents and starts them; it returns once they are on
// record, with Status starting. What can be refused at once is: a repository
// or base that is not there, a provider that is not installed, an engine that
// does not work here, a name that is taken.
func (s *Supervisor) Launch(ctx context.Context, l state.Launch) ([]state.Agent, error) {
	plan, err := s.planLaunch(ctx, l)
	if err != nil {
		return nil, err
	}
	var made []state.Agent
	err = s.on(ctx, func(own *owner) error {
		fleet := s.Log.Fleet()
		names, err := pickNames(l.Name, max(1, l.Copies), func(name string) bool {
			return slices.ContainsFunc(fleet.Agents, func(a state.Agent) bool { return a.Name == name })
		})
		if err != nil {
			return err
		}
		if !s.take(len(names)) {
			return errNoPlace
		}
		defer func() { s.give(len(names) - len(made)) }() // those that were not made
		for _, name := range names {
			a := plan.agent(newID(), name, names)
			a.Created, a.Since = s.Clock(), s.Clock()
			a.Workspace = s.Home.Workspace(string(a.ID))
			if _, err := s.Log.Append(ctx, state.Event{Agent: a.ID, Body: state.Created{Agent: a}}); err != nil {
				return fmt.Errorf("recording %s: %w", name, err)
			}
			s.hire(own, a.ID).post(begin{plan: plan})
			made = append(made, a)
		}
		return nil
	})
	return made, err
}

// Stop ends an agent's program and waits until it is gone; its work stays.
func (s *Supervisor) Stop(ctx context.Context, id state.AgentID) error {
	return s.tell(ctx, id, func(reply chan error) command { return stop{reply} })
}

// Resume starts a stopped agent again in its workspace, with the environment
// of whoever asked.
func (s *Supervisor) Resume(ctx context.Context, id state.AgentID, env []string) error {
	return s.tell(ctx, id, func(reply chan error) command { return resume{env, reply} })
}

// Remove puts an agent and its work into the trash. A live one is refused
// unless force, which stops it first.
func (s *Supervisor) Remove(ctx context.Context, id state.AgentID, force bool) error {
	return s.tell(ctx, id, func(reply chan error) command { return remove{force, reply} })
}

// Undo brings back the agent that was removed last.
func (s *Supervisor) Undo(ctx context.Context) (state.Agent, error) {
	var back state.Agent
	err := s.on(ctx, func(own *owner) error {
		fleet := s.Log.Fleet()
		if len(fleet.Trash) == 0 {
			return refuse("nothing-to-undo", "", "nothing was removed that could be brought back")
		}
		last := fleet.Trash[len(fleet.Trash)-1]
		back = last.Agent
		if _, taken := fleet.Named(back.Name); taken {
			return refuse("name-taken", "remove that one first", "an agent called %s is there already", back.Name)
		}
		if err := s.Git.Restore(ctx, last.Entry, back.ID); err != nil {
			return fmt.Errorf("bringing back %s: %w", back.Name, err)
		}
		if back.Status.Live() {
			back.Status, back.Reason, back.Note = state.Stopped, "", ""
		}
		if _, err := s.Log.Append(ctx, state.Event{Agent: back.ID, Body: state.Restored{Agent: back}}); err != nil {
			return fmt.Errorf("bringing back %s: %w", back.Name, err)
		}
		s.hire(own, back.ID)
		return nil
	})
	return back, err
}

// Seen clears "done, not yet seen".
func (s *Supervisor) Seen(ctx context.Context, id state.AgentID) error {
	a, ok := s.Log.Fleet().Agent(id)
	if !ok {
		return noAgent(id)
	}
	if a.Status != state.Done {
		return nil
	}
	_, err := s.Log.Append(ctx, state.Event{Agent: id, Body: state.Seen{}})
	return err
}

// Measure asks for an agent's work to be measured again soon.
func (s *Supervisor) Measure(ctx context.Context, id state.AgentID) error {
	return s.on(ctx, func(own *owner) error {
		if w, ok := s.worker(own, id); ok {
			w.post(measure{})
		}
		return nil
	})
}

// measureWork is gitops' Measure, or what a test puts in its place.
func (s *Supervisor) measureWork(ctx context.Context, a state.Agent) (state.Work, error) {
	if s.testOnlyMeasure != nil {
		return s.testOnlyMeasure(ctx, a)
	}
	return s.Git.Measure(ctx, a)
}

// errNoPlace refuses an agent that the hub could not watch.
var errNoPlace = refuse("too-many-agents", "stop an agent, or raise ulimit -n and then fletch hub stop; the next command starts it anew",
	"the hub may not open enough files for another live agent")

// take takes n places, all or none.
func (s *Supervisor) take(n int) bool {
	if now := s.taken.Add(int64(n)); s.Places > 0 && now > int64(s.Places) {
		s.give(n)
		return false
	}
	return true
}

func (s *Supervisor) give(n int) { s.taken.Add(-int64(n)) }

// worker finds the one of an agent that is on record, and forgets those of
// agents that were removed.
func (s *Supervisor) worker(own *owner, id state.AgentID) (*worker, bool) {
	if _, ok := s.Log.Fleet().Agent(id); !ok {
		delete(own.workers, id)
		return nil, false
	}
	w, ok := own.workers[id]
	return w, ok
}

// tell gives an agent's worker a command and waits for its answer.
func (s *Supervisor) tell(ctx context.Context, id state.AgentID, with func(reply chan error) command) error {
	reply := make(chan error, 1)
	var w *worker
	err := s.on(ctx, func(own *owner) error {
		var ok bool
		if w, ok = s.worker(own, id); !ok {
			return noAgent(id)
		}
		w.post(with(reply))
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-w.over:
	}
	select {
	case err := <-reply: // its last word
		return err
	default:
		return noAgent(id) // removed meanwhile
	}
}

func noAgent(id state.AgentID) error {
	return refuse("no-such-agent", "fletch ls lists them", "there is no agent %s", id)
}

// append records an event of an agent; a store that cannot is told to the
// log, since there is nobody else to tell.
func (s *Supervisor) append(ctx context.Context, id state.AgentID, body state.Body) {
	_, err := s.Log.Append(ctx, state.Event{Agent: id, Body: body})
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Slog.Error("recording an event", "agent", id, "err", err)
	}
}
