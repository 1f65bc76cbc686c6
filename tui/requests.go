package tui

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/tui/sheet"
)

// openOldest opens the sheet of the oldest request.
func (m Model) openOldest() (Model, tea.Cmd) {
	pending := m.fleet.Pending()
	if len(pending) == 0 {
		m.toast = inform("Nobody asks for anything.").from(m.now)
		return m, nil
	}
	return m.open(pending[0])
}

// open shows a request. What it would publish is read again each time.
func (m Model) open(r state.Request) (Model, tea.Cmd) {
	a, _ := m.fleet.Agent(r.Agent)
	index, total := m.position(r.ID)
	wide := m.request != nil && m.request.wide
	m.request = &openRequest{sheet: sheet.New(r, a, index, total, m.now), wide: wide}
	m = m.selectAgent(r.Agent)
	m.right, m.whole = false, false
	return m.shown(), m.readPatch(r.ID)
}

// position is the number of a request among those that wait, from 1.
func (m Model) position(id state.RequestID) (index, total int) {
	pending := m.fleet.Pending()
	return 1 + slices.IndexFunc(pending, func(r state.Request) bool { return r.ID == id }), len(pending)
}

type patchMsg struct {
	request state.RequestID
	patch   state.Patch
	err     error
}

func (m Model) readPatch(id state.RequestID) tea.Cmd {
	ctx, hub := m.ctx, m.o.Hub
	return func() tea.Msg {
		patch, err := hub.RequestPatch(ctx, id)
		return patchMsg{id, patch, err}
	}
}

func (msg patchMsg) take(m Model) Model {
	if m.request != nil && m.request.sheet.Request().ID == msg.request {
		m = m.withSheet(m.request.sheet.WithPatch(msg.patch, msg.err, m.now))
	}
	return m
}

// withSheet replaces the sheet; the model before keeps its own.
func (m Model) withSheet(s sheet.Sheet) Model {
	m.request = &openRequest{sheet: s, wide: m.request.wide, gone: m.request.gone}
	return m
}

// sheetRect is where the sheet is shown.
func (m Model) sheetRect() rect {
	l := lay(m.w, m.h, 0, false, false)
	if m.request != nil && m.request.wide && l.shape == beside {
		return rect{0, 1, m.w, m.h - 1}
	}
	return l.dialog
}

// shown tells the sheet how large it is on the screen.
func (m Model) shown() Model {
	at := m.sheetRect()
	return m.withSheet(m.request.sheet.Shown(at.w, at.h, m.now))
}

// settleRequest lets the sheet follow the state. It closes when its request is
// settled, starts over when the same branch is asked for anew, and opens for
// a new request when nothing is in the way.
func (m Model) settleRequest() (Model, tea.Cmd) {
	if m.request == nil {
		if r, waits := m.wouldOpen(); waits && m.now.Sub(m.quietSince()) >= openQuiet {
			return m.open(r)
		}
		return m, nil
	}
	was := m.request.sheet.Request()
	now, ok := m.fleet.Request(was.ID)
	if ok && now.State == state.Pending {
		index, total := m.position(was.ID)
		m = m.withSheet(m.request.sheet.Position(index, total))
		return m.shown(), nil
	}
	if newer, ok := m.successor(was); ok {
		m.request = &openRequest{sheet: m.request.sheet.Moved(newer, m.now), wide: m.request.wide}
		return m.shown(), m.readPatch(newer.ID)
	}
	if _, there := m.fleet.Agent(was.Agent); ok && there && now.State == state.Superseded {
		switch {
		case m.request.gone.IsZero():
			m.request = &openRequest{sheet: m.request.sheet, wide: m.request.wide, gone: m.now.Add(successor)}
			return m, nil
		case m.now.Before(m.request.gone):
			return m, nil
		}
	}
	m.request = nil
	if line, news := settledElsewhere(m, was, now, ok); news {
		m.toast = line.from(m.now)
	}
	return m, nil
}

// successor is the open request of the same agent for the same branch.
func (m Model) successor(was state.Request) (state.Request, bool) {
	for _, r := range m.fleet.Pending() {
		if r.Agent == was.Agent && r.Plan.Ref == was.Plan.Ref && r.ID != was.ID {
			return r, true
		}
	}
	return state.Request{}, false
}

// uncovered is the dashboard after a dialog closed. A sheet below it was out
// of sight and starts its locks over.
func (m Model) uncovered() Model {
	if m.request == nil || len(m.dialogs) > 0 {
		return m
	}
	s, _ := m.request.sheet.Update(sheet.Key{Name: "ctrl+l"}, m.now)
	return m.withSheet(s)
}

