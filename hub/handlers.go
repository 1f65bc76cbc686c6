package hub

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"fletch/hub/wire"
	"fletch/state"
)

// maxBody bounds what a client may send: a launch with a task and an
// environment.
const maxBody = 4 << 20

// handler routes what clients ask. Every route looks at the peer first; the
// ones that act for a person refuse what an agent may have started.
func (h *Hub) handler() http.Handler {
	mux := http.NewServeMux()
	look := func(pattern string, serve handlerFunc) { mux.Handle(pattern, h.guard(false, serve)) }
	act := func(pattern string, serve handlerFunc) { mux.Handle(pattern, h.guard(true, serve)) }

	look("GET /v1/hub", h.getStatus)
	act("POST /v1/hub/stop", h.postStop)
	look("GET /v1/watch", h.getWatch)
	look("GET /v1/events", h.getEvents)
	look("GET /v1/head", h.getHead)
	look("GET /v1/verify", h.getVerify)
	look("GET /v1/survey", h.getSurvey)
	act("POST /v1/left", h.postLeft)
	look("GET /v1/agents", h.getAgents)
	act("POST /v1/agents", h.postAgents)
	act("POST /v1/agents/{id}/stop", h.agentAction(func(ctx context.Context, _ *http.Request, id state.AgentID) error {
		return h.supervisor.Stop(ctx, id)
	}))
	act("POST /v1/agents/{id}/seen", h.agentAction(func(ctx context.Context, _ *http.Request, id state.AgentID) error {
		return h.supervisor.Seen(ctx, id)
	}))
	act("POST /v1/agents/{id}/resume", h.agentAction(h.resume))
	act("DELETE /v1/agents/{id}", h.agentAction(h.remove))
	act("POST /v1/undo", h.postUndo)
	look("GET /v1/agents/{id}/changes", h.getChanges)
	look("GET /v1/agents/{id}/activity", h.getActivity)
	look("GET /v1/requests", h.getRequests)
	look("GET /v1/requests/{id}/patch", h.getPatch)
	act("POST /v1/requests/{id}/verdict", h.postVerdict)
	return mux
}

// handlerFunc answers with a value to encode, or an error to describe. A nil
// value and nil error mean that it wrote its answer itself.
type handlerFunc func(w http.ResponseWriter, r *http.Request) (any, error)

// done is the answer of what has none.
type done struct{}

func (h *Hub) guard(acts bool, serve handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.Header, strconv.Itoa(wire.Protocol))
		w.Header().Set("Content-Type", "application/json")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := h.admit(r, acts); err != nil {
			fail(w, http.StatusForbidden, err)
			return
		}
		answer, err := serve(w, r)
		switch {
		case err != nil:
			fail(w, http.StatusConflict, err)
		case answer != nil:
			_ = json.NewEncoder(w).Encode(answer)
		}
	})
}

// admit says whether this peer may ask this.
func (h *Hub) admit(r *http.Request, acts bool) error {
	p, ok := peerOf(r.Context())
	if !ok {
		return wire.Errorf("peer-refused", "", "the hub does not know who asks")
	}
	if p.fault != nil {
		return wire.Errorf("peer-refused", "run fletch as the user the hub runs as, outside of a sandbox", "the hub does not talk to this process: %v", p.fault)
	}
	if acts && p.sealed {
		return wire.Errorf("peer-refused", "decide in a terminal of your own", "process %d was started by an agent: it may look, not act", p.By.PID)
	}
	if n, err := strconv.Atoi(r.Header.Get(wire.Header)); err != nil || !wire.Spoken(n) {
		return wire.Errorf("protocol", "close this and run fletch again", "the hub (%s) speaks protocol %d, this fletch %q", h.Version, wire.Protocol, r.Header.Get(wire.Header))
	}
	return nil
}

func fail(w http.ResponseWriter, status int, err error) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(wire.Failure{Error: wire.Describe(err)})
}

func read(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.More() {
		err = errors.New("more than one value")
	}
	if err != nil {
		return wire.Errorf("bad-request", "", "reading what the client asks: %v", err)
	}
	return nil
}

// list is all without nil, which JSON would show as null.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

func (h *Hub) getStatus(http.ResponseWriter, *http.Request) (any, error) {
	return h.status(), nil
}

func (h *Hub) postStop(_ http.ResponseWriter, r *http.Request) (any, error) {
	p, _ := peerOf(r.Context())
	// The server lets this answer out before it ends.
	h.end("process " + strconv.Itoa(p.By.PID) + " told it to")
	return done{}, nil
}

func (h *Hub) getAgents(http.ResponseWriter, *http.Request) (any, error) {
	return list(h.store.Fleet().Agents), nil
}

func (h *Hub) postAgents(_ http.ResponseWriter, r *http.Request) (any, error) {
	var launch state.Launch
	if err := read(r, &launch); err != nil {
		return nil, err
	}
	made, err := h.supervisor.Launch(r.Context(), launch)
	return made, err
}

// agentAction answers for what is done to one agent, named by id or name.
func (h *Hub) agentAction(do func(context.Context, *http.Request, state.AgentID) error) handlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		a, err := h.named(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return done{}, do(r.Context(), r, a.ID)
	}
}

