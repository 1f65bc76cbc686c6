// Package hub is the daemon: one per FLETCH_HOME. It owns the store, the
// supervisor, the publish gate and the mailboxes, and answers clients on a
// unix socket. It starts by itself and ends when there is nobody and nothing
// to serve; agents do not depend on it.
package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fletch/agents"
	"fletch/broker"
	"fletch/broker/inside"
	"fletch/gitops"
	"fletch/home"
	"fletch/hub/wire"
	"fletch/sandbox"
	"fletch/sandbox/engines"
	"fletch/state/store"
)

// takeOverTime is how long a new hub waits for the one before it to end.
const takeOverTime = 20 * time.Second

// Config is how a hub is started.
type Config struct {
	Home       home.Home
	RuntimeDir string // XDG_RUNTIME_DIR
	Self       string // the fletch executable
	Version    string
	Env        []string // the hub's own environment, for talking to remotes
	// Idle is how long the hub stays without clients and live agents; 60 s
	// when zero.
	Idle time.Duration
	// Ready receives one line, a wire.Failure, once the hub answers or cannot
	// start. It is closed after that.
	Ready io.WriteCloser
}

// Hub is a running daemon.
type Hub struct {
	Config
	store      *store.Store
	supervisor *agents.Supervisor
	publisher  *publisher
	log        *slog.Logger
	started    time.Time
	end        func(why string) // ends the hub; the first reason is kept
	clients    *clientCount
	engines    map[string]sandbox.Engine
	git        gitops.Git
	swept      chan struct{} // holds one token when a sweep is due
}

// Main runs a hub until ctx ends, it is told to stop, or it is idle. Another
// hub that is already there is no error: Main returns at once.
func Main(ctx context.Context, c Config) error {
	unlock, err := takeOver(ctx, c.Home)
	if errors.Is(err, errHeld) {
		return announce(c.Ready, nil)
	}
	if err != nil {
		return announce(c.Ready, fmt.Errorf("taking the hub's lock: %w", err))
	}
	defer unlock()
	if err := harden(); err != nil {
		return announce(c.Ready, fmt.Errorf("hardening the hub: %w", err))
	}
	log, logFile, err := openLog(c.Home.HubLog(), variable(c.Env, "FLETCH_LOG"))
	if err != nil {
		return announce(c.Ready, err)
	}
	defer func() { _ = logFile.Close() }()
	crashOutput(c.Home.RunRoot())
	h, listener, err := open(c, log)
	if err != nil {
		log.Error("the hub does not start", "err", err)
		return announce(c.Ready, err)
	}
	defer func() { _ = h.store.Close() }()
	return h.serve(ctx, listener)
}

// variable reads one variable of an environment.
func variable(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// takeOver takes the hub's lock. A hub that holds it and answers is the hub;
// one that holds it and does not is on its way out and is waited for.
func takeOver(ctx context.Context, h home.Home) (unlock func(), err error) {
	deadline := time.Now().Add(takeOverTime)
	for {
		unlock, err := holdLock(h.HubLock())
		if !errors.Is(err, errHeld) || answering(h.HubSocket()) {
			return unlock, err
		}
		if time.Now().After(deadline) {
			return nil, errors.New("another hub holds it and does not answer")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func answering(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// announce tells whoever started the hub how that went.
func announce(ready io.WriteCloser, err error) error {
	if ready == nil {
		return err
	}
	var failure wire.Failure
	if err != nil {
		failure.Error = wire.Describe(err)
	}
	return errors.Join(err, json.NewEncoder(ready).Encode(failure), ready.Close())
}

// open reads the store and makes the parts; nothing runs yet.
func open(c Config, log *slog.Logger) (*Hub, net.Listener, error) {
	if c.Idle == 0 {
		c.Idle = time.Minute
	}
	h := &Hub{Config: c, log: log, started: time.Now(), clients: newClientCount(), swept: make(chan struct{}, 1)}
	gitPath, err := gitops.Find()
	if err != nil {
		return nil, nil, err
	}
	h.store, err = store.Open(c.Home.State(), c.Home.Head(), time.Now)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the store: %w", err)
	}
	if err := h.assemble(gitPath); err != nil {
		return nil, nil, errors.Join(err, h.store.Close())
	}
	listener, err := listen(c.Home.HubSocket())
	if err != nil {
		return nil, nil, errors.Join(err, h.store.Close())
	}
	return h, listener, nil
}

// assemble wires engines, git, supervisor and gate together.
func (h *Hub) assemble(gitPath string) error {
	h.engines = map[string]sandbox.Engine{}
	for _, name := range engines.Names() {
		engine, err := engines.New(name, h.Self)
		if err != nil {
			return fmt.Errorf("making the %s engine: %w", name, err)
		}
		h.engines[name] = engine
	}
	bin := filepath.Join(h.Home.RunRoot(), "bin")
	if err := inside.Install(bin); err != nil {
		return fmt.Errorf("installing the helpers that agents see: %w", err)
	}
	h.git = gitops.Git{Home: h.Home, Engine: h.engines["native"], Self: h.Self, Path: gitPath, Store: h.store.UUID()}
	h.publisher = newPublisher(h)
	h.supervisor = agents.New(agents.Config{
		Home: h.Home, RuntimeDir: h.RuntimeDir, Self: h.Self, Store: h.store.UUID(), Log: h.store,
		Git: h.git, Engine: h.engine, Bin: bin, Slog: h.log, Clock: time.Now,
		Started: h.publisher.open, Ended: h.ended, Places: places(openFiles()),
	})
	return nil
}

// engine finds an engine by name.
func (h *Hub) engine(name string) (sandbox.Engine, error) {
	if e, ok := h.engines[name]; ok {
		return e, nil
	}
	return nil, wire.Errorf("no-such-engine", fmt.Sprintf("choose one of %v", engines.Names()), "there is no engine %q", name)
}

// listen makes the socket anew: the lock says that no other hub lives.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of a dead hub: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("closing %s to others: %w", path, err), l.Close())
	}
	return l, nil
}

// credentials is what the hub itself may use to talk to a remote, before a
// person has said anything.
func (h *Hub) credentials() gitops.Credentials { return gitops.Credentials{Env: h.Env} }

var _ broker.Log = (*store.Store)(nil)
