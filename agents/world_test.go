//go:build linux

package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"fletch/agents/keeper"
	"fletch/gitops"
	"fletch/home"
	"fletch/sandbox"
	"fletch/sandbox/enginetest"
	"fletch/state"
)

// patience bounds a wait for something that happens at once on a machine with
// nothing else to do.
const patience = time.Minute

// keeperVariable says how the keepers of a test behave.
const keeperVariable = "FLETCH_TEST_KEEPER"

// The test binary plays "fletch keeper" when it is started as one: the real
// one, with an engine that seals nothing.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "keeper" {
		os.Exit(playKeeper())
	}
	os.Exit(m.Run())
}

func playKeeper() int {
	orders, answers := os.NewFile(3, "order"), os.NewFile(4, "ready")
	for _, fd := range []int{3, 4} {
		syscall.CloseOnExec(fd)
	}
	say := func(err error) {
		reply := map[string]any{"ok": err == nil}
		if err != nil {
			reply["error"] = err.Error()
		}
		_ = json.NewEncoder(answers).Encode(reply)
		_ = answers.Close()
	}
	switch os.Getenv(keeperVariable) {
	case "hang":
		select {}
	case "die":
		return 1
	case "refuse":
		say(errors.New("no\x1b[2J sandbox"))
		return 1
	}
	var order keeper.Order
	if err := json.NewDecoder(orders).Decode(&order); err != nil {
		say(err)
		return 1
	}
	if err := keeper.Run(context.Background(), order, enginetest.New(), func() { say(nil) }); err != nil {
		say(err)
		return 1
	}
	return 0
}

// record is a Log in memory that folds what it holds as the store does.
type record struct {
	mu      sync.Mutex
	events  []state.Event
	fleet   state.Fleet
	changed chan struct{}
}

func (r *record) Append(_ context.Context, e state.Event) (state.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Seq, e.At = uint64(len(r.events)+1), time.Now()
	r.events = append(r.events, e)
	r.fleet = r.fleet.Apply(e)
	close(r.changed)
	r.changed = make(chan struct{})
	return e, nil
}

func (r *record) Fleet() state.Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fleet
}

// of lists what happened to an agent.
func (r *record) of(id state.AgentID) []state.Body {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []state.Body
	for _, e := range r.events {
		if e.Agent == id {
			all = append(all, e.Body)
		}
	}
	return all
}

func (r *record) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// world is a supervisor over a home of its own; what it starts ends with the
// test.
type world struct {
	*testing.T
	*Supervisor
	log *record
	dir string
	// served lists the mailboxes that are open.
	mu     sync.Mutex
	served []state.AgentID
}

// newWorld makes a supervisor that does not run yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "fa") // short, for the sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := home.Open(filepath.Join(dir, "h"), "")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: dir, log: &record{changed: make(chan struct{})}}
	engine := enginetest.New()
	w.Supervisor = New(Config{
		Home: h, Self: self, Store: "store", Log: w.log, Git: gitops.Git{Home: h},
		Engine: func(string) (sandbox.Engine, error) { return engine, nil },
		Slog:   slog.New(slog.DiscardHandler), Clock: time.Now,
		Started: func(id state.AgentID) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.served = append(w.served, id)
		},
		Ended: func(id state.AgentID) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.served = slices.DeleteFunc(w.served, func(s state.AgentID) bool { return s == id })
		},
	})
	w.testOnlyMeasure = func(context.Context, state.Agent) (state.Work, error) { return state.Work{}, nil }
	return w
}

// run runs the supervisor until the test ends, and takes every keeper with it.
func (w *world) run() {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Supervisor.Run(ctx) }()
	w.Cleanup(func() {
		for _, a := range w.log.Fleet().Agents {
			if a.Status.Live() {
				_ = w.Stop(ctx, a.ID)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the supervisor ended with %v", err)
		}
		w.reaped.Wait()
	})
}

// add puts an agent on record that has a checkout and runs script.
func (w *world) add(id state.AgentID, status state.Status, script string) state.Agent {
	w.Helper()
	a := state.Agent{
		ID: id, Name: "fern-" + string(id), Provider: "shell", Engine: "fake", Status: status, Branch: "fletch/fern",
		Repo: w.dir, Workspace: w.Home.Workspace(string(id)), Command: []string{"sh", "-c", script},
	}
	if err := os.MkdirAll(filepath.Join(a.Workspace, ".git"), 0o700); err != nil {
		w.Fatal(err)
	}
	if _, err := w.log.Append(w.Context(), state.Event{Agent: id, Body: state.Created{Agent: a}}); err != nil {
		w.Fatal(err)
	}
	return a
}

var clientEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent"}

// until waits until an agent is as ok wants it.
func (w *world) until(id state.AgentID, what string, ok func(state.Agent) bool) state.Agent {
	w.Helper()
	timeout := time.After(patience)
	for {
		changed := w.log.next()
		a, _ := w.log.Fleet().Agent(id)
		if ok(a) {
			return a
		}
		select {
		case <-changed:
		case <-timeout:
			w.Fatalf("%s is never %s; it is %s: %s", id, what, a.Status, a.Reason)
		}
	}
}

func (w *world) untilStatus(id state.AgentID, status state.Status) state.Agent {
	w.Helper()
	return w.until(id, string(status), func(a state.Agent) bool { return a.Status == status })
}

// code is the stable word of an error.
func code(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return fmt.Sprint(err)
}
