package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
)

// A key goes down one path and the first taker ends it: the agent that has
// the keyboard, the sheet of a request, the topmost dialog, the focused side,
// and what is the same everywhere.

func (m Model) onKey(k tea.Key) (Model, tea.Cmd) {
	name := keyName(k)
	m, cmd := m.takeKey(k, name)
	m.lastKey = m.now
	return m, cmd
}

func (m Model) takeKey(k tea.Key, name string) (Model, tea.Cmd) {
	if m.layout().shape == tooSmall {
		return m.unseenKey(name)
	}
	if m.typing.on {
		return m.onTyping(k, name)
	}
	if len(m.dialogs) > 0 {
		return m.onDialogKey(k, name)
	}
	if m.request != nil {
		return m.onRequestKey(k, name)
	}
	if again, ok := m.twice(k, name); ok {
		return again, nil
	}
	name = m.released(name)
	// A toast goes with the next key, which does its own work as well. A
	// failure stays until esc, which does nothing else.
	if m.toast.kind != toastBad {
		m.toast = toast{}
	} else if name == "esc" {
		m.toast = toast{}
		return m, nil
	}
	return m.run(m.scope(), m.keys.find(m.scope(), name), name)
}

// unseenKey is a key on a terminal too small to show anything: nobody knows
// what it would do, so it does nothing, but for the way out.
func (m Model) unseenKey(name string) (Model, tea.Cmd) {
	switch m.keys.find(inAny, name) {
	case "leave":
		return m, tea.Quit
	case "suspend":
		return m, tea.Suspend
	}
	return m, nil
}

// scope is which part of the key table counts when no dialog is open.
func (m Model) scope() scope {
	switch {
	case m.newcomer():
		return inFirst
	case !m.right:
		return inList
	case m.tab == tabScreen:
		return inScreen
	case m.tab == tabChanges:
		return inChanges
	}
	return inText
}

// run does what a key means in a scope.
func (m Model) run(in scope, act action, key string) (Model, tea.Cmd) {
	if act == "" && in != inFirst {
		act = m.keys.shared(key) // the right side leaves these to the list
	}
	if next, cmd, ok := m.anywhere(act); ok {
		return next, cmd
	}
	if in == inFirst {
		return m.runFirst(act)
	}
	if in == inList {
		return m.runList(act)
	}
	if in == inChanges {
		return m.runChanges(act, key)
	}
	return m.runRight(act)
}

// anywhere does what is the same in every scope.
func (m Model) anywhere(act action) (Model, tea.Cmd, bool) {
	switch act {
	case "help":
		m.dialogs = append(m.dialogs, newHelp(m.keys, m.scope()))
	case "mouse":
		m.mouseOff = !m.mouseOff
		word := "on"
		if m.mouseOff {
			word = "off: the terminal selects text"
		}
		m.toast = inform("mouse " + word).from(m.now)
	case "redraw":
		return m, tea.ClearScreen, true
	case "suspend":
		return m, tea.Suspend, true
	case "interrupt":
		m.toast = inform("q leaves; agents go on").from(m.now)
	case "close":
		m.right, m.whole = false, false
	case "leave":
		if !m.right && !m.whole {
			return m, tea.Quit, true
		}
		m.right, m.whole = false, false
	default:
		return m, nil, false
	}
	return m, nil, true
}

// runFirst is the first screen.
func (m Model) runFirst(act action) (Model, tea.Cmd) {
	switch act {
	case "demo":
		return m.startDemo()
	case "new":
		return m.openForm(nil)
	case "doctor":
		m.dialogs = append(m.dialogs, newDoctor(m.survey))
	case "check":
		m.survey = nil
		return m, m.askSurvey()
	}
	return m, nil
}

func (m Model) startDemo() (Model, tea.Cmd) {
	if m.o.Demo == nil || !m.canStart() {
		return m, nil
	}
	demo := m.o.Demo
	m.toast = inform("starting the demo …").from(m.now)
	return m, m.do("starting the demo", func(ctx context.Context) (tea.Msg, error) {
		return doneMsg{}, demo(ctx)
	})
}

// runList is the list.
func (m Model) runList(act action) (Model, tea.Cmd) {
	page := max(1, m.layout().list.h/2)
	switch act {
	case "down":
		return m.moveCursor(1), nil
	case "up":
		return m.moveCursor(-1), nil
	case "page-down":
		return m.moveCursor(page), nil
	case "page-up":
		return m.moveCursor(-page), nil
	case "first":
		return m.moveCursor(-len(m.list.order)), nil
	case "last":
		return m.moveCursor(len(m.list.order)), nil
	case "next":
		return m.toNeed(1), nil
	case "previous":
		return m.toNeed(-1), nil
	case "review":
		return m.openOldest()
	case "type":
		return m.enter()
	case "tab-screen", "tab-changes", "tab-activity", "tab-sandbox":
		return m.showTab(act), nil
	case "right":
		m.right = len(m.fleet.Agents) > 0
		return m, nil
	case "scroll-down":
		return m.scrollRight(1), nil
	case "scroll-up":
		return m.scrollRight(-1), nil
	case "whole":
		return m.toggleWhole(), nil
	case "doctor":
		if len(m.fleet.Agents) == 0 && m.o.Demo != nil {
			return m.startDemo()
		}
		m.dialogs = append(m.dialogs, newDoctor(m.survey))
		return m, nil
	}
	return m.runAgent(act)
}

