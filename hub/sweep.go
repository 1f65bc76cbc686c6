package hub

import (
	"context"

	"fletch/state"
)

// sweep takes away what dead boxes of this store left behind: once at the
// start and again whenever an agent has ended, until ctx ends. Engines list
// nothing that is in use.
func (h *Hub) sweep(ctx context.Context) {
	for {
		for name, engine := range h.engines {
			left, err := engine.List(ctx, h.store.UUID())
			if err != nil {
				h.log.Warn("looking for what boxes left behind", "engine", name, "err", err)
			}
			for _, l := range left {
				err := engine.Remove(ctx, l)
				h.log.Info("took away what a box left behind", "engine", name, "agent", l.Agent, "what", l.What, "name", l.Name, "err", err)
			}
		}
		select {
		case <-h.swept:
		case <-ctx.Done():
			return
		}
	}
}

// ended is told when an agent's program is gone.
func (h *Hub) ended(id state.AgentID) {
	h.publisher.close(id)
	select {
	case h.swept <- struct{}{}:
	default: // a sweep is due already
	}
}
