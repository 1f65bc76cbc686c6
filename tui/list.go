package tui

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"charm.land/lipgloss/v2"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// listPane is the order in which agents are shown, and the cursor, which is
// on an agent and not on a row.
type listPane struct {
	cursor state.AgentID
	order  []state.AgentID // those who need the person, then the others
	needs  int             // how many of order need the person
	stale  bool            // the fleet has changed since order was made
	want   state.AgentID   // who gets the cursor as soon as it is there
	rev    int             // counts the changes of order
	top    int             // first row in sight
}

// urgency ranks an agent among those that need the person.
func urgency(f state.Fleet, a state.Agent) int {
	if _, asks := f.PendingOf(a.ID); asks {
		return 0
	}
	if a.Status == state.Waiting {
		return 1
	}
	return 2
}

// sorted takes the order from the fleet: who needs the person first, requests
// before questions before failures, everyone else as they were created.
func (p listPane) sorted(f state.Fleet) listPane {
	var needs, others []state.Agent
	for _, a := range f.Agents {
		if f.NeedsPerson(a) {
			needs = append(needs, a)
		} else {
			others = append(others, a)
		}
	}
	slices.SortStableFunc(needs, func(a, b state.Agent) int { return urgency(f, a) - urgency(f, b) })
	p.needs, p.stale = len(needs), false
	p.rev++
	p.order = make([]state.AgentID, 0, len(f.Agents))
	for _, a := range append(needs, others...) {
		p.order = append(p.order, a.ID)
	}
	return p.kept(f)
}

// patched keeps every row where it is: agents that are gone leave, new ones
// come last.
func (p listPane) patched(f state.Fleet) listPane {
	order := make([]state.AgentID, 0, len(f.Agents))
	needs := 0
	for i, id := range p.order {
		if _, ok := f.Agent(id); ok {
			order = append(order, id)
			if i < p.needs {
				needs++
			}
		}
	}
	for _, a := range f.Agents {
		if !slices.Contains(order, a.ID) {
			order = append(order, a.ID)
		}
	}
	p.cursor = p.heir(f)
	p.order, p.needs = order, needs
	p.rev++
	return p
}

// heir is who has the cursor when its agent may be gone: the next one below
// it, else the one above.
func (p listPane) heir(f state.Fleet) state.AgentID {
	if _, ok := f.Agent(p.cursor); ok {
		return p.cursor
	}
	at := slices.Index(p.order, p.cursor)
	for _, id := range append(slices.Clone(p.order[at+1:]), reversed(p.order[:max(at, 0)])...) {
		if _, ok := f.Agent(id); ok {
			return id
		}
	}
	return ""
}

func reversed(ids []state.AgentID) []state.AgentID {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}

// kept puts the cursor somewhere if its agent is not in the order.
func (p listPane) kept(f state.Fleet) listPane {
	if _, ok := f.Agent(p.cursor); !ok {
		p.cursor = ""
	}
	if p.cursor == "" && len(p.order) > 0 {
		p.cursor = p.order[0]
	}
	return p
}

func (p listPane) toTop() listPane {
	if len(p.order) > 0 {
		p.cursor = p.order[0]
	}
	return p
}

// moved puts the cursor by rows further, not beyond the ends.
func (p listPane) moved(by int) listPane {
	if len(p.order) == 0 {
		return p
	}
	at := slices.Index(p.order, p.cursor)
	p.cursor = p.order[max(0, min(at+by, len(p.order)-1))]
	return p
}

// nextNeed is who needs the person next after the cursor, around the end; ok
// is false when nobody does.
func (p listPane) nextNeed(f state.Fleet, by int) (state.AgentID, bool) {
	n := len(p.order)
	at := slices.Index(p.order, p.cursor)
	if at < 0 && by > 0 {
		at = n - 1
	}
	for i := 1; i <= n; i++ {
		id := p.order[((at+i*by)%n+n)%n]
		if a, ok := f.Agent(id); ok && f.NeedsPerson(a) {
			return id, true
		}
	}
	return "", false
}