// settledElsewhere is what the person is told when a request that is being
// read is over without them.
func settledElsewhere(m Model, was, now state.Request, known bool) (toast, bool) {
	a, there := m.fleet.Agent(was.Agent)
	switch {
	case !there:
		name := "its agent"
		for _, t := range m.fleet.Trash {
			if t.Agent.ID == was.Agent {
				name = t.Agent.Name
			}
		}
		return inform(name + " is gone; its request too"), true
	case !known || now.State == state.Superseded:
		return inform(a.Name + " no longer asks"), true
	case m.mine[was.ID]:
		return toast{}, false // the outcome is on the screen already
	case now.State == state.Denied:
		return inform("already denied in another window"), true
	}
	return inform("already allowed in another window"), true
}

// wouldOpen is the request whose sheet opens by itself as soon as the
// keyboard has been quiet: only over the list, only with nothing else open,
// and never one that was put off.
func (m Model) wouldOpen() (state.Request, bool) {
	if m.o.Open == OpenBar || m.request != nil || m.right || m.whole || m.typing.on ||
		len(m.dialogs) > 0 || !m.watching || m.layout().shape == tooSmall {
		return state.Request{}, false
	}
	for _, r := range m.fleet.Pending() {
		if !m.putOff[r.ID] {
			return r, true
		}
	}
	return state.Request{}, false
}

func (m Model) requestDeadline() (time.Time, bool) {
	switch {
	case m.request == nil:
		return time.Time{}, false
	case !m.request.gone.IsZero():
		return m.request.gone, true
	}
	return m.request.sheet.Deadline()
}

func (m Model) tickRequest() (Model, tea.Cmd) {
	if m.request == nil || !m.request.gone.IsZero() {
		return m, nil
	}
	s, act := m.request.sheet.Tick(m.now)
	return m.withSheet(s).obey(act)
}

func (m Model) onRequestKey(k tea.Key, name string) (Model, tea.Cmd) {
	if !m.request.gone.IsZero() {
		return m, nil
	}
	s, act := m.request.sheet.Update(sheet.Key{Name: name, Text: k.Text, Repeat: k.IsRepeat}, m.now)
	m = m.withSheet(s)
	if _, none := act.(sheet.None); none && !s.TextFocus() {
		switch m.keys.find(inAny, name) {
		case "help":
			m.dialogs = append(m.dialogs, newHelp(m.keys, inRequest))
		case "redraw":
			return m, tea.ClearScreen
		case "suspend":
			return m, tea.Suspend
		case "interrupt":
			m.toast = inform("q closes this; the request waits").from(m.now)
		}
	}
	return m.obey(act)
}

func (m Model) pasteIntoRequest(text string) (Model, tea.Cmd) {
	if !m.request.gone.IsZero() {
		return m, nil
	}
	s, act := m.request.sheet.Update(sheet.Key{Text: text, Paste: true}, m.now)
	return m.withSheet(s).obey(act)
}

// obey does what the sheet asks for.
func (m Model) obey(act sheet.Action) (Model, tea.Cmd) {
	switch act := act.(type) {
	case sheet.None, nil:
	case sheet.Later:
		m.putOff[m.request.sheet.Request().ID] = true
		m.request = nil
	case sheet.Next:
		return m.turn(1)
	case sheet.Prev:
		return m.turn(-1)
	case sheet.Decide:
		m.mine[act.Verdict.Request] = true
		return m, m.decide(act.Verdict)
	case sheet.CopyCommit:
		m.toast = good("copied " + string(act.Commit)).from(m.now)
		return m, tea.SetClipboard(string(act.Commit))
	case sheet.Wide:
		m.request = &openRequest{sheet: m.request.sheet, wide: !m.request.wide}
		return m.shown(), nil
	case sheet.Pager:
		return m, m.page(m.request.sheet.Request().ID)
	}
	return m, nil
}

// turn shows the next request, around the end. The one that is left does not
// come up again by itself.
func (m Model) turn(by int) (Model, tea.Cmd) {
	pending := m.fleet.Pending()
	if len(pending) < 2 {
		return m, nil
	}
	left := m.request.sheet.Request().ID
	m.putOff[left] = true
	index, _ := m.position(left)
	n := len(pending)
	return m.open(pending[((index-1+by)%n+n)%n])
}

func (msg decidedMsg) fold(m Model) (Model, tea.Cmd) {
	v := msg.verdict
	if msg.err != nil {
		m.toast = failure("answering request "+string(v.Request), msg.err)
		if m.request != nil && m.request.sheet.Request().ID == v.Request {
			// The sheet answers once; the person reads and answers anew.
			if r, ok := m.fleet.Request(v.Request); ok && r.State == state.Pending {
				return m.open(r)
			}
		}
		return m, nil
	}
	return m, nil
}

// page shows a request's patch in the person's pager, as text that was made
// safe.
func (m Model) page(id state.RequestID) tea.Cmd {
	hub := m.o.Hub
	return m.do("opening the pager", func(ctx context.Context) (tea.Msg, error) {
		patch, err := hub.RequestPatch(ctx, id)
		return pagerMsg{patch}, err
	})
}
