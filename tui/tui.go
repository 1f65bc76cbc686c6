// Package tui is the dashboard: one Bubble Tea program that shows a fleet and
// carries a person's answers to it. It holds no truth. What it shows is the
// fleet that the hub tells it, folded by state.Fleet.Apply, and the terminals
// that the keepers stream. It never blocks: five commands reach the domain
// (watch, next, frame, do, decide), and everything else is a value.
//
// Rules of this package:
//
//   - An allow names a request id, a commit and a plan hash, never a row.
//   - A request's sheet is computed from Fleet.Pending. No event opens one.
//   - What an agent wrote reaches the terminal as cells or as visible
//     characters, never as the bytes it sent.
//   - Time is told by Options.Now, and one armed timer stands for all of
//     them. A fleet in which nothing happens sends no byte to the terminal.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
)

// Hub is what the dashboard needs of the hub. Every method may block; none is
// called from Update.
type Hub interface {
	// Watch gives the fleet and every later event. The channel closes when
	// ctx ends or the watcher falls behind; the dashboard then watches again.
	Watch(ctx context.Context) (state.Fleet, <-chan state.Event, error)
	// Survey tells what works on this machine and in dir.
	Survey(ctx context.Context, dir string) (state.Survey, error)
	Launch(ctx context.Context, l state.Launch) ([]state.Agent, error)
	Stop(ctx context.Context, id state.AgentID) error
	Resume(ctx context.Context, id state.AgentID) error
	Remove(ctx context.Context, id state.AgentID, force bool) error
	Undo(ctx context.Context) (state.Agent, error)
	Seen(ctx context.Context, id state.AgentID) error
	Decide(ctx context.Context, v state.Verdict) error
	RequestPatch(ctx context.Context, id state.RequestID) (state.Patch, error)
	Changes(ctx context.Context, id state.AgentID) (state.Patch, error)
	// Activity gives an agent's newest events, newest last.
	Activity(ctx context.Context, id state.AgentID, limit int) ([]state.Event, error)
	// Leave marks that the person is gone, for "since you left".
	Leave(ctx context.Context) error
}

// Options is all that the dashboard is given.
type Options struct {
	Hub     Hub
	Screens Screens
	// Dir is where the person is: the repository of a new agent, if it is one.
	Dir string
	// Home is the person's home directory, shown as ~. Empty: paths are
	// shown whole.
	Home string
	// State is where fletch keeps its state, as the first screen says it
	// ("~/.fletch").
	State string
	// Version is what `fletch version` prints.
	Version string
	// Demo starts the demo and returns when its agents are on their way. Nil:
	// there is none.
	Demo func(context.Context) error
	// Agent is typed to from the start, on the whole screen. Empty: the list
	// has the keyboard.
	Agent state.AgentID
	// StatePath is a small file with the last choices and the draft of the
	// new-agent form. Empty: they are kept only while the program runs.
	StatePath string
	// Open says when a request's sheet opens: OpenAuto or OpenBar.
	Open OpenRequests
	// Keys changes single keys of the table: action ("stop") to key ("ctrl+x").
	// A line that cannot be is dropped, and the dashboard says so.
	Keys map[string]string
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// In and Out are the terminal; nil: standard input and output.
	In  io.Reader
	Out io.Writer
	// Env is the environment (TERM, LANG, NO_COLOR, EDITOR); nil: os.Environ().
	Env []string
}

// OpenRequests says when a request's sheet opens.
type OpenRequests string

// A sheet opens by itself when nothing is in the way, or only when asked for.
// The zero value is OpenAuto.
const (
	OpenAuto OpenRequests = "auto"
	OpenBar  OpenRequests = "bar"
)

// dumbTerminal is the error for a terminal that cannot move its cursor.
type dumbTerminal struct{}

func (dumbTerminal) Error() string { return "TERM=dumb cannot show a dashboard" }

// Hint is the way out.
func (dumbTerminal) Hint() string { return "fletch ls, fletch requests, fletch allow" }

// Code is the stable word for scripts.
func (dumbTerminal) Code() string { return "dumb-terminal" }

// Run shows the dashboard until the person leaves, ctx ends or the terminal
// goes away, and then puts the terminal back. Leaving is no error. The hub is
// told that the person left, and the sentence about the agents that go on is
// written to o.Out.
func Run(ctx context.Context, o Options) error {
	o = o.withDefaults()
	if getenv(o.Env, "TERM") == "dumb" {
		return dumbTerminal{}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The program's own handler turns SIGINT into an error and forgets the
	// model; ctrl+c is a key here, and a signal from outside is a leave.
	model := newModel(ctx, o)
	model.pace = &pace{}
	program := tea.NewProgram(model,
		tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env),
		tea.WithFilter(coalesce(o.Now)))
	model.pace.program = program
	last, err := program.Run()
	cancel()
	final, ok := last.(Model)
	if !ok {
		return err
	}
	final.close()
	if err != nil && !errors.Is(err, tea.ErrInterrupted) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("running the dashboard: %w", err)
	}
	return final.farewell()
}

// farewell tells the hub that nobody looks any more, and the person what goes
// on without them.
func (m Model) farewell() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := m.o.Hub.Leave(ctx)
	live := 0
	for _, a := range m.fleet.Agents {
		if a.Status.Live() {
			live++
		}
	}
	switch live {
	case 0:
	case 1:
		_, _ = fmt.Fprintln(m.o.Out, "1 agent goes on. `fletch` brings you back, `fletch stop --all` ends it.")
	default:
		_, _ = fmt.Fprintf(m.o.Out, "%d agents go on. `fletch` brings you back, `fletch stop --all` ends them.\n", live)
	}
	if err != nil && m.watching {
		return fmt.Errorf("leaving: %w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Open == "" {
		o.Open = OpenAuto
	}
	if o.State == "" {
		o.State = "~/.fletch"
	}
	return o
}

// coalesce drops mouse movement that nobody could follow: one every 15 ms is
// kept.
func coalesce(now func() time.Time) func(tea.Model, tea.Msg) tea.Msg {
	var last time.Time
	return func(_ tea.Model, msg tea.Msg) tea.Msg {
		if _, moved := msg.(tea.MouseMotionMsg); moved {
			if at := now(); at.Sub(last) >= 15*time.Millisecond {
				last = at
				return msg
			}
			return nil
		}
		return msg
	}
}
