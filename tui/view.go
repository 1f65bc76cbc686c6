package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/charmbracelet/x/ansi"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// View draws the dashboard. Each part is a block of lines; parts that have
// not changed come from the cache.
func (m Model) View() tea.View {
	lines, cursor := m.compose()
	view := tea.NewView(m.look.marks.Text(strings.Join(lines, "\n")))
	view.AltScreen = true
	view.ReportFocus = true
	view.WindowTitle = m.title()
	// Only a terminal that tells a held key from a pressed one can keep a
	// repeat from counting; the sheet wants to know.
	view.KeyboardEnhancements.ReportEventTypes = m.request != nil
	if !m.mouseOff {
		view.MouseMode = tea.MouseModeCellMotion
	}
	if cursor != nil {
		view.Cursor = cursor
	}
	return view
}

// compose is the screen as m.h lines, and where the cursor is.
func (m Model) compose() ([]string, *tea.Cursor) {
	if m.w == 0 || m.h == 0 {
		return nil, nil
	}
	l := m.layout()
	if l.shape == tooSmall {
		return []string{newRow(m.w).add(m.look.styles.Text, fmt.Sprintf("fletch needs %d×%d; this is %d×%d.", minCols, minRows, m.w, m.h)).String()}, nil
	}
	var lines []string
	var cursor *tea.Cursor
	if m.newcomer() {
		lines = fitLines(m.firstScreen(), m.h)
	} else {
		lines, cursor = m.base(l)
	}
	if m.request != nil {
		at := m.sheetRect()
		block := strings.Split(m.request.sheet.View(m.look.styles, m.look.marks, at.w, at.h), "\n")
		lines, cursor = overlay(lines, fitLines(block, at.h), at), nil
	}
	if n := len(m.dialogs); n > 0 {
		lines, cursor = m.overDialog(lines, m.dialogs[n-1])
	}
	return fitLines(lines, m.h), cursor
}

// overDialog lays the topmost dialog over the screen.
func (m Model) overDialog(lines []string, d dialog) ([]string, *tea.Cursor) {
	at := lay(m.w, m.h, 0, false, false).dialog
	if m.newcomer() && at.x > 0 {
		at = rect{0, 1, m.w, m.h - 1} // there is no list to leave in view
	}
	if h := d.height(); h > 0 && h < at.h {
		at.y, at.h = at.y+at.h-h, h
	}
	block, cursor := d.view(m.look.styles, m.keys, at.w, at.h, m.now)
	lines = overlay(lines, fitLines(block, at.h), at)
	if cursor == nil {
		return lines, nil
	}
	return lines, tea.NewCursor(at.x+cursor.X, at.y+cursor.Y)
}

// overlay puts a block where at says. What stands left of it stays.
func overlay(lines, block []string, at rect) []string {
	out := append([]string(nil), lines...)
	for i, line := range block {
		y := at.y + i
		if y >= len(out) {
			break
		}
		left := ""
		if at.x > 0 {
			left = ansi.Truncate(out[y], at.x, "")
			left += strings.Repeat(" ", max(0, at.x-ansi.StringWidth(left)))
		}
		out[y] = left + line
	}
	return out
}

// stripped is a drawn line without its colours.
func stripped(line string) string { return ansi.Strip(line) }

// base is the dashboard without what lies over it.
func (m Model) base(l layout) ([]string, *tea.Cursor) {
	s := m.look.styles
	lines := make([]string, m.h)
	if l.shape != bare || l.rightTitle < 0 {
		lines[0] = newRow(m.w).add(s.Strong, " fletch").String()
		if m.watching {
			lines[0] = topLine(s, m.fleet, m.place(), m.w)
		}
	}
	right, cursor := m.rightBlock(l)
	list := m.listBlock(l)
	if l.divider >= 0 {
		m.joined(lines, l, list, right)
	} else {
		m.stackedLines(lines, l, list, right)
	}
	lines[l.hints] = m.hintLine()
	if cursor != nil && m.request == nil && len(m.dialogs) == 0 {
		c := tea.NewCursor(l.right.x+cursor.X, l.right.y+cursor.Y)
		c.Shape, c.Blink = m.cursorShape()
		return lines, c
	}
	return lines, nil
}