// reorder sorts again if something has changed and no key was pressed for a
// second. Until then every row stays under the eye.
func (m Model) reorder() Model {
	if !m.list.stale {
		return m
	}
	m.list = m.list.patched(m.fleet)
	if _, ok := m.fleet.Agent(m.list.want); ok {
		m.list.cursor, m.list.want = m.list.want, ""
	}
	if m.now.Sub(m.lastKey) >= sortQuiet {
		m.list = m.list.sorted(m.fleet)
	}
	return m
}

// listRow is one row of the list: a heading, a blank or an agent.
type listRow struct {
	heading string
	agent   state.AgentID
}

// rows lays the list out; plain has no headings.
func (p listPane) rows(plain bool) []listRow {
	var rows []listRow
	for i, id := range p.order {
		if !plain && p.needs > 0 && i == 0 {
			rows = append(rows, listRow{heading: "needs you"})
		}
		if !plain && p.needs > 0 && i == p.needs {
			rows = append(rows, listRow{}, listRow{heading: "the others"})
		}
		rows = append(rows, listRow{agent: id})
	}
	return rows
}

// height is how many rows the list would like.
func (p listPane) height(state.Fleet) int { return len(p.rows(false)) }

// scrolled is the part of rows that is in sight in h rows, so that the cursor
// is; more is how many agents are below it.
func (p listPane) scrolled(rows []listRow, h int) (top, more int) {
	at := slices.IndexFunc(rows, func(r listRow) bool { return r.agent != "" && r.agent == p.cursor })
	top = max(0, min(p.top, len(rows)-h))
	if at >= 0 && at < top+1 {
		top = max(0, at-1) // with its heading
	}
	if at >= top+h {
		top = at - h + 1
	}
	for _, r := range rows[min(top+h, len(rows)):] {
		if r.agent != "" {
			more++
		}
	}
	return top, more
}

// agentAt is the agent whose row is on line y of the screen.
func (p listPane) agentAt(l layout, y int) (state.AgentID, bool) {
	rows := p.rows(l.shape == bare)
	lead, room := p.frame(rows, l)
	top, _ := p.scrolled(rows, room)
	i := y - l.list.y - lead + top
	if y-l.list.y-lead < 0 || y-l.list.y-lead >= room || i >= len(rows) || rows[i].agent == "" {
		return "", false
	}
	return rows[i].agent, true
}

// frame is how many blank lines are above the rows, and how many rows fit.
func (p listPane) frame(rows []listRow, l layout) (lead, room int) {
	if l.shape == beside && l.list.h > len(rows) {
		lead = 1
	}
	room = l.list.h - lead
	if _, more := p.scrolled(rows, room); more > 0 && room > 1 {
		room--
	}
	return lead, room
}

// stand is how an agent stands: its mark, its word and the colour of both.
type stand struct {
	mark, word string
	markStyle  lipgloss.Style
	wordStyle  lipgloss.Style
	loud       bool // its name is bold: it waits for the person
}

func standing(s themes.Styles, f state.Fleet, a state.Agent) stand {
	if r, asks := f.PendingOf(a.ID); asks {
		return stand{themes.MarkRequest, asksFor(r), s.Ask, s.Ask, true}
	}
	switch a.Status {
	case state.Waiting:
		return stand{themes.MarkAsks, "asks you", s.Ask, s.Ask, true}
	case state.Failed:
		return stand{themes.MarkFailed, "failed", s.Bad, s.Bad, false}
	case state.Done:
		return stand{themes.MarkDone, "done", s.Good, s.Faint, false}
	case state.Working:
		return stand{themes.MarkWorking, "working", s.Good, s.Faint, false}
	case state.Idle:
		return stand{themes.MarkIdle, "idle", s.Faint, s.Faint, false}
	case state.Starting:
		return stand{themes.MarkStarting, "starting", s.Faint, s.Faint, false}
	case state.Stopped, state.Exited:
		return stand{themes.MarkStopped, string(a.Status), s.Faint, s.Faint, false}
	}
	return stand{themes.MarkIdle, string(a.Status), s.Faint, s.Faint, false}
}

