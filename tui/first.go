package tui

import (
	"fmt"
	"strings"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// firstScreen is what a newcomer sees: what works here, and what to do.
func (m Model) firstScreen() []string {
	s, w, h := m.look.styles, m.w, m.h
	top := newRow(w).add(s.Strong, " fletch").to(s.Text, w-17).add(s.Faint, "? help   q leave")
	out := []string{top.String(), newRow(w).line(s.Line, themes.Horizontal, w).String()}
	out = append(out, fitLines(m.firstBody(w, h-4), h-4)...)
	foot := newRow(w).fit(s.Faint, " fletch "+m.o.Version+" · state in "+m.o.State+" · agents go on when you leave", w).String()
	if m.toast.text != "" {
		foot = m.toast.view(s, w)
	}
	return append(out, newRow(w).line(s.Line, themes.Horizontal, w).String(), foot)
}

// firstPart is a part of the first screen. Where there is not room for all of
// them the later ranks go first; what to press is always there.
type firstPart struct {
	rank  int
	above int // blank lines before it
	lines []string
}

// firstBody sets the parts below each other in h lines. Air goes before
// anything else does.
func (m Model) firstBody(w, h int) []string {
	parts := m.firstParts(w)
	for drop := 5; ; drop-- {
		var air, tight []string
		for _, p := range parts {
			if p.rank > drop {
				continue
			}
			air = append(append(air, make([]string, p.above)...), p.lines...)
			tight = append(tight, p.lines...)
		}
		if len(air) <= h {
			return air
		}
		if len(tight) <= h || drop == 0 {
			return spread(parts, drop, h)
		}
	}
}

// spread is the parts up to a rank, with one blank line before as many of them
// as there is room for, the last ones first: what to press stands apart.
func spread(parts []firstPart, rank, h int) []string {
	total := 0
	for _, p := range parts {
		if p.rank <= rank {
			total += len(p.lines)
		}
	}
	blanks := h - total
	var out []string
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i].rank > rank {
			continue
		}
		out = append(append([]string(nil), parts[i].lines...), out...)
		if blanks > 0 {
			out, blanks = append([]string{""}, out...), blanks-1
		}
	}
	return out
}

func (m Model) firstParts(w int) []firstPart {
	s := m.look.styles
	indent, label := 3, 10
	if w < 72 {
		indent = 1
	}
	at := indent + label
	line := func(name string) *row {
		return newRow(w).to(s.Text, indent).add(s.Faint, name).to(s.Text, at)
	}
	var promise, engines, press []string
	for _, text := range wrap("Agents work in sealed copies. Nothing leaves this machine until you say so.", w-indent-1) {
		promise = append(promise, newRow(w).to(s.Text, indent).add(s.Strong, text).String())
	}
	for i, e := range m.survey.Engines {
		name := ""
		if i == 0 {
			name = "sandbox"
		}
		engines = append(engines, m.engineLines(line(name), e, at)...)
	}
	gap := 2
	if !m.canStart() {
		engines = append(engines, line("").fit(s.Ask, "fletch starts no agent without a sandbox.", w-at).String())
		gap = 1
	}
	for i, k := range m.firstKeys() {
		key, what := s.Focus, s.Text
		if i == 0 {
			key, what = key.Bold(true), s.Strong
		}
		r := newRow(w).to(s.Text, indent).add(key, k[0]).to(s.Text, at).add(what, k[1])
		press = append(press, r.to(s.Text, at+17).fit(s.Faint, k[2], w-at-17).String())
	}
	parts := []firstPart{
		{2, 1, promise},
		{1, 1, engines},
		{3, gap, m.providerLines(line)},
		{4, 1, []string{m.hereLine(line("here")).String()}},
		{0, 2, press},
	}
	if m.canStart() && m.o.Demo != nil && w >= 72 {
		parts = append(parts, firstPart{5, 2, []string{newRow(w).to(s.Text, indent).spans(
			span{s.Faint, "You will see one agent ask to push. Read it, then "}, span{s.Focus, "ctrl+y"},
			span{s.Faint, " allows, "}, span{s.Focus, "x"}, span{s.Faint, " denies."}).String()}})
	}
	return parts
}

