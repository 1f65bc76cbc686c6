//go:build !windows && !race

// These run the whole program on a real terminal, and so without the race
// detector: Bubble Tea v2.1.1 closes its input reader half a second after it
// was told to end, whether or not it still reads (tea.go, shutdown), which a
// busy machine turns into a race of its own. hack/test.sh runs them apart.

package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"

	"fletch/tui/tuitest"
)

// tty is a terminal and what the dashboard has written to it.
type tty struct {
	t       *testing.T
	mu      sync.Mutex
	seen    bytes.Buffer
	more    chan struct{}
	host    *os.File
	program *os.File
}

func newTTY(t *testing.T) *tty {
	t.Helper()
	host, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(host, &pty.Winsize{Cols: 120, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	y := &tty{t: t, more: make(chan struct{}, 1), host: host, program: program}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := host.Read(buf)
			y.mu.Lock()
			y.seen.Write(buf[:n])
			y.mu.Unlock()
			select {
			case y.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = program.Close()
		<-done
		_ = host.Close()
	})
	return y
}

func (y *tty) text() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.seen.String()
}

// until waits for text on the terminal.
func (y *tty) until(text string) {
	y.t.Helper()
	timeout := time.After(time.Minute)
	for !strings.Contains(y.text(), text) {
		select {
		case <-y.more:
		case <-timeout:
			y.t.Fatalf("%q does not come: %q", text, y.text())
		}
	}
}

func (y *tty) options() (Options, *tuitest.Hub) {
	hub := tuitest.NewHub(tuitest.Drawn(), tuitest.Machine(), tuitest.Noon)
	screens := tuitest.DrawnScreens(80, 36)
	y.t.Cleanup(screens.Close)
	return Options{
		Hub: hub, Screens: fakeScreens{screens}, Open: OpenBar, Now: tuitest.Noon, In: y.program, Out: y.program,
		Env: []string{"TERM=xterm-256color", "LANG=C.UTF-8"},
	}, hub
}

func TestLeavingPutsTheTerminalBack(t *testing.T) {
	for name, leave := range map[string]func(*tty, context.CancelFunc){
		"q":            func(y *tty, _ context.CancelFunc) { _, _ = io.WriteString(y.host, "q") },
		"its caller":   func(_ *tty, cancel context.CancelFunc) { cancel() },
		"after ctrl+c": func(y *tty, _ context.CancelFunc) { _, _ = io.WriteString(y.host, "\x03q") },
		"while typed to": func(y *tty, cancel context.CancelFunc) {
			_, _ = io.WriteString(y.host, "\r")
			y.until("TYPING")
			cancel()
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newTTY(t)
			before, err := term.GetState(y.program.Fd())
			if err != nil {
				t.Fatal(err)
			}
			o, hub := y.options()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- Run(ctx, o) }()
			y.until("the others")
			raw, err := term.GetState(y.program.Fd())
			if err != nil || *raw == *before {
				t.Errorf("the terminal is not raw: %v", err)
			}
			leave(y, cancel)
			if err := <-ended; err != nil {
				t.Errorf("leaving is an error: %v", err)
			}
			after, err := term.GetState(y.program.Fd())
			if err != nil || *after != *before {
				t.Errorf("the terminal is not as it was: %v", err)
			}
			y.until("7 agents go on.")
			for _, undone := range []string{"\x1b[?1049l", "\x1b[?25h", "\x1b[?2004l", "\x1b[?1004l", "\x1b[?1002l"} {
				if !strings.Contains(y.text(), undone) {
					t.Errorf("%q was not sent", undone)
				}
			}
			if calls := hub.Calls(); calls[len(calls)-1] != "leave" {
				t.Errorf("the hub does not know: %q", calls)
			}
		})
	}
}

func TestKeysThatTheTerminalWouldTakeArrive(t *testing.T) {
	y := newTTY(t)
	o, _ := y.options()
	screens := tuitest.DrawnScreens(80, 36)
	defer screens.Close()
	o.Screens = fakeScreens{screens}
	start := time.Now()
	o.Now = func() time.Time { return tuitest.Noon().Add(time.Since(start) * 100) } // no test waits for a hand
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	y.until("the others")
	_, _ = io.WriteString(y.host, "\r")
	y.until("TYPING")
	for _, key := range []string{"\x19", "\x0f", "\x16", "\x03", "\x1a", "\x11", "\x13", "§"} {
		_, _ = io.WriteString(y.host, key)
	}
	y.until("§")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	got := strings.Join(screens.Notes(tuitest.AmberRiver), " ")
	if want := `input "\x19" input "\x0f" input "\x16" input "\x03" input "\x1a" input "\x11" input "\x13" input "§"`; got != want {
		t.Errorf("the agent got %s", got)
	}
}

// TestTheFrameworkHasATicker is red when a newer Bubble Tea draws in another
// way: then pace.go has to be thought over.
func TestTheFrameworkHasATicker(t *testing.T) {
	y := newTTY(t)
	o, _ := y.options()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := newModel(ctx, o)
	m.pace = &pace{}
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env))
	m.pace.program = program
	ended := make(chan error, 1)
	go func() {
		_, err := program.Run()
		ended <- err
	}()
	y.until("the others")
	cancel()
	<-ended
	if m.pace.ticker == nil {
		t.Error("the framework's ticker is not where it was")
	}
}

func TestADumbTerminalIsRefusedWithTheWayOut(t *testing.T) {
	err := Run(t.Context(), Options{Env: []string{"TERM=dumb"}})
	var dumb dumbTerminal
	if !errors.As(err, &dumb) || dumb.Hint() == "" {
		t.Errorf("got %v", err)
	}
}
