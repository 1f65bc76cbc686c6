package hub

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"fletch/agents"
	"fletch/hub/wire"
	"fletch/profile"
	"fletch/sandbox"
	"fletch/sandbox/engines"
	"fletch/state"
)

// status is what the hub says of itself.
func (h *Hub) status() wire.Status {
	return wire.Status{
		PID: os.Getpid(), Version: h.Version, Home: h.Home.Dir(), Agents: len(h.store.Fleet().Agents), Live: h.live(),
		Store: h.store.UUID(), Started: h.started.UTC(),
	}
}

// getSurvey tells what works here: engines by trying them, providers by
// looking on the client's PATH, and the client's directory.
func (h *Hub) getSurvey(_ http.ResponseWriter, r *http.Request) (any, error) {
	query := r.URL.Query()
	s := state.Survey{Version: h.Version, Home: h.Home.Dir()}
	for _, name := range engines.Names() {
		s.Engines = append(s.Engines, surveyEngine(r.Context(), h.engines[name]))
	}
	known, faults := agents.Providers(h.Home.Providers())
	for _, p := range known {
		s.Providers = append(s.Providers, surveyProvider(p, query.Get("path")))
	}
	for _, fault := range faults {
		s.Providers = append(s.Providers, faultyProvider(fault))
	}
	s.Here = h.surveyHere(r.Context(), query.Get("dir"))
	return s, nil
}

func surveyEngine(ctx context.Context, e sandbox.Engine) state.EngineSurvey {
	out := state.EngineSurvey{Name: e.Name(), Tier: string(e.Tier())}
	for _, c := range e.Claims() {
		out.Claims = append(out.Claims, state.Claim{Name: c.Name, Held: c.Held, Reason: c.Reason})
	}
	err := e.Probe(ctx)
	if err != nil {
		described := wire.Describe(err)
		out.Cause, out.Fix = described.Message, described.Way
		return out
	}
	out.Usable = true
	if detailed, ok := e.(interface {
		Detail(context.Context) string
	}); ok {
		out.Detail = detailed.Detail(ctx)
	}
	return out
}

func surveyProvider(p agents.Provider, path string) state.ProviderSurvey {
	out := state.ProviderSurvey{Name: p.Name}
	if _, err := p.Find(path); err != nil {
		described := wire.Describe(err)
		out.Why, out.Fix = "not on PATH", described.Way
		return out
	}
	out.Usable = true
	return out
}

// faultyProvider is a provider whose file cannot be used, by the file's name.
func faultyProvider(err error) state.ProviderSurvey {
	out := state.ProviderSurvey{Name: "providers", Why: err.Error()}
	var fault *profile.Fault
	if errors.As(err, &fault) {
		out.Name = strings.TrimSuffix(filepath.Base(fault.File), ".toml")
	}
	out.Fix = wire.Describe(err).Way
	return out
}

func (h *Hub) surveyHere(ctx context.Context, dir string) state.Here {
	if dir == "" {
		return state.Here{Why: "no directory given"}
	}
	source, err := h.git.Inspect(ctx, dir, "")
	if err != nil {
		why := err
		for inner := errors.Unwrap(why); inner != nil; inner = errors.Unwrap(inner) {
			why = inner
		}
		return state.Here{Why: why.Error()}
	}
	return state.Here{Repo: source.Repo, Branch: source.Base.Ref, Branches: source.Branches, Uncommitted: source.Uncommitted}
}
