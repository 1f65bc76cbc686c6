package agents

import (
	"context"
	"errors"

	"fletch/state"
)

// begin starts an agent for the first time.
func (w *worker) begin(plan launchPlan) {
	w.seated = true
	w.start(func(context.Context) (launchPlan, error) { return plan, nil }, nil, nil)
}

// start plans, makes the workspace when it is not there and starts the
// keeper. undo, when not nil, is what goes on record when not even the plan
// can be made; reply, when not nil, is told how it went.
func (w *worker) start(prepare func(context.Context) (launchPlan, error), undo state.Body, reply chan error) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancel = cancel
	a := w.agent()
	var planned bool
	var kill func() error
	w.later(func() error {
		plan, err := prepare(ctx)
		if err != nil {
			return err
		}
		planned = true
		kill, err = w.s.bringUp(ctx, a, plan, w.progress)
		return err
	}, func(err error) {
		cancel()
		w.cancel = nil
		if err == nil {
			err = w.attach()
			if _, over := w.s.exited(w.id); err != nil && over {
				// A short program: it ended before anybody could listen.
				w.ending = false
				w.lay(w.s.ending(w.agent()))
				if reply != nil {
					reply <- nil
				}
				return
			}
			if err != nil {
				// Nobody would ever hear of it again.
				err = errors.Join(err, kill())
			}
		}
		switch {
		case err != nil && !planned && !w.ending && undo != nil:
			w.record(undo)
			w.leave()
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
	w.s.Slog.Warn("a start did not come to be", "agent", w.id, "stopped", stopped, "err", err)
	w.record(change)
	w.leave()
	w.tellEnded()
}

func (w *worker) stop(reply chan error) {
	switch {
	case w.going:
		reply <- noAgent(w.id)
		return
	case w.cancel != nil:
		w.ending = true
		w.cancel()
	case w.keeper != nil:
		if err := w.keeper.Signal("TERM"); err != nil {
			reply <- err
			return
		}
	case w.agent().Status.Live():
		reply <- refuse("keeper-silent", "read run/"+string(w.id)+"/keeper.log in FLETCH_HOME", "its keeper lives and does not answer")
		return
	default:
		reply <- refuse("not-running", "fletch resume continues it", "it is not running")
		return
	}
	w.s.Slog.Info("stopping an agent", "agent", w.id)
	ended := make(chan error, 1)
	w.onEnd = append(w.onEnd, ended)
	w.s.running.Go(func() { w.insistAfter(stopPatience, ended, reply) })
}

func (w *worker) resume(env []string, reply chan error) {
	a := w.agent()
	switch {
	case w.going:
		reply <- noAgent(w.id)
		return
	case w.busy() || a.Status.Live():
		reply <- refuse("still-running", "fletch stop "+a.Name+" ends it", "%s is running", a.Name)
		return
	case !w.s.take(1):
		reply <- errNoPlace
		return
	}
	w.seated = true
	w.record(state.StatusChanged{Status: state.Starting, Note: "continuing"})
	before := state.StatusChanged{Status: a.Status, Reason: a.Reason, Exit: a.Exit}
	w.start(func(ctx context.Context) (launchPlan, error) { return w.s.planResume(ctx, a, env) }, before, reply)
}

// busy reports whether a program runs or is being started.
func (w *worker) busy() bool { return w.cancel != nil || w.keeper != nil }

func (w *worker) remove(force bool, reply chan error) {
	a := w.agent()
	switch {
	case w.going:
		reply <- noAgent(w.id)
		return
	case (w.busy() || a.Status.Live()) && !force:
		reply <- refuse("still-running", "fletch stop "+a.Name+" first, or fletch rm --yes "+a.Name, "%s is running", a.Name)
		return
	case w.busy() || a.Status.Live():
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
	w.going = true
	var entry string
	ctx := w.ctx
	w.later(func() (err error) {
		entry, err = w.s.Git.Remove(ctx, a.ID)
		return err
	}, func(err error) {
		if err == nil {
			_, err = w.s.Log.Append(ctx, state.Event{Agent: a.ID, Body: state.Removed{Trash: entry, Agent: w.agent()}})
		}
		w.gone, w.going = err == nil, false
		w.s.Ended(w.id)
		reply <- err
	})
}
