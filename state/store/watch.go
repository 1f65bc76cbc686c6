package store

import (
	"context"
	"fmt"

	"fletch/state"
)

// watchBuffer is how many events a watcher may be behind.
const watchBuffer = 256

type watcher struct {
	events chan state.Event
	stop   func() bool // ends the wait for its context
}

// Watch returns the fleet as it is and a channel of every later event, in
// order and without a gap. The channel closes when ctx ends, when the store
// closes, and when its reader is 256 events behind: such a reader calls Watch
// again and begins with a new snapshot.
func (s *Store) Watch(ctx context.Context) (state.Fleet, <-chan state.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return state.Fleet{}, nil, fmt.Errorf("watching the store: %w", ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return state.Fleet{}, nil, fmt.Errorf("watching the store: %w", err)
	}
	w := &watcher{events: make(chan state.Event, watchBuffer)}
	w.stop = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(w)
	})
	s.watchers[w] = struct{}{}
	return s.fleet, w.events, nil
}

// publish makes e part of what is known and tells the watchers, both under
// one lock: a Watch sees e in its snapshot or on its channel, never in both.
func (s *Store) publish(e state.Event, fleet state.Fleet, head sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet, s.head = fleet, head
	for w := range s.watchers {
		select {
		case w.events <- e:
		default:
			s.drop(w)
		}
	}
}

// drop ends one watch. Call it with mu held.
func (s *Store) drop(w *watcher) {
	if _, ok := s.watchers[w]; !ok {
		return
	}
	delete(s.watchers, w)
	w.stop()
	close(w.events)
}
