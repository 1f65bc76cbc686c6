package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"fletch/home"
	"fletch/hub/wire"
)

// startTimeout bounds how long a hub may take to answer after its start: it
// opens the store first, and waits for a hub that is about to end.
const startTimeout = 30 * time.Second

// startTries is how often a hub is started that is gone before it answers.
const startTries = 3

// Options say how to reach the hub.
type Options struct {
	// Self is the fletch executable that is started as the hub.
	Self string
	// Env is the client's environment: it goes along with launches and, in
	// part, with verdicts. The hub itself gets only what [hubEnv] picks.
	Env []string
	// NoStart makes Connect fail instead of starting a hub.
	NoStart bool
}

// ErrNoHub is returned by Connect with NoStart when no hub answers.
var ErrNoHub = errors.New("no hub is running")

// Connect reaches the hub of h, starting one when none answers. However many
// clients call it at once, one hub starts: they take turns on a lock, and the
// hub itself holds another.
func Connect(ctx context.Context, h home.Home, o Options) (*Client, error) {
	c := dial(h.HubSocket(), o.Env)
	err := c.greet(ctx)
	if nobodyThere(err) {
		if o.NoStart {
			return nil, ErrNoHub
		}
		err = c.start(ctx, h, o)
	}
	if err != nil {
		return nil, err
	}
	if !o.NoStart {
		c.revive = func(ctx context.Context) error { return c.start(ctx, h, o) }
	}
	return c, nil
}

// start starts a hub unless another client was faster.
func (c *Client) start(ctx context.Context, h home.Home, o Options) error {
	unlock, err := lockFile(ctx, h.StartLock())
	if err != nil {
		return fmt.Errorf("waiting to start the hub: %w", err)
	}
	defer unlock()
	err = c.greet(ctx)
	// The hub that a new one finds in its place may be about to end.
	for tries := 0; nobodyThere(err) && tries < startTries; tries++ {
		if err = startHub(ctx, h, o); err == nil {
			err = c.greet(ctx)
		}
	}
	return err
}

// greet asks for the hub's status; an older or newer hub gives its own error.
func (c *Client) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	response, err := c.sendOnce(ctx, http.MethodGet, "/v1/hub", nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// nobodyThere tells a missing hub (no socket, or the socket of a dead one)
// from one that refused.
func nobodyThere(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}

// startHub runs "fletch hub" apart from the client's session and waits until
// it says that it is ready. The hub writes one line on descriptor 3: empty
// when ready, else a wire.Failure.
func startHub(ctx context.Context, h home.Home, o Options) error {
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the hub: %w", err)
	}
	defer func() { _ = ready.Close() }()
	cmd := exec.Command(o.Self, "hub")
	cmd.Dir = "/"
	cmd.Env = append(hubEnv(o.Env), "FLETCH_HOME="+h.Dir())
	cmd.ExtraFiles = []*os.File{theirs}
	detach(cmd)
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return fmt.Errorf("starting the hub: %w", err)
	}
	go func() { _ = cmd.Wait() }() // reaps it should it end before this client does
	waiting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	defer context.AfterFunc(waiting, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })()
	var failure wire.Failure
	switch err := json.NewDecoder(ready).Decode(&failure); {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("starting the hub: %w", ctx.Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return wire.Errorf("hub-start", "read "+h.HubLog(), "starting the hub: it says nothing for %s", startTimeout)
	case err != nil:
		return wire.Errorf("hub-start", "read "+h.HubLog(), "starting the hub: it ended without a word: %v", err)
	case failure.Error.Message != "":
		return &failure.Error
	}
	return nil
}

// hubEnv picks what the hub may know of the environment of whoever happens to
// start it: it must not serve one client with another's settings.
func hubEnv(env []string) []string {
	var kept []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "HOME", name == "PATH", name == "LANG", strings.HasPrefix(name, "LC_"),
			strings.HasPrefix(name, "XDG_"), name == "DBUS_SESSION_BUS_ADDRESS",
			strings.HasPrefix(name, "FLETCH_") && name != "FLETCH_HOME",
			name == "GOCOVERDIR", name == "SystemRoot":
			kept = append(kept, e)
		}
	}
	return kept
}
