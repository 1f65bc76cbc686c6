// Package client speaks to the hub for everything in front of it: the
// dashboard, the subcommands, the demo and the benchmarks. It starts a hub
// when none answers.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"fletch/hub/wire"
	"fletch/state"
)

// Client is a connection to the hub. It is safe for concurrent use.
type Client struct {
	http http.Client
	env  []string
	// revive starts a hub again when the one there was is gone; nil for
	// clients that must not.
	revive func(context.Context) error
}

// dial makes a Client for a socket path without asking whether anyone
// answers there. env is what verdicts and launches carry along.
func dial(socket string, env []string) *Client {
	var dialer net.Dialer
	return &Client{
		env: env,
		http: http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", socket)
			},
			MaxIdleConns: 4,
		}},
	}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks the hub about itself.
func (c *Client) Status(ctx context.Context) (wire.Status, error) {
	return ask[wire.Status](ctx, c, http.MethodGet, "/v1/hub", nil)
}

// StopHub ends the hub; agents go on.
func (c *Client) StopHub(ctx context.Context) error {
	return c.tell(ctx, http.MethodPost, "/v1/hub/stop", nil)
}

// Events reads the log: those after a sequence number, of one agent or of all
// when agent is empty. limit 0 takes the hub's default.
func (c *Client) Events(ctx context.Context, after uint64, agent state.AgentID, limit int) ([]state.Event, error) {
	query := url.Values{"after": {strconv.FormatUint(after, 10)}, "agent": {string(agent)}, "limit": {strconv.Itoa(limit)}}
	return ask[[]state.Event](ctx, c, http.MethodGet, "/v1/events?"+query.Encode(), nil)
}

// Head returns the newest event's number and hash.
func (c *Client) Head(ctx context.Context) (wire.Head, error) {
	return ask[wire.Head](ctx, c, http.MethodGet, "/v1/head", nil)
}

// Verify has the hub walk the whole hash chain.
func (c *Client) Verify(ctx context.Context) (wire.Head, error) {
	return ask[wire.Head](ctx, c, http.MethodGet, "/v1/verify", nil)
}

// Survey asks what works on this machine and in dir.
func (c *Client) Survey(ctx context.Context, dir string) (state.Survey, error) {
	query := url.Values{"dir": {dir}}
	for _, e := range c.env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			query.Set("path", path)
		}
	}
	return ask[state.Survey](ctx, c, http.MethodGet, "/v1/survey?"+query.Encode(), nil)
}

// Launch starts agents. The client's environment goes along unless l has one.
func (c *Client) Launch(ctx context.Context, l state.Launch) ([]state.Agent, error) {
	if l.Env == nil {
		l.Env = c.env
	}
	return ask[[]state.Agent](ctx, c, http.MethodPost, "/v1/agents", l)
}

// Stop ends an agent's program; its work stays.
func (c *Client) Stop(ctx context.Context, id state.AgentID) error {
	return c.tell(ctx, http.MethodPost, agentPath(id, "stop"), nil)
}

// Resume starts a stopped agent again in its workspace.
func (c *Client) Resume(ctx context.Context, id state.AgentID) error {
	return c.tell(ctx, http.MethodPost, agentPath(id, "resume"), wire.Resume{Env: c.env})
}

// Remove puts an agent and its work into the trash. Without force it is
// refused while the agent runs.
func (c *Client) Remove(ctx context.Context, id state.AgentID, force bool) error {
	path := "/v1/agents/" + url.PathEscape(string(id))
	if force {
		path += "?force=1"
	}
	return c.tell(ctx, http.MethodDelete, path, nil)
}

// Undo brings the agent back that was removed last.
func (c *Client) Undo(ctx context.Context) (state.Agent, error) {
	return ask[state.Agent](ctx, c, http.MethodPost, "/v1/undo", nil)
}

// Seen clears "done, not yet seen".
func (c *Client) Seen(ctx context.Context, id state.AgentID) error {
	return c.tell(ctx, http.MethodPost, agentPath(id, "seen"), nil)
}

// Leave marks that the person closed the dashboard.
func (c *Client) Leave(ctx context.Context) error {
	return c.tell(ctx, http.MethodPost, "/v1/left", nil)
}

// Decide gives a verdict, and with it what the push needs of the client's
// environment.
func (c *Client) Decide(ctx context.Context, v state.Verdict) error {
	path := "/v1/requests/" + url.PathEscape(string(v.Request)) + "/verdict"
	return c.tell(ctx, http.MethodPost, path, wire.Verdict{Verdict: v, Env: pushEnv(c.env)})
}

// RequestPatch reads what a request would publish.
func (c *Client) RequestPatch(ctx context.Context, id state.RequestID) (state.Patch, error) {
	return ask[state.Patch](ctx, c, http.MethodGet, "/v1/requests/"+url.PathEscape(string(id))+"/patch", nil)
}

// Changes reads an agent's work against its base, committed and not.
func (c *Client) Changes(ctx context.Context, id state.AgentID) (state.Patch, error) {
	return ask[state.Patch](ctx, c, http.MethodGet, agentPath(id, "changes"), nil)
}

// Activity reads the newest events of an agent, newest last.
func (c *Client) Activity(ctx context.Context, id state.AgentID, limit int) ([]state.Event, error) {
	return ask[[]state.Event](ctx, c, http.MethodGet, agentPath(id, "activity")+"?limit="+strconv.Itoa(limit), nil)
}

func agentPath(id state.AgentID, verb string) string {
	return "/v1/agents/" + url.PathEscape(string(id)) + "/" + verb
}

// pushEnv picks the variables that a push may need from env.
func pushEnv(env []string) []string {
	var picked []string
	for _, e := range env {
		switch name, _, _ := strings.Cut(e, "="); name {
		case "HOME", "PATH", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK":
			picked = append(picked, e)
		}
	}
	return picked
}

func ask[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var answer T
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("reading the hub's answer to %s %s: %w", method, path, err)
	}
	return answer, nil
}

func (c *Client) tell(ctx context.Context, method, path string, body any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// send returns a response whose status says that it worked; anything else
// becomes the error that the hub described. When the hub died under a
// question, or nobody listens at all, a hub is started and asked once more;
// what changes something is sent again only if nobody can have heard it.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	response, err := c.sendOnce(ctx, method, path, body)
	var said *wire.Error
	if err == nil || errors.As(err, &said) || ctx.Err() != nil || c.revive == nil {
		return response, err
	}
	if (method == http.MethodGet || nobodyThere(err)) && c.revive(ctx) == nil {
		return c.sendOnce(ctx, method, path, body)
	}
	return response, err
}

func (c *Client) sendOnce(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var payload bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&payload).Encode(body); err != nil {
			return nil, fmt.Errorf("asking the hub: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://hub"+path, &payload)
	if err != nil {
		return nil, fmt.Errorf("asking the hub: %w", err)
	}
	request.Header.Set(wire.Header, strconv.Itoa(wire.Protocol))
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the hub: %w", errors.Unwrap(err))
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	var failure wire.Failure
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&failure); err != nil {
		return nil, fmt.Errorf("asking the hub: %s", response.Status)
	}
	return nil, &failure.Error
}