func (h *Hub) named(word string) (state.Agent, error) {
	a, ok := h.store.Fleet().Named(word)
	if !ok {
		return a, wire.Errorf("no-such-agent", "fletch ls lists them", "there is no agent %q", word)
	}
	return a, nil
}

func (h *Hub) resume(ctx context.Context, r *http.Request, id state.AgentID) error {
	var body wire.Resume
	if err := read(r, &body); err != nil {
		return err
	}
	return h.supervisor.Resume(ctx, id, body.Env)
}

func (h *Hub) remove(ctx context.Context, r *http.Request, id state.AgentID) error {
	force := r.URL.Query().Get("force") == "1"
	if a, ok := h.store.Fleet().Agent(id); ok && a.Status.Live() && !force {
		return wire.Errorf("still-running", "fletch stop "+a.Name+" first, or fletch rm --yes "+a.Name, "%s is running", a.Name)
	}
	// First the mailbox, so that nothing new is asked in between.
	h.publisher.close(id)
	if err := h.publisher.gate.WithdrawAgent(ctx, id, "its agent was removed"); err != nil {
		return err
	}
	err := h.supervisor.Remove(ctx, id, force)
	if a, ok := h.store.Fleet().Agent(id); ok && err != nil && a.Status.Live() {
		h.publisher.open(id) // it goes on, so it is heard again
	}
	return err
}

func (h *Hub) postUndo(_ http.ResponseWriter, r *http.Request) (any, error) {
	back, err := h.supervisor.Undo(r.Context())
	return back, err
}

func (h *Hub) getRequests(http.ResponseWriter, *http.Request) (any, error) {
	return list(h.store.Fleet().Requests), nil
}

func (h *Hub) getPatch(_ http.ResponseWriter, r *http.Request) (any, error) {
	request, a, err := h.request(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	patch, err := h.git.Patch(r.Context(), a, request.Plan)
	return patch, err
}

func (h *Hub) request(id string) (state.Request, state.Agent, error) {
	fleet := h.store.Fleet()
	request, ok := fleet.Request(state.RequestID(id))
	if !ok {
		return request, state.Agent{}, wire.Errorf("no-such-request", "fletch requests lists them", "there is no request %q", id)
	}
	a, ok := fleet.Agent(request.Agent)
	if !ok {
		return request, a, wire.Errorf("no-such-agent", "", "the agent of request %s is gone; its request too", id)
	}
	return request, a, nil
}

func (h *Hub) getChanges(_ http.ResponseWriter, r *http.Request) (any, error) {
	a, err := h.named(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	patch, err := h.git.Changes(r.Context(), a)
	return patch, err
}

func (h *Hub) getActivity(_ http.ResponseWriter, r *http.Request) (any, error) {
	a, err := h.named(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	events, err := h.store.Latest(r.Context(), a.ID, count(r, "limit", 200))
	return list(events), err
}

func (h *Hub) postVerdict(_ http.ResponseWriter, r *http.Request) (any, error) {
	var verdict wire.Verdict
	if err := read(r, &verdict); err != nil {
		return nil, err
	}
	if string(verdict.Request) != r.PathValue("id") {
		return nil, wire.Errorf("bad-request", "", "the verdict is for request %q, the address for %q", verdict.Request, r.PathValue("id"))
	}
	// Who answers is what the kernel says, not what the client says.
	p, _ := peerOf(r.Context())
	verdict.By = p.By
	return done{}, h.publisher.decide(r.Context(), verdict)
}

func (h *Hub) postLeft(_ http.ResponseWriter, r *http.Request) (any, error) {
	_, err := h.store.Append(r.Context(), state.Event{Body: state.Left{}})
	return done{}, err
}

func (h *Hub) getHead(http.ResponseWriter, *http.Request) (any, error) {
	head := h.store.Head()
	return wire.Head{Seq: head.Seq, Hash: head.Hash}, nil
}

func (h *Hub) getVerify(_ http.ResponseWriter, r *http.Request) (any, error) {
	head, err := h.store.Verify(r.Context())
	return wire.Head{Seq: head.Seq, Hash: head.Hash}, err
}

func (h *Hub) getEvents(_ http.ResponseWriter, r *http.Request) (any, error) {
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil && r.URL.Query().Has("after") {
		return nil, wire.Errorf("bad-request", "", "after=%q is no sequence number", r.URL.Query().Get("after"))
	}
	events, err := h.store.Events(r.Context(), after, count(r, "limit", 0), state.AgentID(r.URL.Query().Get("agent")))
	return list(events), err
}

// getWatch streams the snapshot and then every event until the client leaves
// or falls behind.
func (h *Hub) getWatch(w http.ResponseWriter, r *http.Request) (any, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	fleet, events, err := h.store.Watch(ctx)
	if err != nil {
		return nil, err
	}
	flusher, ok := w.(http.Flusher)
	if !ok {
		return nil, errors.New("watching: this connection cannot stream")
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	if lines.Encode(wire.News{Fleet: &fleet}) != nil {
		return nil, nil
	}
	flusher.Flush()
	for {
		select {
		case e, ok := <-events:
			if !ok || lines.Encode(wire.News{Event: &e}) != nil {
				return nil, nil
			}
			flusher.Flush()
		case <-r.Context().Done():
			return nil, nil
		}
	}
}

func count(r *http.Request, name string, fallback int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 0 {
		return fallback
	}
	return n
}
