package tui

import (
	tea "charm.land/bubbletea/v2"

	"fletch/agents/term"
	"fletch/tui/sheet"
)

// onMouse selects rows and scrolls what is under the pointer. While an agent
// has the keyboard, the mouse over its screen is its own, if it asked for it.
func (m Model) onMouse(msg tea.MouseMsg) (Model, tea.Cmd) {
	at := msg.Mouse()
	l := m.layout()
	if m.request != nil || len(m.dialogs) > 0 {
		return m.wheelInDialog(msg)
	}
	if m.typing.on && l.right.holds(at.X, at.Y) && m.screenModes().Mouse != 0 {
		return m.mouseToAgent(msg, l), nil
	}
	if wheel, ok := msg.(tea.MouseWheelMsg); ok {
		by := 3
		if wheel.Button == tea.MouseWheelUp {
			by = -3
		}
		if l.list.holds(at.X, at.Y) {
			return m.moveCursor(by / 3), nil
		}
		return m.scrollBy(by), nil
	}
	if click, ok := msg.(tea.MouseClickMsg); ok && click.Button == tea.MouseLeft && !m.typing.on {
		return m.click(l, at.X, at.Y), nil
	}
	return m, nil
}

func (m Model) click(l layout, x, y int) Model {
	switch {
	case l.list.holds(x, y):
		if id, ok := m.list.agentAt(l, y); ok {
			m = m.selectAgent(id)
		}
		m.right = false
	case l.right.holds(x, y) && l.shape == beside:
		m.right = true
	}
	m.lastKey = m.now
	return m
}

// wheelInDialog scrolls the sheet or the dialog with the wheel; nothing else
// of the mouse counts there.
func (m Model) wheelInDialog(msg tea.MouseMsg) (Model, tea.Cmd) {
	wheel, ok := msg.(tea.MouseWheelMsg)
	if !ok {
		return m, nil
	}
	key := "j"
	if wheel.Button == tea.MouseWheelUp {
		key = "k"
	}
	if n := len(m.dialogs); n > 0 {
		if _, text := m.dialogs[n-1].(textDialog); !text {
			return m, nil
		}
		return m.onDialogKey(tea.Key{}, key)
	}
	if m.request.sheet.TextFocus() {
		return m, nil
	}
	for range 3 {
		s, _ := m.request.sheet.Update(sheet.Key{Name: key}, m.now)
		m = m.withSheet(s)
	}
	return m, nil
}

// mouseToAgent hands what the mouse did over the agent's screen to the agent.
func (m Model) mouseToAgent(msg tea.MouseMsg, l layout) Model {
	if !m.screens.connected(m.typing.agent) {
		return m
	}
	at := msg.Mouse()
	e := term.Mouse{
		X: at.X - l.right.x, Y: at.Y - l.right.y,
		Shift: at.Mod&tea.ModShift != 0, Alt: at.Mod&tea.ModAlt != 0, Ctrl: at.Mod&tea.ModCtrl != 0,
	}
	if g := m.screens.grid(m.typing.agent); g != nil {
		e.Y += g.top(l.right.h) - g.history
	}
	buttons := map[tea.MouseButton]term.MouseButton{
		tea.MouseLeft: term.LeftButton, tea.MouseMiddle: term.MiddleButton, tea.MouseRight: term.RightButton,
		tea.MouseWheelUp: term.WheelUp, tea.MouseWheelDown: term.WheelDown,
		tea.MouseWheelLeft: term.WheelLeft, tea.MouseWheelRight: term.WheelRight,
	}
	e.Button = term.NoButton
	if button, ok := buttons[at.Button]; ok {
		e.Button = button
	}
	switch msg.(type) {
	case tea.MouseReleaseMsg:
		e.Action = term.MouseRelease
	case tea.MouseMotionMsg:
		e.Action = term.MouseMove
	}
	if bytes := m.screenModes().EncodeMouse(e); len(bytes) > 0 {
		m = m.input(bytes)
	}
	return m
}