// runAgent is what is done to the selected agent.
func (m Model) runAgent(act action) (Model, tea.Cmd) {
	a, ok := m.selected()
	switch act {
	case "new":
		return m.openForm(nil)
	case "undo":
		return m.undo()
	case "new-like":
		if ok {
			return m.openForm(&a)
		}
	case "stop":
		if ok && a.Status.Live() {
			m.dialogs = append(m.dialogs, newConfirm(confirmStop, a, m.now))
		}
	case "remove":
		if ok {
			m.dialogs = append(m.dialogs, newConfirm(confirmRemove, a, m.now))
		}
	case "continue":
		if ok && !a.Status.Live() {
			m.dialogs = append(m.dialogs, newConfirm(confirmResume, a, m.now))
		}
	}
	return m, nil
}

// enter gives the keyboard to the selected agent, or asks whether one that
// has ended shall go on.
func (m Model) enter() (Model, tea.Cmd) {
	a, ok := m.selected()
	if !ok {
		return m, nil
	}
	if l := m.layout(); !m.right && (l.shape == single || l.shape == bare) {
		m.tab, m.right = tabScreen, true // first look, then type
		return m, nil
	}
	if !a.Status.Live() {
		return m.runAgent("continue")
	}
	if a.Status == state.Starting {
		m.toast = inform(a.Name + " is still starting").from(m.now)
		return m, nil
	}
	return m.typeTo(a.ID), nil
}

// runRight is the right side with the keyboard: its screen or its texts.
func (m Model) runRight(act action) (Model, tea.Cmd) {
	page := max(1, m.layout().right.h-1)
	switch act {
	case "type":
		return m.enter()
	case "left":
		m.right, m.whole = false, false
	case "down":
		return m.scrollBy(1), nil
	case "up":
		return m.scrollBy(-1), nil
	case "scroll-down":
		return m.scrollBy(page), nil
	case "scroll-up":
		return m.scrollBy(-page), nil
	case "page-down":
		return m.scrollBy(max(1, page/2)), nil
	case "page-up":
		return m.scrollBy(-max(1, page/2)), nil
	case "first":
		return m.scrollBy(-1 << 20), nil
	case "last":
		return m.scrollBy(1 << 20), nil
	default:
		return m.runShared(act)
	}
	return m, nil
}

// moveCursor moves in the list; a scrolled tab begins at its top again.
func (m Model) moveCursor(by int) Model {
	return m.selectAgent(m.list.moved(by).cursor)
}

func (m Model) selectAgent(id state.AgentID) Model {
	if id != m.list.cursor {
		m.list.cursor = id
		m.sandbox = textPane{}
		m.activity.text = textPane{}
	}
	return m
}

func (m Model) toNeed(by int) Model {
	id, ok := m.list.nextNeed(m.fleet, by)
	if !ok {
		m.toast = inform("nobody needs you").from(m.now)
		return m
	}
	return m.selectAgent(id)
}

// showTab turns to a tab. Where there is no room beside the list, it takes
// the screen.
func (m Model) showTab(act action) Model {
	switch act {
	case "tab-screen":
		m.tab = tabScreen
	case "tab-changes":
		m.tab = tabChanges
	case "tab-activity":
		m.tab = tabActivity
	case "tab-sandbox":
		m.tab = tabSandbox
	}
	if m.layout().shape != beside && len(m.fleet.Agents) > 0 {
		m.right = true
	}
	return m
}

func (m Model) toggleWhole() Model {
	if _, ok := m.selected(); !ok {
		return m
	}
	m.whole = !m.whole
	m.right = m.whole || m.right && m.layout().shape == beside
	if m.tab == tabScreen {
		m = m.giveSize()
	}
	return m
}

// onPaste handles a bracketed paste: it is text for a field or for an agent,
// and never a key.
func (m Model) onPaste(text string) (Model, tea.Cmd) {
	switch {
	case m.layout().shape == tooSmall:
	case m.typing.on:
		m = m.pasteTo(text)
	case m.request != nil:
		return m.pasteIntoRequest(text)
	case len(m.dialogs) > 0:
		top := len(m.dialogs) - 1
		m.dialogs = append([]dialog(nil), m.dialogs...)
		m.dialogs[top] = m.dialogs[top].paste(text)
	}
	m.lastKey = m.now
	return m, nil
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
