package tui

import (
	"strings"

	"fletch/state"
	"fletch/themes"
)

// hintLine is the last line: what the keys do where the keyboard is, or the
// toast in its place.
func (m Model) hintLine() string {
	s, w := m.look.styles, m.w
	if m.typing.on {
		return m.typingHints(w)
	}
	if m.toast.text != "" {
		return m.toast.view(s, w)
	}
	if len(m.dialogs) > 0 {
		return "" // its own last line says what its keys do
	}
	if m.request != nil {
		return newRow(w).add(s.Text, " ").spans(bindingHints(s, m.keys, inRequest, w, "wide", "copy")...).
			spans(span{s.Text, "   "}, span{s.Focus, "?"}, span{s.Faint, " help"}).String()
	}
	return newRow(w).add(s.Text, " ").spans(bindingHints(s, m.keys, m.scope(), w, m.hinted()...)...).String()
}

// hinted are the actions that the hint line names, the most useful first.
func (m Model) hinted() []action {
	a, some := m.selected()
	var out []action
	add := func(when bool, acts ...action) {
		if when {
			out = append(out, acts...)
		}
	}
	needed := false
	for _, b := range m.fleet.Agents {
		needed = needed || m.fleet.NeedsPerson(b)
	}
	in := m.scope()
	add(in == inList && len(m.fleet.Pending()) > 0, "review")
	add(some && a.Status.Live() && (in == inList || in == inScreen), "type")
	add(some && !a.Status.Live() && (in == inList || in == inScreen), "continue")
	add(in == inList && needed, "next")
	add(in == inList, "new")
	add(in == inList && some && a.Status.Live(), "stop")
	add(in == inList && some, "tab-changes")
	add(in == inList && !some && m.o.Demo != nil, "doctor")
	add(in == inScreen, "scroll-up", "last")
	add(in == inChanges, "file", "hunk", "again")
	add(true, "help")
	add(!m.right && !m.whole, "leave")
	add(m.right || m.whole, "close")
	return out
}

// width classes of the hint texts.
func hintClass(w int) int {
	switch {
	case w >= 100:
		return 0
	case w >= 72:
		return 1
	}
	return 2
}

// bindingHints are keys with their words, as many as fit; the last ones go
// first.
func bindingHints(s themes.Styles, keys keyMap, in scope, w int, acts ...action) []span {
	var out []span
	used := 3 // the edge
	for _, act := range acts {
		key, word := keys.hint(in, act, hintClass(w))
		if key == "" {
			continue
		}
		item := []span{{s.Focus, key}, {s.Faint, " " + word}}
		if len(out) > 0 {
			item = append([]span{{s.Text, "   "}}, item...)
		}
		if n := spansWidth(item); used+n > w {
			if act == "help" && used+4 <= w {
				out = append(out, span{s.Text, "   "}, span{s.Focus, "?"})
			}
			continue
		}
		used += spansWidth(item)
		out = append(out, item...)
	}
	return out
}

// hint is a key and its word in a width class; an empty key: no hint there.
func (k keyMap) hint(in scope, act action, class int) (key, word string) {
	b, ok := k.of(in, act)
	for _, next := range []scope{inAny, inList} {
		if !ok {
			b, ok = k.of(next, act)
		}
	}
	if !ok {
		return "", ""
	}
	if b.hint[class] == "" {
		return "", ""
	}
	switch act {
	case "doctor":
		return b.keys[0], "demo"
	case "choose", "file", "hunk":
		pair := []string{shown(b.keys[0]), shown(b.keys[len(b.keys)-1])}
		if act == "hunk" {
			pair[1] = "l"
		}
		return strings.Join(pair, " "), b.hint[class]
	}
	return shown(b.keys[0]), b.hint[class]
}

// typingHints says that every key goes to the agent, how to come back, and
// what waits meanwhile.
func (m Model) typingHints(w int) string {
	s := m.look.styles
	a, _ := m.fleet.Agent(m.typing.agent)
	r := newRow(w).add(s.Good.Bold(true), " every key goes to "+a.Name)
	if w >= 72 {
		r.spans(span{s.Text, "    "}, span{s.Focus, "ctrl+]"}, span{s.Faint, " or "}, span{s.Focus, `ctrl+\`}, span{s.Faint, " back to fletch"})
	}
	waits := m.waiting(a)
	if n := spansWidth(waits); n > 0 && r.width+n+2 <= w {
		r.to(s.Text, w-n-1).spans(waits...)
	}
	return r.String()
}

// waiting is who needs the person while an agent has the keyboard.
func (m Model) waiting(typed state.Agent) []span {
	s := m.look.styles
	if pending := m.fleet.Pending(); len(pending) > 0 {
		a, _ := m.fleet.Agent(pending[0].Agent)
		return []span{{s.Ask, themes.MarkRequest + " " + a.Name + " " + asksFor(pending[0])}, {s.Faint, " · "}, {s.Focus, "ctrl+] r"}}
	}
	for _, a := range m.fleet.Agents {
		if a.Status == state.Waiting && a.ID != typed.ID {
			return []span{{s.Ask, themes.MarkAsks + " " + a.Name + " asks you"}, {s.Faint, " · "}, {s.Focus, "ctrl+] w"}}
		}
	}
	return nil
}