// cursorShape is how the typed agent wants its cursor to look.
func (m Model) cursorShape() (tea.CursorShape, bool) {
	g := m.screens.grid(m.typing.agent)
	if g == nil || g.cursor.Shape == 0 {
		return tea.CursorBlock, true
	}
	shapes := [3]tea.CursorShape{tea.CursorBlock, tea.CursorUnderline, tea.CursorBar}
	return shapes[min(int(g.cursor.Shape-1)/2, 2)], g.cursor.Shape%2 == 1
}

// place is the repository that the top line names.
func (m Model) place() string {
	if m.survey != nil && m.survey.Here.Repo != "" {
		return m.survey.Here.Repo
	}
	return m.o.Dir
}

// joined writes list and right side beside each other.
func (m Model) joined(lines []string, l layout, list, right []string) {
	s := m.look.styles
	edge, vertical, tee, foot := s.Line, themes.Vertical, themes.TeeDown, themes.TeeUp
	if m.typing.on {
		edge, vertical, tee, foot = s.Good, themes.HeavyVertical, themes.HeavyTop, themes.HeavyBottom
	}
	lines[l.listTitle] = m.listTitle(l.list.w) + edge.Render(tee) + m.rightTitle(l.right.w+1)
	bar := edge.Render(vertical)
	for i := range l.list.h {
		line := list[i]
		line += strings.Repeat(" ", max(0, l.list.w-ansi.StringWidth(line)))
		if r := right[i]; r != "" {
			line += bar + " " + r
		} else {
			line += bar
		}
		lines[l.list.y+i] = line
	}
	left := newRow(l.list.w).line(s.Line, themes.Horizontal, l.list.w).String()
	lines[l.bottom] = left + edge.Render(foot) + m.tabLine(l.right.w+1)
}

// stackedLines writes what is there one below the other.
func (m Model) stackedLines(lines []string, l layout, list, right []string) {
	s := m.look.styles
	if l.listTitle >= 0 && l.list.h > 0 {
		lines[l.listTitle] = m.listTitle(m.w)
	}
	copy(lines[l.list.y:], list)
	if l.rightTitle >= 0 && l.right.h > 0 {
		lines[l.rightTitle] = m.rightTitle(m.w)
		for i, line := range right {
			if line != "" {
				line = strings.Repeat(" ", l.right.x) + line
			}
			lines[l.right.y+i] = line
		}
	}
	if l.bottom < 0 {
		return
	}
	switch {
	case m.typing.on:
		lines[l.bottom] = newRow(m.w).line(s.Good, themes.HeavyHorizontal, m.w).String()
	case l.list.h == 0:
		lines[l.bottom] = m.tabLine(m.w)
	default:
		lines[l.bottom] = newRow(m.w).line(s.Line, themes.Horizontal, m.w).String()
	}
}

// listBlock draws the list.
func (m Model) listBlock(l layout) []string {
	if l.list.h <= 0 {
		return nil
	}
	if !m.watching {
		return fitLines([]string{"", newRow(l.list.w).add(m.look.styles.Faint, "   reading the fleet …").String()}, l.list.h)
	}
	if len(m.fleet.Agents) == 0 {
		return m.emptyList(l.list.w, l.list.h)
	}
	y, day := m.now.Year(), m.now.YearDay()
	key := listKey{m.fleet.Seq, m.list.rev, m.list.cursor, l, m.look.dark, m.look.depth, y*1000 + day}
	if m.cache.listKey != key || m.cache.list == nil {
		m.cache.listKey, m.cache.list = key, m.list.view(m.look.styles, m.fleet, l, m.now)
	}
	return m.cache.list
}

// cache holds what was drawn last, by what it was drawn from. The model
// points at it: a view cannot change a value.
type cache struct {
	listKey listKey
	list    []string
}

type listKey struct {
	seq    uint64
	rev    int
	cursor state.AgentID
	layout layout
	dark   bool
	depth  themes.Depth
	day    int
}

