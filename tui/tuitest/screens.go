package tuitest

import (
	"context"
	"fmt"
	"io"
	"sync"

	"fletch/agents/attach"
	"fletch/agents/term"
	"fletch/state"
)

// Screens are terminals that play a script and note what is typed.
type Screens struct {
	mu    sync.Mutex
	terms map[state.AgentID]*term.Terminal
	notes map[state.AgentID][]string
	opens []state.AgentID
	fail  error
	open  int
}

// NewScreens makes no terminals yet.
func NewScreens() *Screens {
	return &Screens{terms: map[state.AgentID]*term.Terminal{}, notes: map[state.AgentID][]string{}}
}

// Play writes output to an agent's terminal, which is made with that size if
// it is not there.
func (s *Screens) Play(id state.AgentID, cols, rows int, output string) {
	s.mu.Lock()
	t := s.terms[id]
	if t == nil {
		t = term.New(cols, rows, 0)
		s.terms[id] = t
	}
	s.mu.Unlock()
	_, _ = io.WriteString(t, output)
}

// Notes lists what was done to an agent's terminal: `input "x"`, `paste "y"`,
// "resize 80x36".
func (s *Screens) Notes(id state.AgentID) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.notes[id]...)
}

// Opened lists the agents whose screens were opened, and how many are still
// open.
func (s *Screens) Opened() (ids []state.AgentID, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]state.AgentID(nil), s.opens...), s.open
}

// Fail makes Connect return err; nil ends that.
func (s *Screens) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Close ends the terminals.
func (s *Screens) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.terms {
		_ = t.Close()
	}
}

// Connect opens a screen.
func (s *Screens) Connect(id state.AgentID) (*Screen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	t, ok := s.terms[id]
	if !ok {
		return nil, fmt.Errorf("the agent has no screen")
	}
	s.opens = append(s.opens, id)
	s.open++
	return &Screen{all: s, id: id, term: t, history: make(chan attach.History, 4), closed: make(chan struct{})}, nil
}

// Screen is one connection to a terminal. As with a keeper, one viewer at a
// time sees what changes.
type Screen struct {
	all     *Screens
	id      state.AgentID
	term    *term.Terminal
	seen    uint64
	history chan attach.History
	once    sync.Once
	closed  chan struct{}
}

// Next waits for a change.
func (s *Screen) Next(ctx context.Context) (attach.Message, error) {
	for first := s.seen == 0; ; first = false {
		if f := s.term.Since(s.seen); first || f.Seq != s.seen {
			s.seen = f.Seq
			return attach.FrameMsg{Frame: f}, nil
		}
		select {
		case <-s.term.Changed():
		case h := <-s.history:
			return h, nil
		case <-s.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Screen) note(format string, args ...any) error {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.notes[s.id] = append(s.all.notes[s.id], fmt.Sprintf(format, args...))
	return nil
}

// Input notes what was typed, and echoes it.
func (s *Screen) Input(p []byte) error {
	err := s.note("input %q", p)
	_, _ = s.term.Write(p)
	return err
}

// Paste notes what was pasted.
func (s *Screen) Paste(text string) error { return s.note("paste %q", text) }

// Resize notes the size and takes it.
func (s *Screen) Resize(cols, rows int) error {
	s.term.Resize(cols, rows)
	return s.note("resize %dx%d", cols, rows)
}

// AskHistory answers with rows above the screen.
func (s *Screen) AskHistory(from, n int) error {
	s.history <- attach.History{From: from, Total: s.term.Snapshot().History, Lines: s.term.Scrollback(from, n)}
	return nil
}

// Close ends the connection.
func (s *Screen) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.all.mu.Lock()
		s.all.open--
		s.all.mu.Unlock()
	})
	return nil
}