// firstKeys are key, what it does, and more about it; the first is what to do.
func (m Model) firstKeys() [][3]string {
	const doctor = "everything fletch checked, and the fixes"
	if !m.canStart() {
		return [][3]string{{"R", "check again", ""}, {"D", "doctor", doctor}, {"q", "leave", ""}}
	}
	where := "in this repository"
	if m.survey.Here.Repo == "" {
		where = "asks which repository"
	}
	var out [][3]string
	if m.o.Demo != nil {
		out = append(out, [3]string{"enter", "watch the demo", "three scripted agents, 90 s, no account, no cost"})
	}
	return append(out, [3]string{"n", "new agent", where}, [3]string{"D", "doctor", doctor})
}

// engineLines: "✓ native   bubblewrap 0.8.0, …", or the cause and the fix.
func (m Model) engineLines(r *row, e state.EngineSurvey, at int) []string {
	s, w := m.look.styles, r.max
	name := fmt.Sprintf("%-6s", e.Name)
	if e.Usable {
		return []string{r.add(s.Good, themes.MarkDone+" ").add(s.Text, name).fit(s.Faint, "   "+e.Detail, w-r.width-1).String()}
	}
	if m.canStart() {
		why := e.Cause
		if e.Fix != "" {
			why += ": " + e.Fix
		}
		return []string{r.add(s.Faint, themes.MarkIdle+" ").add(s.Text, name).fit(s.Faint, "   "+why, w-r.width-1).String()}
	}
	r.add(s.Bad, themes.MarkFailed+" ").add(s.Text, name).fit(s.Faint, "   "+e.Cause, w-r.width-1)
	if column := max(r.width+2, 52); e.Fix == "" || column+diff.Width(diff.Visible(e.Fix)) <= w {
		return []string{r.to(s.Text, column).add(s.Strong, e.Fix).String()}
	}
	out := []string{r.String()}
	for _, text := range wrap(e.Fix, w-at-2) {
		out = append(out, newRow(w).to(s.Text, at+2).add(s.Strong, text).String())
	}
	return out
}

// providerLines are the agent programs that are there, then those that are
// not.
func (m Model) providerLines(line func(string) *row) []string {
	s := m.look.styles
	there := line("agents")
	var missing []string
	why := ""
	n := 0
	for _, p := range m.survey.Providers {
		if !p.Usable {
			missing, why = append(missing, p.Name), orWord(why, p.Why)
			continue
		}
		if n > 0 {
			there.add(s.Text, "   ")
		}
		there.add(s.Good, themes.MarkDone+" ").add(s.Text, strings.TrimSpace(p.Name+" "+p.Version))
		n++
	}
	out := []string{}
	if n > 0 {
		out = append(out, there.String())
		there = line("")
	}
	if len(missing) > 0 {
		text := themes.MarkIdle + " " + strings.Join(missing, ", ") + ": " + why
		out = append(out, there.fit(s.Faint, text, there.max-there.width).String())
	}
	return out
}

func (m Model) hereLine(r *row) *row {
	s, here := m.look.styles, m.survey.Here
	if here.Repo == "" {
		return r.add(s.Faint, orWord(here.Why, "not a git repository")+"; n asks which one")
	}
	r.add(s.Info, tilde(here.Repo, m.o.Home)).add(s.Faint, "  branch ").add(s.Info, here.Branch)
	if here.Uncommitted > 0 {
		r.fit(s.Faint, "  "+plural(here.Uncommitted, "uncommitted file")+": agents start without", r.max-r.width)
	}
	return r
}

// emptyList is the list without agents.
func (m Model) emptyList(w, h int) []string {
	s := m.look.styles
	place := tilde(m.o.Dir, m.o.Home)
	if m.survey != nil && m.survey.Here.Repo != "" {
		place = tilde(m.survey.Here.Repo, m.o.Home)
	}
	where := []span{{s.Text, "start one"}}
	if place != "" && (m.survey == nil || m.survey.Here.Repo != "") {
		where = []span{{s.Text, "start one here, in "}, {s.Info, place}}
	}
	out := []string{
		"", "", newRow(w).add(s.Strong, "   No agents yet.").String(), "",
		newRow(w).add(s.Focus, "   n").add(s.Text, "  ").spans(where...).String(),
	}
	if m.o.Demo != nil {
		out = append(out, newRow(w).add(s.Focus, "   D").add(s.Text, "  watch the demo").
			add(s.Faint, "   three scripted agents, nothing to set up").String())
	}
	if diff.Width(place) > 0 && h < len(out) {
		out = out[2:]
	}
	return fitLines(out, h)
}