// asksFor is what a request is about, as the list says it.
func asksFor(r state.Request) string {
	if r.Operation == "push" || r.Operation == "" {
		return "asks to push"
	}
	return "asks: " + r.Operation
}

// chip is a guarantee that was given up; empty: none.
func chip(a state.Agent) string {
	switch {
	case a.Engine == "direct":
		return "DIRECT"
	case a.Network == "open":
		return "OPEN NET"
	}
	return ""
}

// since is when an agent came to stand as it does: the clock time of today,
// else the day.
func since(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.IsZero() {
		return ""
	}
	if y, d := at.Year(), at.YearDay(); y == now.Year() && d == now.YearDay() {
		return at.Format("15:04")
	}
	return at.Format("2 Jan")
}

// sinceOf is the moment that the row of an agent shows.
func sinceOf(f state.Fleet, a state.Agent) time.Time {
	if r, asks := f.PendingOf(a.ID); asks {
		return r.Asked
	}
	return a.Since
}

// nameColumn is how wide names are shown, with the gap behind them.
func nameColumn(f state.Fleet, w int) int {
	widest := 11
	for _, a := range f.Agents {
		widest = max(widest, diff.Width(diff.Visible(a.Name)))
	}
	limit := 18
	if w < 60 {
		limit = 13
	}
	return min(widest, limit) + 2
}

// view draws the list in w by h cells.
func (p listPane) view(s themes.Styles, f state.Fleet, l layout, now time.Time) []string {
	w, h := l.list.w, l.list.h
	rows := p.rows(l.shape == bare)
	lead, room := p.frame(rows, l)
	out := make([]string, lead, h)
	top, more := p.scrolled(rows, room)
	names := nameColumn(f, w)
	for _, r := range rows[min(top, len(rows)):min(top+room, len(rows))] {
		if r.agent == "" {
			out = append(out, newRow(w).add(s.Faint, " "+r.heading).String())
			continue
		}
		a, _ := f.Agent(r.agent)
		out = append(out, agentRow(s, f, a, w, names, a.ID == p.cursor, now))
	}
	if more > 0 {
		out = append(out, newRow(w).add(s.Faint, fmt.Sprintf(" ↓ %d more", more)).String())
	}
	return fitLines(out, h)
}

// agentRow draws one agent: bar, mark, name, word, and what else fits.
func agentRow(s themes.Styles, f state.Fleet, a state.Agent, w, names int, selected bool, now time.Time) string {
	bar := " "
	if selected {
		s = s.Selected()
		bar = themes.MarkBar
	}
	is := standing(s, f, a)
	name := s.Text
	if is.loud || selected {
		name = s.Strong
	}
	clock := since(sinceOf(f, a), now)
	timeAt := w - 1 - len(clock)
	r := newRow(w).add(s.Focus, bar).add(is.markStyle, is.mark).add(s.Fill, " ")
	r.fit(name, a.Name, names-2).to(s.Fill, 3+names).add(is.wordStyle, is.word)
	if w >= 72 {
		columns(r, s, a, 3+names)
	} else if c := chip(a); c != "" {
		r.add(s.Fill, "  ").add(s.Bad.Bold(true), c)
	}
	if r.width+1 <= timeAt {
		r.to(s.Fill, timeAt).add(s.Faint, clock)
	}
	return r.to(s.Fill, w).String()
}

// columns adds what a wide list shows beside the word: provider, engine or
// the chip in its place, and the size of the work.
func columns(r *row, s themes.Styles, a state.Agent, at int) {
	r.to(s.Fill, at+15).fit(s.Faint, a.Provider, 9).to(s.Fill, at+25)
	if c := chip(a); c != "" {
		r.add(s.Bad.Bold(true), c)
	} else {
		r.fit(s.Faint, a.Engine, 8)
	}
	if a.Work.Added == 0 && a.Work.Removed == 0 {
		return
	}
	added, removed := "+"+strconv.Itoa(a.Work.Added), "−"+strconv.Itoa(a.Work.Removed)
	r.to(s.Fill, at+42-len(added)).add(s.Good, added)
	r.to(s.Fill, at+48-diff.Width(removed)).add(s.Bad, removed)
}
