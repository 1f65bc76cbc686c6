package tui

import (
	"fmt"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// listTitle is the line above the list.
func (m Model) listTitle(w int) string {
	s := m.look.styles
	line, glyph, name := s.Focus, themes.HeavyHorizontal, s.Focus.Bold(true)
	if m.right || m.typing.on || m.request != nil || len(m.dialogs) > 0 {
		line, glyph, name = s.Line, themes.Horizontal, s.Faint
	}
	note := fmt.Sprintf("%d", len(m.fleet.Agents))
	if len(m.fleet.Agents) > 0 && m.request == nil {
		note += "  since"
	}
	return titleLine(line, glyph, glyph+" ", w, []span{{name, "agents"}}, []span{{s.Faint, note}})
}

// rightTitle is the line above the right side: whose screen it is, on what it
// runs, what it is measured against, and how much it has changed.
func (m Model) rightTitle(w int) string {
	s := m.look.styles
	a, ok := m.selected()
	if !ok {
		return newRow(w).line(s.Line, themes.Horizontal, w).String()
	}
	if m.typing.on {
		return m.typingTitle(a, w)
	}
	beside := m.layout().divider >= 0
	line, glyph, name := s.Line, themes.Horizontal, s.Strong
	if m.right || m.whole {
		line, glyph, name = s.Focus, themes.HeavyHorizontal, s.Focus.Bold(true)
	}
	preview, tab := !beside && !m.right && !m.whole, m.shownTab()
	left := []span{{name, a.Name}}
	base := []span{{s.Info, baseName(a)}}
	if !a.Base.At.IsZero() {
		base = append(base, span{s.Faint, " of " + since(a.Base.At, m.now)})
	}
	var right []span
	switch {
	case preview:
		left = append(left, span{s.Faint, "  the end of its screen"})
		right = base
	case tab == tabScreen:
		left = append(append(left, span{s.Faint, "  " + a.Provider + " · " + a.Engine + " · "}), base...)
		right = work(s, a)
	case tab == tabChanges:
		left, right = m.changesTitle(left, a)
	case tab == tabActivity:
		left = append(left, span{s.Faint, "  activity"})
	case tab == tabSandbox:
		left = append(left, span{s.Faint, "  sandbox"})
	}
	if beside {
		return titleLine(line, glyph, " ", w, left, right)
	}
	return titleLine(line, glyph, glyph+" ", w, left, right)
}

// work is how much an agent has changed.
func work(s themes.Styles, a state.Agent) []span {
	if a.Work.Added == 0 && a.Work.Removed == 0 {
		return nil
	}
	return []span{{s.Good, fmt.Sprintf("+%d", a.Work.Added)}, {s.Bad, fmt.Sprintf(" −%d", a.Work.Removed)}}
}

// changesTitle names the file and the hunk at the top of the view.
func (m Model) changesTitle(left []span, a state.Agent) (title, right []span) {
	s := m.look.styles
	if !m.changes.read || m.changes.agent != a.ID {
		return append(left, span{s.Faint, "  changes"}), nil
	}
	at := m.changesAt()
	if m.changes.stale {
		right = []span{{s.Ask, "changed since you read it"}, {s.Faint, " · "}, {s.Focus, "R"}}
	} else if at.Total > 0 {
		right = append(right, span{s.Faint, fmt.Sprintf("lines %d–%d of %d", at.From, at.To, at.Total)})
	}
	if at.File == 0 {
		return append(left, span{s.Faint, "  changes"}), right
	}
	note := fmt.Sprintf("  file %d of %d", at.File, at.Files)
	if at.Hunks > 0 {
		note = fmt.Sprintf("  hunk %d of %d", at.Hunk, at.Hunks) + note
	}
	return []span{{left[0].style, diff.Visible(at.Path)}, {s.Faint, note}}, right
}

// typingTitle is the title while the agent has the keyboard.
func (m Model) typingTitle(a state.Agent, w int) string {
	s := m.look.styles
	r := newRow(w)
	if m.layout().divider >= 0 {
		r.add(s.Text, " ")
	} else {
		r.add(s.Good, themes.HeavyHorizontal+" ")
	}
	r.add(s.Good.Bold(true), a.Name)
	right := []span{{s.Text, " "}, {s.ChipFocus, " TYPING "}, {s.Text, "  "}, {s.Focus, "ctrl+]"}, {s.Faint, " back "}}
	n := spansWidth(right) + 1
	facts := []span{{s.Faint, "  " + a.Provider + " · " + a.Engine + " · "}, {s.Info, baseName(a)}}
	if !a.Base.At.IsZero() {
		facts = append(facts, span{s.Faint, " of " + since(a.Base.At, m.now)})
	}
	if r.width+spansWidth(facts)+n+2 <= w {
		r.spans(facts...)
	}
	return r.add(s.Text, " ").line(s.Good, themes.HeavyHorizontal, w-n).spans(right...).line(s.Good, themes.HeavyHorizontal, w).String()
}

// tabLine is the line below the right side, with its four tabs.
func (m Model) tabLine(w int) string {
	s := m.look.styles
	r := newRow(w)
	if m.typing.on {
		return r.line(s.Good, themes.HeavyHorizontal, w).String()
	}
	if m.request == nil && len(m.fleet.Agents) > 0 {
		for i, name := range []string{"screen", "changes", "activity", "sandbox"} {
			if i > 0 {
				r.add(s.Text, "  ")
			}
			text := fmt.Sprintf("%d %s", i+1, name)
			if tab(i) == m.tab {
				r.add(s.Text, " ").add(s.Strong, themes.MarkHere+text)
			} else {
				r.add(s.Faint, "  "+text)
			}
		}
		r.add(s.Text, " ")
	}
	return r.line(s.Line, themes.Horizontal, w).String()
}
