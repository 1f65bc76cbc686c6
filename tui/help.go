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
	case "close", "leave", "help":
		return d, outcome{closes: true}
	default:
		if slowEsc(name) {
			return d, outcome{closes: true, rest: true}
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
	note := "  " + string(in)
	if in == inList {
		note = "  agents list"
	}
	return textDialog{title: "keys", note: note, lines: func(s themes.Styles, w int) []string {
		return helpLines(s, keys, in, w)
	}}
}

// helpLines shows what the keys of a scope do. The list has many: they stand
// in two columns where there is room.
func helpLines(s themes.Styles, keys keyMap, in scope, w int) []string {
	width, columns := w, w >= 72 && in == inList
	if columns {
		width = w/2 - 1
	}
	var blocks [][]string
	for _, g := range keys.groups(in) {
		block := []string{padded(newRow(width).add(s.Strong, g.name).String(), width)}
		for _, line := range g.rows {
			r := newRow(width).add(s.Focus, keys.together(in, line.acts))
			r.to(s.Text, max(11, r.width+2)).fit(s.Faint, line.text, width-r.width)
			block = append(block, r.to(s.Text, width).String())
		}
		blocks = append(blocks, append(block, strings.Repeat(" ", width)))
	}
	if !columns {
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

// groups are the headings of the help screen of a scope.
func (k keyMap) groups(in scope) []helpGroup {
	if in == inList {
		return listHelp()
	}
	own := helpGroup{name: string(in)}
	for _, b := range k.table {
		if b.in == in {
			own.rows = append(own.rows, helpRow{acts(b.action), b.help})
		}
	}
	all := listHelp()
	return []helpGroup{own, all[len(all)-1]}
}

// together are the keys of actions that belong together, the best of each
// first, as far as they are worth the room.
func (k keyMap) together(in scope, all []action) string {
	var out []string
	room := 9
	for rank := range 2 {
		for _, act := range all {
			for _, b := range k.table {
				if b.action != act || b.in != in && b.in != inAny && (in != inList || b.in != inTyping) || rank >= len(b.keys) {
					continue
				}
				if key := shown(b.keys[rank]); room >= diff.Width(key) {
					out = append(out, key)
					room -= diff.Width(key) + 1
				}
				break
			}
		}
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
		return []string{newRow(w).add(s.Good, themes.MarkDone+" ").add(s.Text, name).to(s.Text, 14).add(s.Faint, detail).String()}
	}
	out := []string{newRow(w).add(s.Bad, themes.MarkFailed+" ").add(s.Text, name).to(s.Text, 14).add(s.Faint, cause).String()}
	if fix != "" {
		for _, line := range wrap(fix, w-4) {
			out = append(out, newRow(w).add(s.Text, "    ").add(s.Strong, line).String())
		}
	}
	return out
}
