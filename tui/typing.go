package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
)

// typing is who has the keyboard: the dashboard, or one agent.
type typing struct {
	on       bool
	agent    state.AgentID
	since    time.Time // when it got the keyboard
	backAt   time.Time // when the keyboard was taken back
	backKey  string    // with which key
	backFrom state.AgentID
}

// typeTo gives the keyboard to the selected agent.
func (m Model) typeTo(id state.AgentID) Model {
	m.typing = typing{on: true, agent: id, since: m.now}
	m.tab = tabScreen
	if g := m.screens.grid(id); g != nil {
		g.up = 0
	}
	return m.giveSize()
}

// takeBack gives the keyboard to the dashboard again.
func (m Model) takeBack(key string) Model {
	m.typing = typing{backAt: m.now, backKey: key, backFrom: m.typing.agent}
	return m
}

// onTyping handles a key while an agent has the keyboard. All but the way
// back goes to the agent.
func (m Model) onTyping(k tea.Key, name string) (Model, tea.Cmd) {
	switch m.keys.byKey[inTyping][name] {
	case "back":
		return m.takeBack(name), nil
	case "look-up":
		return m.scrollScreen(m.screenHeight() - 1), nil
	case "look-down":
		return m.scrollScreen(1 - m.screenHeight()), nil
	}
	if m.justHandedOver(name) {
		return m, nil
	}
	if g := m.screens.grid(m.typing.agent); g != nil && g.up > 0 {
		g.up = 0
	}
	return m.sendKey(k), nil
}

// justHandedOver reports whether a key must not reach the agent: a second
// Enter would answer the agent's own "1. Yes", and what comes faster than a
// hand was pressed before the agent had the keyboard.
func (m Model) justHandedOver(name string) bool {
	age := m.now.Sub(m.typing.since)
	if !m.screens.connected(m.typing.agent) || age < burst {
		return true
	}
	return name == "enter" && age < handOver
}

func (m Model) sendKey(k tea.Key) Model {
	if bytes := encodeKey(m.screenModes(), k); len(bytes) > 0 {
		m = m.input(bytes)
	}
	return m
}

// input sends bytes to the connected screen.
func (m Model) input(bytes []byte) Model {
	if !m.screens.live.keys.send(func(s Screen) error { return s.Input(bytes) }) {
		m.toast = warn("the agent does not take what is typed")
	}
	return m
}

// twice handles the second press of the way back: the agent gets the key, and
// the keyboard again.
func (m Model) twice(k tea.Key, name string) (Model, bool) {
	t := m.typing
	if t.on || t.backKey != name || m.now.Sub(t.backAt) >= backTwice || t.backFrom != m.list.cursor || !m.screens.connected(t.backFrom) {
		return m, false
	}
	m.typing = typing{on: true, agent: t.backFrom, since: m.now.Add(-handOver)}
	return m.sendKey(k), true
}

// released is the name of a key pressed so soon after the way back that ctrl
// may still be held: ctrl+j then means j.
func (m Model) released(name string) string {
	if m.typing.on || m.typing.backAt.IsZero() || m.now.Sub(m.typing.backAt) >= ctrlHeld {
		return name
	}
	if letter := name[len(name)-1:]; len(name) == len("ctrl+x") && name[:5] == "ctrl+" && letter >= "a" && letter <= "z" {
		return letter
	}
	return name
}

// maxPaste is the longest paste an agent is given, in bytes.
const maxPaste = 1 << 20

// pasteTo gives a paste to the agent, as one paste.
func (m Model) pasteTo(text string) Model {
	if m.justHandedOver("enter") {
		return m // it was on its way before the agent had the keyboard
	}
	if len(text) > maxPaste {
		m.toast = warn("that is too long to paste: put it into a file of its checkout")
		return m
	}
	m.screens.live.keys.send(func(s Screen) error { return s.Paste(text) })
	return m
}
