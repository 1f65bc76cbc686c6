package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// textDialog is lines to read: help and doctor.
type textDialog struct {
	fixed
	title, note string
	pane        textPane
	lines       func(s themes.Styles, w int) []string
	total       int
	survey      bool // shows the survey
}

func (textDialog) scope() scope          { return inDialog }
func (d textDialog) paste(string) dialog { return d }

func (d textDialog) surveyed(s state.Survey) dialog {
	if d.survey {
		d.lines = doctorLines(&s)
	}
	return d
}

func (d textDialog) key(name, _ string, keys keyMap, _ time.Time) (dialog, outcome) {
	by := 0
	switch keys.find(inDialog, name) {
	case "down":
		by = 1
	case "up":
		by = -1
	case "close", "help":
		return d, outcome{closes: true}
	default:
		if len(name) == len("alt+x") && strings.HasPrefix(name, "alt+") {
			return d, outcome{closes: true}
		}
	}
	if name == "pgdown" || name == "space" || name == "pgup" || name == "b" {
		by *= 10
	}
	d.pane.top = max(0, d.pane.top+by)
	return d, outcome{}
}

func (d textDialog) view(s themes.Styles, keys keyMap, w, h int, _ time.Time) ([]string, *tea.Position) {
	all := d.lines(s, w-3)
	out := []string{sheetTop(s.Focus, w, span{s.Focus.Bold(true), d.title}, span{s.Faint, d.note})}
	for _, line := range d.pane.window(all, h-2) {
		out = append(out, s.Focus.Render(themes.HeavyVertical)+"  "+line)
	}
	hints := []span{{s.Focus, "esc"}, {s.Faint, " back"}}
	if len(all) > h-2 {
		hints = append(hints, span{s.Focus, "   j k"}, span{s.Faint, " more"})
	}
	return append(out, sheetBottom(s.Focus, w, hints...)), nil
}

// newHelp is the key table, as it reads from a scope.
func newHelp(keys keyMap, in scope) dialog {
	note := ""
	if in != "" {
		note = "  " + string(in)
	}
	return textDialog{title: "keys", note: note, lines: func(s themes.Styles, w int) []string {
		return helpLines(s, keys, in, w)
	}}
}

// helpLines shows what the keys of a scope do, then those of everywhere: in
// two columns where there is room.
func helpLines(s themes.Styles, keys keyMap, in scope, w int) []string {
	groups := keys.groups(in)
	width := w
	if w >= 72 {
		width = w/2 - 1
	}
	var blocks [][]string
	for _, g := range groups {
		block := []string{newRow(width).add(s.Strong, g.name).String()}
		for _, b := range g.bindings {
			r := newRow(width).add(s.Focus, shownKeys(b))
			r.to(s.Text, max(11, r.width+1)).fit(s.Faint, b.help, width-r.width)
			block = append(block, r.to(s.Text, width).String())
		}
		block[0] = padded(block[0], width)
		blocks = append(blocks, append(block, strings.Repeat(" ", width)))
	}
	if w < 72 {
		return append([]string{""}, flat(blocks)...)
	}
	left, right := halves(blocks)
	out := []string{""}
	for i := range max(len(left), len(right)) {
		line := strings.Repeat(" ", width)
		if i < len(left) {
			line = left[i]
		}
		if i < len(right) {
			line += "  " + right[i]
		}
		out = append(out, line)
	}
	return out
}

func padded(line string, w int) string {
	return line + strings.Repeat(" ", max(0, w-diff.Width(stripped(line))))
}

// halves deals blocks into two columns of about the same height, in order.
func halves(blocks [][]string) (left, right []string) {
	total := len(flat(blocks))
	for _, b := range blocks {
		if len(right) == 0 && (len(left) == 0 || len(left)+len(b)/2 <= total/2) {
			left = append(left, b...)
			continue
		}
		right = append(right, b...)
	}
	return left, right
}

func flat(blocks [][]string) (all []string) {
	for _, b := range blocks {
		all = append(all, b...)
	}
	return all
}

// helpGroup is a heading of the help screen and what stands below it.
type helpGroup struct {
	name     string
	bindings []binding
}

// groups are the bindings of a scope under their headings, then those that
// hold everywhere.
func (k keyMap) groups(in scope) []helpGroup {
	var out []helpGroup
	add := func(name string, b binding) {
		for i := range out {
			if out[i].name == name {
				out[i].bindings = append(out[i].bindings, b)
				return
			}
		}
		out = append(out, helpGroup{name, []binding{b}})
	}
	for _, b := range k.table {
		switch {
		case in == inList && (b.in == inList || b.in == inTyping || b.in == inAny):
			if b.group != "" {
				add(b.group, b)
			}
		case in != inList && b.in == in:
			add(string(in), b)
		case in != inList && b.in == inAny && in != inRequest:
			add(groupSelf, b)
		}
	}
	return out
}

// shownKeys are the keys of a binding as people read them.
func shownKeys(b binding) string {
	var out []string
	for _, k := range b.keys {
		out = append(out, shown(k))
	}
	return strings.Join(out, " ")
}

// newDoctor shows everything that fletch has checked, and the fixes.
func newDoctor(survey *state.Survey) dialog {
	return textDialog{title: "doctor", note: "  what works on this machine", lines: doctorLines(survey), survey: true}
}

func doctorLines(survey *state.Survey) func(themes.Styles, int) []string {
	return func(s themes.Styles, w int) []string {
		if survey == nil {
			return []string{"", newRow(w).add(s.Faint, "looking …").String()}
		}
		out := []string{"", newRow(w).add(s.Strong, "sandbox").String()}
		for _, e := range survey.Engines {
			out = append(out, checked(s, w, e.Usable, e.Name, e.Detail, e.Cause, e.Fix)...)
			for _, c := range e.Claims {
				if e.Usable {
					for _, line := range claimLines(s, c, w-4) {
						out = append(out, "    "+line)
					}
				}
			}
		}
		out = append(out, "", newRow(w).add(s.Strong, "agents").String())
		for _, p := range survey.Providers {
			out = append(out, checked(s, w, p.Usable, p.Name, p.Version, p.Why, p.Fix)...)
		}
		out = append(out, "", newRow(w).add(s.Strong, "here").String())
		if survey.Here.Repo == "" {
			return append(out, checked(s, w, false, "repository", "", orWord(survey.Here.Why, "not a git repository"), "")...)
		}
		return append(out, checked(s, w, true, survey.Here.Repo, "branch "+survey.Here.Branch, "", "")...)
	}
}

// checked is one thing that was looked at: what it is, or why not and the fix.
func checked(s themes.Styles, w int, ok bool, name, detail, cause, fix string) []string {
	if ok {
		return []string{newRow(w).add(s.Good, themes.MarkDone+" ").add(s.Text, name).add(s.Faint, "   "+detail).String()}
	}
	out := []string{newRow(w).add(s.Bad, themes.MarkFailed+" ").add(s.Text, name).add(s.Faint, "   "+cause).String()}
	if fix != "" {
		for _, line := range wrap(fix, w-4) {
			out = append(out, newRow(w).add(s.Text, "    ").add(s.Strong, line).String())
		}
	}
	return out
}
