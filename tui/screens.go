package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/agents/attach"
	"fletch/agents/term"
	"fletch/state"
)

// screens are the terminals of agents: one that is connected, and what was
// last seen of the others.
type screens struct {
	live  *live // nil: none
	grids map[state.AgentID]*grid
}

// live is a connection to one agent's screen, or the attempt at one.
type live struct {
	agent  state.AgentID
	ran    bool      // the agent was running when this was opened
	screen Screen    // nil until it is open
	keys   *keyboard // what is sent to screen goes through here
	failed string    // why there is none
	pulled time.Time // when news last came
	ended  bool      // no more news will come
	retry  retry     // of a connection that broke while its agent runs
	cancel context.CancelFunc
}

func newScreens() screens { return screens{grids: map[state.AgentID]*grid{}} }

func (s screens) close() {
	if s.live == nil {
		return
	}
	s.live.cancel()
	if s.live.keys != nil {
		s.live.keys.close()
	}
}

// grid is the copy of an agent's terminal; nil: nothing has been seen of it.
func (s screens) grid(id state.AgentID) *grid { return s.grids[id] }

// connected reports whether keys can go to agent id now.
func (s screens) connected(id state.AgentID) bool {
	return s.live != nil && s.live.agent == id && s.live.screen != nil && !s.live.ended
}

// watched is the agent whose screen is to be connected: the one that is typed
// to, else the one under the cursor. Empty: none.
func (m Model) watched() state.AgentID {
	if m.typing.on {
		return m.typing.agent
	}
	return m.list.cursor
}

// settleScreen connects to the screen that is looked at, and lets go of the
// one before. An agent that has come to life, or to its end, is opened anew.
func (m Model) settleScreen() (Model, tea.Cmd) {
	if a, ok := m.fleet.Agent(m.typing.agent); m.typing.on && (!ok || !a.Status.Live()) {
		m = m.takeBack("")
		m.toast = inform(orWord(a.Name, "the agent") + " has ended; the keyboard is yours again").from(m.now)
	}
	id := m.watched()
	a, ok := m.fleet.Agent(id)
	var broken retry
	if l := m.screens.live; l != nil && ok && l.agent == id && l.ran == a.Status.Live() {
		if l.retry.at.IsZero() || m.now.Before(l.retry.at) {
			return m, nil
		}
		broken = l.retry
	}
	m.screens.close()
	m.screens.live = nil
	if !ok || a.Status == state.Starting {
		return m, nil // its terminal is not there yet
	}
	ctx, cancel := context.WithCancel(m.ctx)
	l := &live{agent: id, ran: a.Status.Live(), cancel: cancel, retry: retry{wait: broken.wait}}
	m.screens.live = l
	open := m.o.Screens
	return m, func() tea.Msg {
		screen, err := open.Open(ctx, id)
		return openedMsg{l, screen, err}
	}
}

type (
	openedMsg struct {
		live   *live
		screen Screen
		err    error
	}
	screenMsg struct {
		live *live
		news attach.Message
		err  error
	}
)

func (msg openedMsg) fold(m Model) (Model, tea.Cmd) {
	if msg.live != m.screens.live {
		if msg.screen != nil {
			newKeyboard(msg.screen).close() // the person has moved on
		}
		return m, nil
	}
	if msg.err != nil {
		msg.live.broke(msg.err, m.now)
		return m, nil
	}
	msg.live.screen, msg.live.keys = msg.screen, newKeyboard(msg.screen)
	return m, m.frame(msg.live)
}

func (msg screenMsg) fold(m Model) (Model, tea.Cmd) {
	l := msg.live
	if l != m.screens.live || l.ended {
		return m, nil
	}
	if msg.err != nil {
		l.broke(msg.err, m.now)
		return m, nil
	}
	first := l.pulled.IsZero()
	l.pulled, l.retry = m.now, retry{}
	switch news := msg.news.(type) {
	case attach.FrameMsg:
		m.screens.of(l.agent).apply(news.Frame)
		if first && m.typing.on {
			m = m.giveSize()
		}
	case attach.History:
		m.screens.of(l.agent).remember(news)
	case attach.Exit:
		l.ended = true
		return m, nil
	case attach.News: // the hub has heard it, too
	}
	m.askHistory()
	return m, m.frame(l)
}

// broke ends a connection. To an agent that runs, it is made anew a little
// later: its keeper may only just be there, or may be changing places.
func (l *live) broke(why error, now time.Time) {
	l.ended, l.failed = true, why.Error()
	if l.ran {
		l.retry = l.retry.next(now)
	}
}

// of is the grid of an agent, made when it is first needed.
func (s screens) of(id state.AgentID) *grid {
	g := s.grids[id]
	if g == nil {
		g = &grid{}
		s.grids[id] = g
	}
	return g
}

// screenHeight is how many rows of the agent's screen are in sight.
func (m Model) screenHeight() int { return m.layout().right.h }

// scrollScreen moves the view of the agent's screen, up when positive.
func (m Model) scrollScreen(by int) Model {
	if g := m.screens.grid(m.watched()); g != nil {
		g.scroll(by, m.screenHeight())
		m.askHistory()
	}
	return m
}

// askHistory asks for the scrollback that the view needs and does not have.
func (m Model) askHistory() {
	id := m.watched()
	g := m.screens.grid(id)
	if g == nil || !m.screens.connected(id) {
		return
	}
	if from, n := g.missing(m.screenHeight()); n > 0 {
		m.screens.live.keys.send(func(s Screen) error { return s.AskHistory(from, n) })
	}
}

// giveSize tells the agent under the keyboard, or the one shown whole, how
// large its screen is here. Nothing else ever resizes an agent.
func (m Model) giveSize() Model {
	id := m.watched()
	cols, rows := typingSize(m.w, m.h, m.whole)
	if cols < 1 || rows < 1 || !m.screens.connected(id) {
		return m
	}
	if g := m.screens.grid(id); g == nil || g.cols == cols && len(g.lines) == rows {
		return m // it is so, or its first frame will tell
	}
	m.screens.live.keys.send(func(s Screen) error { return s.Resize(cols, rows) })
	return m
}

// settleSize gives a new size when the terminal has kept its own for a while.
func (m Model) settleSize() (Model, tea.Cmd) {
	if m.resized.IsZero() || m.now.Sub(m.resized) < resizeQuiet {
		return m, nil
	}
	m.resized = time.Time{}
	if m.typing.on || m.whole && m.tab == tabScreen {
		m = m.giveSize()
	}
	return m, nil
}

// screenModes are the modes of the terminal that has the keyboard.
func (m Model) screenModes() term.Modes {
	if g := m.screens.grid(m.typing.agent); g != nil {
		return g.modes
	}
	return term.Modes{}
}
