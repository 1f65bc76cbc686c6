package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// formLabel is how wide the labels of the form are, edge included.
const formLabel = 14

// formRows collects the rows of the form, and where the cursor is among them.
type formRows struct {
	s      themes.Styles
	w      int
	rows   []string
	focus  int // row of the field that has the keyboard
	cursor *tea.Position
}

func (b *formRows) blank() { b.add(newRow(b.w)) }

func (b *formRows) add(r *row) { b.rows = append(b.rows, r.String()) }

// label begins a row with its label, in the focus colour if it has the
// keyboard.
func (b *formRows) label(text string, focused bool) *row {
	style := b.s.Faint
	if focused {
		style = b.s.Focus.Bold(true)
		b.focus = len(b.rows)
	}
	return newRow(b.w).add(b.s.Text, "  ").add(style, text).to(b.s.Text, formLabel-1)
}

// text adds a field of text over at most h rows.
func (b *formRows) text(label string, f field, focused bool, h int, style lipgloss.Style, after ...span) {
	lines, x, y := f.view(b.w-formLabel, h)
	for i, line := range lines {
		r := newRow(b.w).to(b.s.Text, formLabel-1)
		if i == 0 {
			r = b.label(label, focused)
		}
		if focused && i == y {
			b.cursor = &tea.Position{X: r.width + x, Y: len(b.rows)}
		}
		r.add(style, line)
		if i == len(lines)-1 {
			r.spans(after...)
		}
		b.add(r)
	}
}

// choice adds a field of choices: the taken one is marked, and those that
// cannot be had stand behind with the reason.
func (b *formRows) choice(label string, focused bool, taken string, can []string, cannot []span) {
	r := b.label(label, focused)
	for i, name := range can {
		gap := "   "
		if i == 0 {
			gap = ""
		}
		if name == taken {
			r.add(b.s.Text, gap).add(b.s.Focus, themes.MarkHere+" ").add(b.s.Focus.Bold(true), name)
			continue
		}
		r.add(b.s.Text, gap+name)
	}
	if len(can) == 0 {
		r.add(b.s.Faint, "none")
	}
	if n := spansWidth(cannot); n > 0 && r.width+3+n > b.w {
		b.add(r)
		r = newRow(b.w).to(b.s.Text, formLabel-1).spans(cannot...)
	} else if n > 0 {
		r.add(b.s.Text, "   ").spans(cannot...)
	}
	b.add(r)
}

func (f form) view(s themes.Styles, keys keyMap, w, h int, now time.Time) ([]string, *tea.Position) {
	b := &formRows{s: s, w: w - 1}
	f.draw(b, h)
	body := h - 2
	top := max(0, min(b.focus-body/2, len(b.rows)-body))
	edge := s.Focus
	lines := []string{sheetTop(edge, w, span{s.Focus.Bold(true), "new agent"})}
	for _, r := range fitLines(b.rows[min(top, len(b.rows)):], body) {
		lines = append(lines, edge.Render(themes.HeavyVertical)+r)
	}
	var hints []span
	if f.trouble != "" {
		hints = []span{{s.Bad.Bold(true), f.trouble}}
	} else {
		hints = bindingHints(s, keys, inForm, w, "start", "field", "choose", "cancel")
	}
	lines = append(lines, sheetBottom(edge, w, hints...))
	if c := b.cursor; c != nil && c.Y >= top && c.Y < top+body {
		return lines, &tea.Position{X: c.X + 1, Y: c.Y - top + 1}
	}
	return lines, nil
}

