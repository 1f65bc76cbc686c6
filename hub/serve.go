package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"fletch/broker"
	"fletch/state"
)

// leaveTime is how long open connections may take to end.
const leaveTime = 2 * time.Second

// serve runs every part until ctx ends or the hub is idle, and ends them in
// reverse: clients first, the store last.
func (h *Hub) serve(ctx context.Context, listener net.Listener) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	h.end = func(why string) { end(errors.New(why)) }
	fleet := h.store.Fleet()
	gate := broker.New(h.store, nextRequest(fleet))
	h.publisher.gate = gate

	var parts sync.WaitGroup
	failed := make(chan error, 5)
	run := func(name string, part func(context.Context) error) {
		parts.Go(func() {
			err := part(ctx)
			if err != nil && !errors.Is(err, context.Canceled) {
				failed <- fmt.Errorf("%s: %w", name, err)
				h.end(name + " failed")
			}
			h.end(name + " ended")
		})
	}
	run("the gate", func(ctx context.Context) error { return gate.Run(ctx, fleet) })
	run("the publisher", h.publisher.run)
	run("the supervisor", h.supervisor.Run)
	parts.Go(func() { h.whenIdle(ctx) })
	parts.Go(func() { h.sweep(ctx) })

	server := &http.Server{
		Handler:           h.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withPeer,
		ConnState:         h.clients.track,
	}
	parts.Go(func() {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		if server.Shutdown(closing) != nil {
			_ = server.Close()
		}
	})
	h.log.Info("hub is up", "version", h.Version, "pid", os.Getpid(), "agents", len(fleet.Agents), "places", h.supervisor.Places)
	if err := announce(h.Ready, nil); err != nil {
		h.log.Warn("telling the client that started the hub", "err", err)
	}
	if err := server.Serve(peerListener{listener}); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("the server: %w", err)
		h.end("the server failed")
	}
	parts.Wait()
	close(failed)
	var faults []error
	for err := range failed {
		faults = append(faults, err)
	}
	err := errors.Join(faults...)
	h.log.Info("hub ends", "why", context.Cause(ctx).Error(), "err", err)
	return err
}

// whenIdle ends the hub once it has had no client and no work for
// Config.Idle.
func (h *Hub) whenIdle(ctx context.Context) {
	for {
		alone, changed := h.clients.alone()
		idle := alone && h.work() == 0
		timer := time.NewTimer(h.Idle)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
			timer.Stop()
		case <-timer.C:
			if still, _ := h.clients.alone(); idle && still && h.work() == 0 {
				h.end("nobody and nothing to serve")
				return
			}
		}
	}
}

// work counts what the hub is needed for without clients: agents whose keeper
// should be running, and pushes that were allowed and are not over.
func (h *Hub) work() int {
	n := h.live()
	for _, r := range h.store.Fleet().Requests {
		if r.State == state.Allowed {
			n++
		}
	}
	return n
}

// live counts agents whose keeper should be running.
func (h *Hub) live() int {
	n := 0
	for _, a := range h.store.Fleet().Agents {
		if a.Status.Live() {
			n++
		}
	}
	return n
}

// clientCount knows how many connections are open.
type clientCount struct {
	mu      sync.Mutex
	open    map[net.Conn]bool
	changed chan struct{}
}

func newClientCount() *clientCount {
	return &clientCount{open: map[net.Conn]bool{}, changed: make(chan struct{})}
}

// track is http.Server.ConnState.
func (c *clientCount) track(conn net.Conn, to http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := len(c.open)
	switch to {
	case http.StateNew:
		c.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	case http.StateActive, http.StateIdle:
	}
	if len(c.open) != was {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// alone reports whether nobody is connected, and a channel that closes when
// that may have changed.
func (c *clientCount) alone() (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) == 0, c.changed
}
