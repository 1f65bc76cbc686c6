package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"fletch/tui/diff"
)

// field is text with a cursor, edited as readline does. Its text has no
// control characters but, in a field of several lines, the newline.
type field struct {
	text  string
	at    int // byte that the cursor stands before
	lines bool
	limit int // bytes
	cut   string
}

func newField(text string, lines bool, limit int) field {
	f := field{lines: lines, limit: limit}
	f = f.insert(text)
	return f
}

// insert types text at the cursor, as far as there is room.
func (f field) insert(text string) field {
	var clean strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		if r == '\t' || r == '\n' && !f.lines {
			r = ' '
		}
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' {
			continue
		}
		if len(f.text)+clean.Len()+utf8.RuneLen(r) > f.limit {
			break
		}
		clean.WriteRune(r)
	}
	f.text = f.text[:f.at] + clean.String() + f.text[f.at:]
	f.at += clean.Len()
	return f
}

// edit does what a key does in text; false when it is not such a key.
func (f field) edit(key string) (field, bool) {
	from, to := f.at, f.at // what is taken out
	switch key {
	case "left", "ctrl+b":
		f.at = f.before()
	case "right", "ctrl+f":
		f.at = f.behind()
	case "home", "ctrl+a":
		f.at = f.lineStart()
	case "end", "ctrl+e":
		f.at = f.lineEnd()
	case "alt+b", "ctrl+left":
		f.at = f.wordBefore()
	case "alt+f", "ctrl+right":
		f.at = f.wordBehind()
	case "backspace", "ctrl+h":
		from = f.before()
	case "delete", "ctrl+d":
		to = f.behind()
	case "ctrl+u":
		from = f.lineStart()
	case "ctrl+k":
		to = f.lineEnd()
	case "ctrl+w", "alt+backspace":
		from = f.wordBefore()
	case "alt+d":
		to = f.wordBehind()
	case "ctrl+y":
		return f.insert(f.cut), true
	default:
		return f, false
	}
	if from != to {
		if to-from > utf8.UTFMax {
			f.cut = f.text[from:to]
		}
		f.text, f.at = f.text[:from]+f.text[to:], from
	}
	return f, true
}

func (f field) lineStart() int { return strings.LastIndexByte(f.text[:f.at], '\n') + 1 }

func (f field) lineEnd() int {
	if i := strings.IndexByte(f.text[f.at:], '\n'); i >= 0 {
		return f.at + i
	}
	return len(f.text)
}

// before is where the grapheme before the cursor begins.
func (f field) before() int {
	at := 0
	for g := displaywidth.StringGraphemes(f.text[:f.at]); g.Next() && at+len(g.Value()) < f.at; {
		at += len(g.Value())
	}
	return at
}

// behind is where the grapheme behind the cursor ends.
func (f field) behind() int {
	if g := displaywidth.StringGraphemes(f.text[f.at:]); g.Next() {
		return f.at + len(g.Value())
	}
	return len(f.text)
}

func (f field) wordBefore() int {
	word := strings.TrimRight(f.text[:f.at], " \n")
	return strings.LastIndexAny(word, " \n") + 1
}

func (f field) wordBehind() int {
	rest := f.text[f.at:]
	skipped := len(rest) - len(strings.TrimLeft(rest, " \n"))
	if i := strings.IndexAny(rest[skipped:], " \n"); i >= 0 {
		return f.at + skipped + i
	}
	return len(f.text)
}

// view is the text in rows of at most w cells, at most h of them, and where
// among them the cursor is.
func (f field) view(w, h int) (rows []string, x, y int) {
	w = max(w, 2)
	start := 0
	for i, line := range strings.Split(f.text, "\n") {
		if i > 0 {
			start++
		}
		end := start + len(line)
		for {
			head, rest := diff.Cut(diff.Visible(line), w-1)
			if f.at >= start && f.at <= start+len(head) && (f.at < start+len(head) || rest == "" || f.at == start) {
				x, y = diff.Width(diff.Visible(f.text[start:f.at])), len(rows)
			}
			rows = append(rows, head)
			start += len(head)
			if rest == "" || head == "" {
				break
			}
			line = rest
		}
		start = end
	}
	if len(rows) > h {
		top := max(0, min(y-h+1, len(rows)-h))
		rows, y = rows[top:top+h], y-top
	}
	return rows, x, y
}
