package agents

import (
	"context"
	"errors"

	"fletch/state"
)

// measure marks the work as changed and measures it when that is allowed:
// never twice at once, and never again within measureInterval.
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
		work, err = w.s.measureWork(ctx, a)
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
