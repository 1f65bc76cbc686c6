// Package tuitest is a fleet without a hub: a fake that behaves, with agents
// whose terminals play a script. The dashboard's tests use it, and the program
// in tui/tuitest/show puts it on a real terminal.
package tuitest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fletch/state"
)

// Hub is a fake hub that keeps a fleet in memory. It is safe for concurrent
// use.
type Hub struct {
	mu       sync.Mutex
	now      func() time.Time
	fleet    state.Fleet
	log      []state.Event
	watchers []chan state.Event
	patches  map[state.RequestID]state.Patch
	changes  map[state.AgentID]state.Patch
	survey   state.Survey
	calls    []string
	fail     error
	launched int
}

// NewHub makes a hub with a fleet and what its machine can do.
func NewHub(fleet state.Fleet, survey state.Survey, now func() time.Time) *Hub {
	return &Hub{
		now: now, fleet: fleet, survey: survey,
		patches: map[state.RequestID]state.Patch{}, changes: map[state.AgentID]state.Patch{},
	}
}

// SetPatch sets what RequestPatch and Changes give for a request's agent.
func (h *Hub) SetPatch(r state.RequestID, a state.AgentID, p state.Patch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r != "" {
		h.patches[r] = p
	}
	if a != "" {
		h.changes[a] = p
	}
}

// Fail makes every call but Watch and Survey return err; nil ends that.
func (h *Hub) Fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = err
}

// Calls lists what was asked of the hub, in order: "stop aaaaaaaa".
func (h *Hub) Calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.calls...)
}

// Fleet is the fleet as it is.
func (h *Hub) Fleet() state.Fleet {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fleet
}

// Happen makes something happen to an agent; watchers are told.
func (h *Hub) Happen(id state.AgentID, body state.Body) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.happen(id, body)
}

func (h *Hub) happen(id state.AgentID, body state.Body) {
	e := state.Event{Seq: h.fleet.Seq + 1, At: h.now(), Agent: id, Body: body}
	h.fleet = h.fleet.Apply(e)
	h.log = append(h.log, e)
	for _, w := range h.watchers {
		w <- e
	}
}

// Drop ends every stream, as a hub does that restarts or is too slow.
func (h *Hub) Drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.watchers {
		close(w)
	}
	h.watchers = nil
}

// called notes a call; it returns the error that was set with Fail.
func (h *Hub) called(format string, args ...any) error {
	h.calls = append(h.calls, fmt.Sprintf(format, args...))
	return h.fail
}

// Watch gives the fleet and every later event.
func (h *Hub) Watch(context.Context) (state.Fleet, <-chan state.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := make(chan state.Event, 1000)
	h.watchers = append(h.watchers, events)
	return h.fleet, events, nil
}

// Survey tells what the fake machine can do.
func (h *Hub) Survey(_ context.Context, dir string) (state.Survey, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.survey, nil
}

// Launch adds agents that start at once.
func (h *Hub) Launch(_ context.Context, l state.Launch) ([]state.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("launch %s %s %s %d %q %dx%d", l.Provider, l.Engine, l.Base, l.Copies, l.Task, l.Cols, l.Rows); err != nil {
		return nil, err
	}
	var made []state.Agent
	for range max(1, l.Copies) {
		h.launched++
		name := l.Name
		if name == "" {
			name = fmt.Sprintf("pine-%d", h.launched)
		}
		a := state.Agent{
			ID: state.AgentID(fmt.Sprintf("new%05d", h.launched)), Name: name, Provider: l.Provider, Engine: l.Engine,
			Tier: "worktree", Network: "proxy", Status: state.Starting, Repo: l.Repo, Branch: "fletch/" + name,
			Base: state.Base{Ref: l.Base}, Task: l.Task, Created: h.now(), Since: h.now(),
		}
		made = append(made, a)
		h.happen(a.ID, state.Created{Agent: a})
	}
	return made, nil
}

// Stop ends an agent.
func (h *Hub) Stop(_ context.Context, id state.AgentID) error {
	return h.act(id, "stop", state.StatusChanged{Status: state.Stopped, Reason: "you stopped it"})
}

// Resume starts an agent again.
func (h *Hub) Resume(_ context.Context, id state.AgentID) error {
	return h.act(id, "resume", state.StatusChanged{Status: state.Working})
}

// Seen clears "done".
func (h *Hub) Seen(_ context.Context, id state.AgentID) error { return h.act(id, "seen", state.Seen{}) }

// Remove puts an agent into the trash.
func (h *Hub) Remove(_ context.Context, id state.AgentID, force bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("remove %s %v", id, force); err != nil {
		return err
	}
	a, ok := h.fleet.Agent(id)
	if !ok {
		return errors.New("there is no such agent")
	}
	if a.Status.Live() && !force {
		return errors.New("it is still running")
	}
	h.happen(id, state.Removed{Trash: "t-" + string(id), Agent: a})
	return nil
}

// Undo brings back the agent that was removed last.
func (h *Hub) Undo(context.Context) (state.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("undo"); err != nil {
		return state.Agent{}, err
	}
	n := len(h.fleet.Trash)
	if n == 0 {
		return state.Agent{}, errors.New("nothing to bring back")
	}
	a := h.fleet.Trash[n-1].Agent
	h.happen(a.ID, state.Restored{Agent: a})
	return a, nil
}

// Decide records a verdict; what is allowed is published at once. A verdict
// that names another commit or plan than the request's is refused.
func (h *Hub) Decide(_ context.Context, v state.Verdict) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("decide %s allow=%v commit=%s reason=%q", v.Request, v.Allow, v.Commit.Short(), v.Reason); err != nil {
		return err
	}
	r, ok := h.fleet.Request(v.Request)
	switch {
	case !ok || r.State != state.Pending:
		return errors.New("this request is already settled")
	case v.Allow && (v.Commit != r.Plan.Commit || v.Plan != r.PlanHash):
		return errors.New("the request has moved")
	}
	h.happen(r.Agent, state.Decided{Verdict: v})
	if v.Allow {
		h.happen(r.Agent, state.Published{Request: r.ID, Outcome: "new branch"})
		h.happen(r.Agent, state.StatusChanged{Status: state.Done})
	}
	return nil
}

// RequestPatch is what a request would publish.
func (h *Hub) RequestPatch(_ context.Context, id state.RequestID) (state.Patch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.patches[id]
	if !ok {
		return p, errors.New("there is no such request")
	}
	return p, nil
}

// Changes is an agent's work.
func (h *Hub) Changes(_ context.Context, id state.AgentID) (state.Patch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changes[id], h.fail
}

// Activity is what happened to an agent.
func (h *Hub) Activity(_ context.Context, id state.AgentID, limit int) ([]state.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []state.Event
	for _, e := range h.log {
		if e.Agent == id {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-limit):], h.fail
}

// Leave notes that the person left.
func (h *Hub) Leave(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.called("leave")
}

func (h *Hub) act(id state.AgentID, verb string, body state.Body) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("%s %s", verb, id); err != nil {
		return err
	}
	if _, ok := h.fleet.Agent(id); !ok {
		return errors.New("there is no such agent")
	}
	h.happen(id, body)
	return nil
}

// SetSurvey changes what the fake machine can do.
func (h *Hub) SetSurvey(s state.Survey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.survey = s
}
