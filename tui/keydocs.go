package tui

import (
	"fmt"
	"strings"
)

// document is the key table as a page of the documentation.
func (k keyMap) document() string {
	var out strings.Builder
	out.WriteString("# Keys\n\n" +
		"Made from the table in `tui/keys.go`; the help screen (`?`), the hint line and the tests read the same one.\n\n" +
		"A key counts with exactly its modifiers. `esc` is slow in tmux (its `escape-time`); `q` does the same wherever no\n" +
		"text is typed. Keys of the list can be changed in `config.toml`:\n\n" +
		"```toml\n[keys]\nstop = \"S\"\n```\n\n" +
		"A line that cannot be is left out, and the dashboard says so; the other lines count. `ctrl+y` cannot be moved.\n")
	for _, in := range []scope{inAny, inFirst, inList, inScreen, inChanges, inText, inTyping, inRequest, inForm, inConfirm, inDialog} {
		title := string(in)
		fmt.Fprintf(&out, "\n## %s%s\n\n", strings.ToUpper(title[:1]), title[1:])
		if note := scopeNote(in); note != "" {
			out.WriteString(note + "\n\n")
		}
		out.WriteString("| key | does | name |\n|---|---|---|\n")
		for _, b := range k.table {
			if b.in != in {
				continue
			}
			keys := make([]string, len(b.keys))
			for i, key := range b.keys {
				keys[i] = "`" + strings.ReplaceAll(key, "|", `\|`) + "`"
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", strings.Join(keys, " "), b.help, b.action)
		}
	}
	return out.String()
}

// scopeNote is what the documentation says about a scope beside its keys.
func scopeNote(in scope) string {
	switch in {
	case inTyping:
		return "Every other key goes to the agent. For 0.3 s after it got the keyboard `enter` is swallowed."
	case inRequest:
		return "`ctrl+y` counts only when every fact has been on the screen and the keyboard was quiet for 0.45 s, and it is\n" +
			"carried out 0.2 s later unless another key comes. In the reason line the keys are those of readline."
	case inForm:
		return "In a text field the keys are those of readline. The keys of the list do nothing here."
	case inConfirm:
		return "It opens disarmed for 0.3 s."
	case inScreen, inChanges, inText:
		return "The keys of the list that do something to an agent work here, too, unless they mean something else."
	case inAny, inFirst, inList, inDialog:
	}
	return ""
}
