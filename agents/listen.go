package agents

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"fletch/agents/attach"
	"fletch/state"
)

// adopt finds the keeper of an agent that is on record: it attaches to one
// that lives and records the end of one that does not. A keeper that lives
// and cannot be listened to, for want of open files or because it hangs, is
// tried again: what is on record is never rewritten for that.
func (w *worker) adopt() {
	if w.keeper != nil || w.cancel != nil || w.going {
		return
	}
	a := w.agent()
	err := w.attach()
	switch {
	case err == nil:
		if w.pause != firstRetry {
			w.s.Slog.Info("the keeper answers again", "agent", w.id)
		}
		w.pause = firstRetry
	case w.s.keeperGone(w.id, err):
		w.pause = firstRetry
		if a.Status.Live() {
			w.lay(w.s.ending(a))
		}
	default:
		w.s.Slog.Warn("listening to a keeper", "agent", w.id, "again in", w.pause.String(), "err", err)
		w.retry.Reset(w.pause)
		w.pause = min(2*w.pause, lastRetry)
	}
}

// attach connects to the agent's keeper and listens to it.
func (w *worker) attach() error {
	conn, err := attach.Dial(w.ctx, w.s.Home.KeeperSocket(string(w.id)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleHub})
	if err != nil {
		return err
	}
	if !w.seated && !w.s.take(1) {
		return errors.Join(errNoPlace, conn.Close())
	}
	w.keeper, w.seated = conn, true
	w.s.Started(w.id)
	w.s.running.Go(func() { w.listen(conn) })
	return nil
}

// keeperGone tells from why dialling failed whether the agent's keeper is no
// more: nobody listens, and nobody holds the lock that a keeper keeps from
// before it listens until its last breath.
func (s *Supervisor) keeperGone(id state.AgentID, err error) bool {
	unheard := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
	return unheard && !lockHeld(filepath.Join(s.Home.Run(string(id)), "keeper.lock"))
}

// listen hands every message of a keeper to the worker until the connection
// ends.
func (w *worker) listen(conn *attach.Conn) {
	for {
		message, err := conn.Next(w.ctx)
		end := func() { w.heard(message) }
		if err != nil {
			end = func() { w.lost(conn, err) }
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
// file, or it died, or only the connection broke.
func (w *worker) lost(conn *attach.Conn, err error) {
	_ = conn.Close()
	w.keeper = nil
	w.settle.Stop()
	if _, ended := w.s.exited(w.id); ended {
		w.lay(w.s.ending(w.agent()))
		return
	}
	w.s.Slog.Warn("a keeper's connection ended without a word", "agent", w.id, "err", err)
	w.adopt()
}

// lay puts the agent to rest: its end goes on record, and everybody who waits
// for it is told.
func (w *worker) lay(end state.StatusChanged) {
	w.s.Slog.Info("the agent ended", "agent", w.id, "status", string(end.Status), "reason", end.Reason)
	w.record(end)
	w.s.Ended(w.id)
	w.leave()
	w.tellEnded()
	w.measure()
}

// leave gives the worker's place to another agent.
func (w *worker) leave() {
	if w.seated {
		w.seated = false
		w.s.give(1)
	}
}

func (w *worker) tellEnded() {
	for _, waiting := range w.onEnd {
		waiting <- nil
	}
	w.onEnd = nil
}

// heard takes one message of the keeper.
func (w *worker) heard(message attach.Message) {
	news, ok := message.(attach.News)
	if !ok {
		return // frames and exits: the screen is the dashboard's, the end is told by the connection
	}
	switch news.Kind {
	case attach.NewsStatus:
		status := state.Status(news.Status)
		if !status.Live() || status == state.Starting {
			return // no keeper decides that its agent ended; its exit file does
		}
		w.status = state.StatusChanged{Status: status, Reason: oneLine(news.Text)}
		w.settle.Reset(statusDebounce)
	case attach.NewsBlocked:
		w.record(state.Noticed{Kind: "blocked-host", Text: "blocked: " + oneLine(news.Text)})
	case attach.NewsAttested:
		w.record(state.Sealed{Attestation: attested(news, w.agent().Engine)})
	}
}

// flush makes the newest status news, once it has held.
func (w *worker) flush() {
	now := w.agent()
	if w.keeper == nil || now.Status == w.status.Status && now.Reason == w.status.Reason {
		return
	}
	// Done stays until somebody has looked, though the keeper says idle.
	if now.Status == state.Done && w.status.Status == state.Idle {
		return
	}
	was := now.Status
	w.record(w.status)
	if was == state.Working || was == state.Starting {
		w.measure()
	}
}

// insistAfter kills the agent's keeper when the agent does not end in time:
// its sandbox dies with it.
func (w *worker) insistAfter(patience time.Duration, ended, reply chan error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case err := <-ended:
			reply <- err
			return
		case <-w.ctx.Done():
			reply <- w.ctx.Err()
			return
		case <-timer.C:
			kill := func() {
				if w.keeper == nil {
					return
				}
				w.s.Slog.Warn("killing a keeper whose agent does not end", "agent", w.id, "pid", w.keeper.PID())
				if err := killKeeper(w.keeper.PID()); err != nil {
					w.s.Slog.Error("killing a keeper", "agent", w.id, "err", err)
				}
			}
			select {
			case w.ended <- kill:
			case <-w.ctx.Done():
			}
		}
	}
}