// draw makes the rows of the form.
func (f form) draw(b *formRows, h int) {
	s := b.s
	b.blank()
	b.text("task", f.task, f.focus == fieldTask, max(2, h-20), s.Text)
	b.blank()
	b.add(newRow(b.w).to(s.Text, formLabel-1).add(s.Faint, "ctrl+j new line · empty: it waits for you"))
	b.blank()
	b.text("repository", f.repo, f.focus == fieldRepo, 2, s.Text, f.repoNote(s)...)
	b.add(b.label("base", f.focus == fieldBase).add(s.Info, orWord(f.base, "the branch that is checked out")).add(s.Faint, "   its freshest tip, local or remote"))
	b.blank()
	b.choice("agent", f.focus == fieldProvider, f.provider, f.providers(true), f.unusable(s))
	copies := b.label("copies", f.focus == fieldCopies)
	for n := 1; n <= 9; n++ {
		style := s.Faint
		if n == f.copies {
			style = s.Strong
			if f.focus == fieldCopies {
				style = s.Focus.Bold(true)
			}
		}
		copies.add(style, fmt.Sprintf("%d", n)).add(s.Text, "  ")
	}
	b.add(copies.add(s.Faint, " the same task, to compare"))
	b.blank()
	b.choice("sandbox", f.focus == fieldEngine, f.engine, f.engines(true), f.broken(s))
	for _, line := range f.guarantees(b.w - formLabel) {
		style := s.Faint
		if f.engine == "direct" {
			style = s.Bad
		}
		b.add(newRow(b.w).to(s.Text, formLabel-1).add(style, line))
	}
	b.blank()
	b.add(b.label("publish", false).add(s.Strong, "always asks you"))
	name := []span{{s.Faint, "a name is found if you give none"}}
	if f.name.text != "" {
		name = []span{{s.Faint, "   branch "}, {s.Info, "fletch/" + f.name.text}}
	}
	b.text("name", f.name, f.focus == fieldName, 1, s.Text, name...)
}

// repoNote says what about the repository the person should know.
func (f form) repoNote(s themes.Styles) []span {
	switch {
	case f.survey == nil || f.at != f.repository():
		return nil
	case f.survey.Here.Repo == "":
		return []span{{s.Bad, "  " + orWord(f.survey.Here.Why, "not a git repository")}}
	case f.survey.Here.Uncommitted > 0:
		return []span{{s.Faint, "  " + plural(f.survey.Here.Uncommitted, "uncommitted file") + " not included"}}
	}
	return nil
}

// unusable are the agent programs that cannot be chosen, by the reason.
func (f form) unusable(s themes.Styles) []span {
	if f.survey == nil {
		return nil
	}
	var names []string
	why := ""
	for _, p := range f.survey.Providers {
		if p.Usable {
			continue
		}
		names = append(names, p.Name)
		why = p.Why
	}
	for _, p := range f.survey.Providers {
		if !p.Usable && p.Why != why {
			// Different reasons: each with its own.
			names = names[:0]
			for _, q := range f.survey.Providers {
				if !q.Usable {
					names = append(names, q.Name+" ("+q.Why+")")
				}
			}
			why = ""
			break
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []span{{s.Faint, strings.TrimRight(strings.Join(names, "  ")+"   "+why, " ")}}
}

// broken are the engines that cannot be chosen, each with its cause.
func (f form) broken(s themes.Styles) []span {
	if f.survey == nil {
		return nil
	}
	var out []span
	for _, e := range f.survey.Engines {
		if !e.Usable {
			out = append(out, span{s.Faint, e.Name + "   " + e.Cause + "   "})
		}
	}
	return out
}

// guarantees says in two lines or so what the chosen engine holds, and what it
// does not.
func (f form) guarantees(w int) []string {
	if f.survey == nil {
		return nil
	}
	var held, partly, not []string
	for _, c := range claimsOf(f.survey, f.engine) {
		switch c.Held {
		case "enforced":
			held = append(held, claimName(c))
		case "partial":
			partly = append(partly, claimName(c))
		default:
			not = append(not, claimName(c))
		}
	}
	out := items(held, w)
	if len(partly) > 0 {
		partly[0] = "in part: " + partly[0]
		out = append(out, items(partly, w)...)
	}
	if len(not) > 0 {
		not[0] = "not held: " + not[0]
		out = append(out, items(not, w)...)
	}
	return out
}

// claimName is a claim's name in words: it is a slug for scripts.
func claimName(c state.Claim) string { return strings.ReplaceAll(c.Name, "-", " ") }

// items sets short texts side by side, in lines of at most w cells.
func items(all []string, w int) (lines []string) {
	line := ""
	for _, item := range all {
		item = diff.Visible(item)
		if line != "" && diff.Width(line)+3+diff.Width(item) <= w {
			line += " · " + item
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		line = item
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