// rightBlock draws what the right side shows, and the agent's cursor while it
// has the keyboard.
func (m Model) rightBlock(l layout) ([]string, *tea.Position) {
	w, h := l.right.w, l.right.h
	if h <= 0 {
		return nil, nil
	}
	a, ok := m.fleet.Agent(m.watched())
	if !ok {
		return make([]string, h), nil
	}
	s := m.look.styles
	switch m.shownTab() {
	case tabChanges:
		return m.changes.view(s, m.look.marks, a, w, h), nil
	case tabActivity:
		return m.activity.text.window(m.activity.lines(s, w, m.now), h), nil
	case tabSandbox:
		return m.sandbox.window(sandboxLines(s, m.fleet, m.survey, a, w, m.now), h), nil
	case tabScreen:
	}
	return m.screenBlock(a, w, h)
}

// screenBlock draws an agent's terminal. Below the end of one that no longer
// runs stands why, and how it goes on.
func (m Model) screenBlock(a state.Agent, w, h int) ([]string, *tea.Position) {
	s := m.look.styles
	note := m.screenNote(a, w)
	g := m.screens.grid(a.ID)
	if g == nil {
		return fitLines(append([]string{""}, note...), h), nil
	}
	room := max(1, h-len(note))
	lines := append(g.view(w, room), note...)
	if g.up > 0 {
		way := "J down"
		if m.right || m.whole {
			way = "G live"
		}
		text := fmt.Sprintf(" %s above the end · %s ", plural(g.up, "line"), way)
		lines[room-1] = newRow(w).to(s.Text, w-diff.Width(text)).add(s.ChipFocus, text).String()
	}
	if !m.typing.on || !g.cursor.Visible || g.up > 0 {
		return fitLines(lines, h), nil
	}
	y := g.cursor.Y + g.history - g.top(room)
	if y < 0 || y >= room || g.cursor.X >= w {
		return fitLines(lines, h), nil
	}
	return fitLines(lines, h), &tea.Position{X: g.cursor.X, Y: y}
}

// screenNote is what fletch has to say below an agent's screen.
func (m Model) screenNote(a state.Agent, w int) []string {
	s := m.look.styles
	live := m.screens.live
	switch {
	case a.Status == state.Starting:
		return startingNote(s, a, w)
	case a.Status == state.Failed:
		out := []string{""}
		for _, line := range wrap("failed: "+orWord(a.Reason, "its program ended"), w-2) {
			out = append(out, newRow(w).add(s.Bad, line).String())
		}
		return append(out, newRow(w).add(s.Focus, "enter").add(s.Faint, " continues it").String())
	case !a.Status.Live():
		text := string(a.Status)
		if a.Reason != "" {
			text += ": " + a.Reason
		}
		return []string{"", newRow(w).add(s.Faint, themes.MarkStopped+" "+text+"   ").add(s.Focus, "enter").add(s.Faint, " continues it").String()}
	case live != nil && live.agent == a.ID && live.failed != "":
		return []string{"", newRow(w).fit(s.Faint, "its screen cannot be shown: "+live.failed, w).String()}
	}
	return nil
}

// startingNote says what is being done for an agent that starts, with a bar
// when it is known how much of it is done ("checking out 40 %").
func startingNote(s themes.Styles, a state.Agent, w int) []string {
	r := newRow(w).add(s.Faint, themes.MarkStarting+" starting")
	if a.Note == "" {
		return []string{r.String()}
	}
	out := []string{r.add(s.Faint, ": "+a.Note).String()}
	words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(a.Note), "%"))
	if len(words) == 0 || !strings.HasSuffix(strings.TrimSpace(a.Note), "%") {
		return out
	}
	done, err := strconv.Atoi(words[len(words)-1])
	if err != nil || done < 0 || done > 100 {
		return out
	}
	const length = 40
	full := length * done / 100
	return append(out, newRow(w).add(s.Text, "  ").line(s.Focus, themes.HeavyHorizontal, 2+full).line(s.Line, themes.Horizontal, 2+length).String())
}
