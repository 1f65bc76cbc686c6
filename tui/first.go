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
	top := newRow(w).add(s.Strong, " fletch")
	if w >= 40 {
		top.to(s.Text, w-17).add(s.Faint, "? help   q leave")
	}
	body := m.firstBody(w)
	if room := h - 4; len(body) > room {
		body = tightened(body, room)
	}
	out := []string{top.String(), newRow(w).line(s.Line, themes.Horizontal, w).String()}
	out = append(out, fitLines(body, h-4)...)
	foot := newRow(w).add(s.Faint, " fletch "+m.o.Version+" · state in "+m.o.State+" · agents go on when you leave").String()
	if m.toast.text != "" {
		foot = m.toast.view(s, w)
	}
	return append(out, newRow(w).line(s.Line, themes.Horizontal, w).String(), foot)
}

// tightened leaves out blank lines, from the end, until the body fits.
func tightened(body []string, room int) []string {
	for i := len(body) - 1; i >= 0 && len(body) > room; i-- {
		if body[i] == "" {
			body = append(body[:i:i], body[i+1:]...)
		}
	}
	return body
}

func (m Model) firstBody(w int) []string {
	s := m.look.styles
	indent, label := 3, 10
	if w < 72 {
		indent = 1
	}
	at := indent + label
	line := func(name string) *row {
		return newRow(w).to(s.Text, indent).add(s.Faint, name).to(s.Text, at)
	}
	out := []string{""}
	for _, text := range wrap("Agents work in sealed copies. Nothing leaves this machine until you say so.", w-indent-1) {
		out = append(out, newRow(w).to(s.Text, indent).add(s.Strong, text).String())
	}
	out = append(out, "")
	for i, e := range m.survey.Engines {
		name := ""
		if i == 0 {
			name = "sandbox"
		}
		out = append(out, m.engineLine(line(name), e).String())
	}
	if !m.canStart() {
		out = append(out, line("").add(s.Ask, "fletch starts no agent without a sandbox.").String())
	} else {
		out = append(out, "")
	}
	if m.canStart() || len(m.survey.Engines) > 1 {
		out = append(out, "")
	}
	out = append(out, m.providerLines(line)...)
	out = append(out, "", m.hereLine(line("here")).String(), "", "")
	for _, k := range m.firstKeys() {
		r := newRow(w).to(s.Text, indent).add(s.Focus, k[0]).to(s.Text, at).add(s.Text, k[1])
		if len(out) > 0 && k[3] != "" {
			r = newRow(w).to(s.Text, indent).add(s.Focus.Bold(true), k[0]).to(s.Text, at).add(s.Strong, k[1])
		}
		out = append(out, r.to(s.Text, at+17).add(s.Faint, k[2]).String())
	}
	if !m.canStart() || m.o.Demo == nil {
		return out
	}
	return append(out, "", "", newRow(w).to(s.Text, indent).spans(
		span{s.Faint, "You will see one agent ask to push. Read it, then "}, span{s.Focus, "ctrl+y"},
		span{s.Faint, " allows, "}, span{s.Focus, "x"}, span{s.Faint, " denies."}).String())
}

// firstKeys are key, what it does, and more about it; the first is marked.
func (m Model) firstKeys() [][4]string {
	const doctor = "everything fletch checked, and the fixes"
	if !m.canStart() {
		return [][4]string{{"R", "check again", "", "main"}, {"D", "doctor", doctor}, {"q", "leave"}}
	}
	where := "in this repository"
	if m.survey.Here.Repo == "" {
		where = "asks which repository"
	}
	var out [][4]string
	if m.o.Demo != nil {
		out = append(out, [4]string{"enter", "watch the demo", "three scripted agents, 90 s, no account, no cost", "main"})
	}
	return append(out, [4]string{"n", "new agent", where}, [4]string{"D", "doctor", doctor})
}

// engineLine: "✓ native   bubblewrap 0.8.0, …" or the cause and the fix.
func (m Model) engineLine(r *row, e state.EngineSurvey) *row {
	s := m.look.styles
	name := fmt.Sprintf("%-6s", e.Name)
	if e.Usable {
		return r.add(s.Good, themes.MarkDone+" ").add(s.Text, name).fit(s.Faint, "   "+e.Detail, r.max-r.width-1)
	}
	if m.canStart() {
		why := e.Cause
		if e.Fix != "" {
			why += ": " + e.Fix
		}
		return r.add(s.Faint, themes.MarkIdle+" ").add(s.Text, name).fit(s.Faint, "   "+why, r.max-r.width-1)
	}
	r.add(s.Bad, themes.MarkFailed+" ").add(s.Text, name).add(s.Faint, "   "+e.Cause)
	return r.to(s.Text, max(r.width+2, 52)).add(s.Strong, e.Fix)
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
		r.add(s.Faint, "  "+plural(here.Uncommitted, "uncommitted file")+": agents start without")
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
	out := []string{"", "", newRow(w).add(s.Strong, "   No agents yet.").String(), "",
		newRow(w).add(s.Focus, "   n").add(s.Text, "  ").spans(where...).String()}
	if m.o.Demo != nil {
		out = append(out, newRow(w).add(s.Focus, "   D").add(s.Text, "  watch the demo").
			add(s.Faint, "   three scripted agents, nothing to set up").String())
	}
	if diff.Width(place) > 0 && h < len(out) {
		out = out[2:]
	}
	return fitLines(out, h)
}
