package hub

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"fletch/broker"
)

// leaveTime is how long open connections may take to end.
const leaveTime = 2 * time.Second

// serve runs every part until ctx ends or the hub is idle, and ends them in
// reverse: clients first, the store last.
func (h *Hub) serve(ctx context.Context, listener net.Listener) error {
	ctx, h.stop = context.WithCancel(ctx)
	defer h.stop()
	fleet := h.store.Fleet()
	gate := broker.New(h.store, nextRequest(fleet))
	h.publisher.gate = gate

	var parts sync.WaitGroup
	failed := make(chan error, 3)
	run := func(what func(context.Context) error) {
		parts.Go(func() {
			if err := what(ctx); err != nil && !errors.Is(err, context.Canceled) {
				failed <- err
			}
			h.stop()
		})
	}
	run(func(ctx context.Context) error { return gate.Run(ctx, fleet) })
	run(h.publisher.run)
	run(h.supervisor.Run)
	run(h.whenIdle)

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
	h.log.Info("hub is up", "version", h.Version, "agents", len(fleet.Agents))
	if err := announce(h.Ready, nil); err != nil {
		h.log.Warn("telling the client that started the hub", "err", err)
	}
	if err := server.Serve(peerListener{listener}); !errors.Is(err, http.ErrServerClosed) {
		failed <- err
	}
	h.stop()
	parts.Wait()
	h.log.Info("hub ends")
	close(failed)
	return <-failed
}

// whenIdle ends the hub once it has had no client and no live agent for
// Config.Idle.
func (h *Hub) whenIdle(ctx context.Context) error {
	for {
		quiet, changed := h.clients.quiet()
		live := h.live()
		wait := h.Idle
		if !quiet || live > 0 {
			wait = 24 * time.Hour
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-changed:
			timer.Stop()
		case <-timer.C:
			if quiet && h.live() == 0 {
				h.log.Info("nobody and nothing to serve")
				return nil
			}
		}
	}
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

// quiet reports whether nobody is connected, and a channel that closes when
// that may have changed.
func (c *clientCount) quiet() (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) == 0, c.changed
}
