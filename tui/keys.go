package tui

import (
	"fmt"
	"slices"
	"strings"
)

// scope is what has the keyboard when a key means something.
type scope string

// The scopes, in the order the documentation gives them.
const (
	inAny     scope = "everywhere but in a text field"
	inFirst   scope = "first screen"
	inList    scope = "list"
	inScreen  scope = "screen"
	inChanges scope = "changes"
	inText    scope = "activity and sandbox"
	inTyping  scope = "typing to an agent"
	inRequest scope = "request"
	inForm    scope = "new agent"
	inConfirm scope = "confirm"
	inDialog  scope = "help and doctor"
)

// action is what a key does, as the configuration names it.
type action string

// binding is one line of the key table: everything that fletch knows about a
// key comes from here.
type binding struct {
	action action
	in     scope
	keys   []string
	help   string // what it does, for help and documentation
	// hint holds the words of the hint line: for 100 columns and more, for
	// 80, and for less. Empty ones are not shown at that width.
	hint [3]string
}

func same(hint string) [3]string { return [3]string{hint, hint, hint} }

// helpRow is a line of the help screen of the list: actions that belong
// together, and what they do in a few words.
type helpRow struct {
	acts []action
	text string
}

// helpGroup is a heading of the help screen and what stands below it.
type helpGroup struct {
	name string
	rows []helpRow
}

func acts(all ...action) []action { return all }

// listHelp is the help screen of the list, in reading order. The keys come
// from the table.
func listHelp() []helpGroup {
	return []helpGroup{
		{"who needs me", []helpRow{
			{acts("next", "previous"), "next who needs you"},
			{acts("review"), "oldest request"},
			{acts("type"), "type to it"},
			{acts("back"), "take the keyboard back"},
		}},
		{"look", []helpRow{
			{acts("down", "up"), "move"},
			{acts("first", "last", "page-down", "page-up"), "first, last, half a page"},
			{acts("tab-screen", "tab-changes", "tab-activity", "tab-sandbox"), "screen, changes, …"},
			{acts("scroll-down", "scroll-up"), "scroll the right side"},
			{acts("right"), "left, right"},
			{acts("whole"), "show it whole"},
		}},
		{"do", []helpRow{
			{acts("new", "new-like"), "new, new like this"},
			{acts("continue"), "continue a stopped one"},
			{acts("stop"), "stop …"},
			{acts("remove"), "remove …"},
			{acts("undo"), "bring back the removed"},
			{acts("doctor"), "doctor"},
		}},
		{"fletch", []helpRow{
			{acts("help"), "help"},
			{acts("mouse"), "mouse on, off"},
			{acts("redraw"), "draw again"},
			{acts("suspend"), "suspend"},
			{acts("leave"), "leave; agents go on"},
		}},
	}
}

// keyTable is the default key table.
func keyTable() []binding {
	return []binding{
		{"review", inList, keys("r"), "oldest request", [3]string{"review push", "review push", "review"}},
		{"type", inList, keys("enter", "i"), "type to it; continue a stopped one", [3]string{"type", "type", "open"}},
		{"next", inList, keys("w"), "next who needs you", [3]string{"next who needs you", "next", "next"}},
		{"previous", inList, keys("W"), "previous who needs you", [3]string{}},

		{"down", inList, keys("j", "down"), "down", [3]string{}},
		{"up", inList, keys("k", "up"), "up", [3]string{}},
		{"first", inList, keys("g", "home"), "first", [3]string{}},
		{"last", inList, keys("G", "end"), "last", [3]string{}},
		{"page-down", inList, keys("ctrl+d"), "half a page down", [3]string{}},
		{"page-up", inList, keys("ctrl+u"), "half a page up", [3]string{}},
		{"tab-screen", inList, keys("1"), "screen", [3]string{}},
		{"tab-changes", inList, keys("2"), "changes", [3]string{"", "changes", ""}},
		{"tab-activity", inList, keys("3"), "activity", [3]string{}},
		{"tab-sandbox", inList, keys("4"), "sandbox", [3]string{}},
		{"right", inList, keys("tab", "l", "right"), "to the right side", [3]string{}},
		{"right", inList, keys("shift+tab", "h", "left"), "to the right side", [3]string{}},
		{"scroll-down", inList, keys("J", "pgdown"), "scroll the right side down", [3]string{}},
		{"scroll-up", inList, keys("K", "pgup"), "scroll the right side up", [3]string{}},
		{"whole", inList, keys("z"), "show it whole", [3]string{}},

		{"new", inList, keys("n"), "new agent", same("new")},
		{"new-like", inList, keys("N"), "new agent like this", [3]string{}},
		{"stop", inList, keys("x"), "stop …", [3]string{"stop", "", ""}},
		{"remove", inList, keys("X"), "remove …", [3]string{}},
		{"continue", inList, keys("c"), "continue a stopped one", same("continue")},
		{"undo", inList, keys("u"), "bring back the removed", [3]string{}},
		{"doctor", inList, keys("D"), "doctor (empty list: demo)", same("demo")},

		{"demo", inFirst, keys("enter"), "watch the demo", same("demo")},
		{"new", inFirst, keys("n"), "new agent", same("new")},
		{"doctor", inFirst, keys("D"), "everything fletch checked, and the fixes", same("doctor")},
		{"check", inFirst, keys("R"), "check again", [3]string{}},

		{"type", inScreen, keys("enter", "i"), "type to it", same("type")},
		{"down", inScreen, keys("j", "down"), "scroll down", [3]string{}},
		{"up", inScreen, keys("k", "up"), "scroll up", [3]string{}},
		{"scroll-down", inScreen, keys("pgdown", "space", "J"), "page down", [3]string{}},
		{"scroll-up", inScreen, keys("pgup", "b", "K"), "page up", [3]string{"scroll", "scroll", ""}},
		{"page-down", inScreen, keys("ctrl+d"), "half a page down", [3]string{}},
		{"page-up", inScreen, keys("ctrl+u"), "half a page up", [3]string{}},
		{"first", inScreen, keys("g", "home"), "oldest line", [3]string{}},
		{"last", inScreen, keys("G", "end"), "live end", [3]string{"live end", "live end", ""}},
		{"left", inScreen, keys("tab", "shift+tab", "h", "left"), "back to the list", [3]string{}},

		{"move", inChanges, keys("j", "down", "k", "up", "space", "pgdown", "b", "pgup", "ctrl+d", "ctrl+u", "g", "home", "G", "end"), "move", [3]string{}},
		{"file", inChanges, keys("J", "K"), "next, previous file", same("file")},
		{"hunk", inChanges, keys("h", "left", "l", "right"), "next, previous hunk", [3]string{"hunk", "hunk", ""}},
		{"left", inChanges, keys("tab", "shift+tab"), "back to the list", [3]string{}},
		{"again", inChanges, keys("R"), "read it again", [3]string{"read again", "", ""}},

		{"down", inText, keys("j", "down"), "scroll down", [3]string{}},
		{"up", inText, keys("k", "up"), "scroll up", [3]string{}},
		{"scroll-down", inText, keys("pgdown", "space", "J", "ctrl+d"), "page down", [3]string{}},
		{"scroll-up", inText, keys("pgup", "b", "K", "ctrl+u"), "page up", [3]string{}},
		{"first", inText, keys("g", "home"), "first", [3]string{}},
		{"last", inText, keys("G", "end"), "last", [3]string{}},
		{"left", inText, keys("tab", "shift+tab", "h", "left"), "back to the list", [3]string{}},

		{"back", inTyping, keys("ctrl+]", `ctrl+\`), "take the keyboard back; twice within 0.3 s sends it to the agent", [3]string{"back to fletch", "back to fletch", "back"}},
		{"look-up", inTyping, keys("shift+pgup"), "scroll up", [3]string{}},
		{"look-down", inTyping, keys("shift+pgdown"), "scroll down", [3]string{}},

		{"allow", inRequest, keys("ctrl+y"), "allow, after a moment without a key; a red fact asks twice", same("allow")},
		{"deny", inRequest, keys("x", "ctrl+n"), "deny: opens a line for the reason", same("deny")},
		{"later", inRequest, keys("esc", "q"), "later", same("later")},
		{"request", inRequest, keys("tab", "shift+tab"), "next, previous request", same("next")},
		{"move", inRequest, keys("j", "down", "k", "up", "space", "pgdown", "b", "pgup", "g", "home", "G", "end"), "move", [3]string{}},
		{"file", inRequest, keys("J", "K"), "next, previous file", same("file")},
		{"hunk", inRequest, keys("h", "left", "l", "right"), "next, previous hunk", [3]string{}},
		{"files", inRequest, keys("f"), "list of files", [3]string{}},
		{"wide", inRequest, keys("z"), "whole width", same("wide")},
		{"copy", inRequest, keys("y"), "copy the commit id", same("copy commit id")},
		{"pager", inRequest, keys("o"), "open in $PAGER", [3]string{}},

		{"start", inForm, keys("enter"), "start", same("start")},
		{"field", inForm, keys("tab", "shift+tab"), "next, previous field", same("next field")},
		{"choose", inForm, keys("left", "right"), "choose", same("choose")},
		{"newline", inForm, keys("ctrl+j"), "new line in the task", [3]string{}},
		{"cancel", inForm, keys("esc"), "close, kept as a draft", same("cancel (kept as draft)")},

		{"yes", inConfirm, keys("enter"), "do it", [3]string{}},
		{"no", inConfirm, keys("esc", "q"), "do not", [3]string{}},

		{"down", inDialog, keys("j", "down", "space", "pgdown"), "down", [3]string{}},
		{"up", inDialog, keys("k", "up", "b", "pgup"), "up", [3]string{}},

		{"help", inAny, keys("?"), "help", [3]string{"help", "help", "help"}},
		{"mouse", inAny, keys("M"), "mouse on, off", [3]string{}},
		{"redraw", inAny, keys("ctrl+l"), "draw again", [3]string{}},
		{"suspend", inAny, keys("ctrl+z"), "suspend", [3]string{}},
		{"interrupt", inAny, keys("ctrl+c"), "never leaves: says what does", [3]string{}},
		{"close", inAny, keys("esc"), "close the topmost thing", same("back")},
		{"leave", inAny, keys("q"), "close the topmost thing; with nothing open, leave: agents go on", same("leave")},
	}
}

func keys(all ...string) []string { return all }

// keyMap is a key table to look things up in.
type keyMap struct {
	table []binding
	byKey map[scope]map[string]action
}

// newKeyMap is the default table with changes (action → key) laid over it.
// Each change that cannot be is left out and named in problems; the others
// count. The chord that allows and the way out of typing stay.
func newKeyMap(changes map[string]string) (m keyMap, problems []string) {
	m.table = keyTable()
	names := make([]string, 0, len(changes))
	for name := range changes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if why := m.rebind(action(name), changes[name]); why != "" {
			problems = append(problems, fmt.Sprintf("keys.%s = %q: %s", name, changes[name], why))
		}
	}
	m.byKey = map[scope]map[string]action{}
	for _, b := range m.table {
		if m.byKey[b.in] == nil {
			m.byKey[b.in] = map[string]action{}
		}
		for _, k := range b.keys {
			m.byKey[b.in][k] = b.action
		}
	}
	return m, problems
}

// rebind gives an action of the list another key; it returns why not.
func (m *keyMap) rebind(name action, key string) string {
	at := slices.IndexFunc(m.table, func(b binding) bool { return b.action == name && b.in == inList })
	switch {
	case at < 0:
		return "there is no such action in the list"
	case key == "" || key == "enter" || key == "esc" || key == "ctrl+y" || strings.HasPrefix(key, "alt+"):
		return "this key cannot be given away"
	}
	for _, b := range m.table {
		if (b.in == inList || b.in == inAny) && b.action != name && slices.Contains(b.keys, key) {
			return "already " + string(b.action)
		}
	}
	m.table[at].keys = []string{key}
	return ""
}

// find says what a key does in a scope, or everywhere; empty: nothing.
func (m keyMap) find(in scope, key string) action {
	if a, ok := m.byKey[in][key]; ok {
		return a
	}
	return m.byKey[inAny][key]
}

// of is the binding of an action in a scope.
func (m keyMap) of(in scope, name action) (binding, bool) {
	for _, b := range m.table {
		if b.in == in && b.action == name {
			return b, true
		}
	}
	return binding{}, false
}
