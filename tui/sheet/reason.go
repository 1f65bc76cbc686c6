package sheet

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"fletch/state"
	"fletch/tui/diff"
)

// reasonBytes bounds the reason of a denial.
const reasonBytes = 500

// field is one line of text with a cursor, edited as readline does.
type field struct {
	text string
	at   int // byte that the cursor stands before
}

// write takes a key while the reason line has the cursor. Here ctrl+y is
// nothing, and neither paste nor a held key sends.
func (s Sheet) write(k Key, now time.Time) (Sheet, Action) {
	if k.Paste {
		s.reason = s.reason.insert(k.Text)
		return s, None{}
	}
	switch k.Name {
	case "enter":
		if k.Repeat || now.Sub(s.since) < queued {
			return s, None{}
		}
		s.typing, s.answered = false, denied
		return s.startOver(now), Decide{state.Verdict{Request: s.request.ID, Reason: strings.TrimSpace(s.reason.text)}}
	case "esc":
		return s.back(now), None{}
	}
	if edited, ok := s.reason.edit(k.Name); ok {
		s.reason = edited
		return s, None{}
	}
	switch {
	case len(k.Name) == len("alt+x") && strings.HasPrefix(k.Name, "alt+"):
		return s.back(now), None{} // esc and a key behind it, as a slow terminal tells them
	case strings.HasPrefix(k.Name, "ctrl+"), strings.HasPrefix(k.Name, "alt+"), strings.HasPrefix(k.Name, "super+"), strings.HasPrefix(k.Name, "meta+"):
	default:
		s.reason = s.reason.insert(k.Text)
	}
	return s, None{}
}

// back closes the reason line and keeps what is in it.
func (s Sheet) back(now time.Time) Sheet {
	s.typing = false
	return s.startOver(now)
}

// insert types text at the cursor, as one line and as far as there is room.
func (f field) insert(text string) field {
	var clean strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' {
			r = ' '
		}
		if unicode.IsControl(r) || r == utf8.RuneError {
			continue
		}
		if len(f.text)+clean.Len()+utf8.RuneLen(r) > reasonBytes {
			break
		}
		clean.WriteRune(r)
	}
	f.text = f.text[:f.at] + clean.String() + f.text[f.at:]
	f.at += clean.Len()
	return f
}

// edit does what a key does in a line of text; false when it is not such a key.
func (f field) edit(key string) (field, bool) {
	from, to := f.at, f.at // what is taken out
	switch key {
	case "left", "ctrl+b":
		f.at = f.before()
	case "right", "ctrl+f":
		f.at = f.behind()
	case "home", "ctrl+a":
		f.at = 0
	case "end", "ctrl+e":
		f.at = len(f.text)
	case "alt+b", "ctrl+left":
		f.at = f.wordBefore()
	case "alt+f", "ctrl+right":
		f.at = f.wordBehind()
	case "backspace", "ctrl+h":
		from = f.before()
	case "delete", "ctrl+d":
		to = f.behind()
	case "ctrl+u":
		from = 0
	case "ctrl+k":
		to = len(f.text)
	case "ctrl+w", "alt+backspace":
		from = f.wordBefore()
	case "alt+d":
		to = f.wordBehind()
	default:
		return f, false
	}
	if from != to {
		f.text, f.at = f.text[:from]+f.text[to:], from
	}
	return f, true
}

// before is where the grapheme before the cursor begins.
func (f field) before() int {
	at := 0
	for g := displaywidth.StringGraphemes(f.text[:f.at]); g.Next(); {
		if at+len(g.Value()) >= f.at {
			break
		}
		at += len(g.Value())
	}
	return at
}

// behind is where the grapheme behind the cursor ends.
func (f field) behind() int { return f.at + graphemeEnd(f.text[f.at:]) }

// graphemeEnd is where the first grapheme of s ends.
func graphemeEnd(s string) int {
	if g := displaywidth.StringGraphemes(s); g.Next() {
		return len(g.Value())
	}
	return len(s)
}

func (f field) wordBefore() int {
	word := strings.TrimRight(f.text[:f.at], " ")
	return strings.LastIndexByte(word, ' ') + 1
}

func (f field) wordBehind() int {
	rest := f.text[f.at:]
	skipped := len(rest) - len(strings.TrimLeft(rest, " "))
	if end := strings.IndexByte(rest[skipped:], ' '); end >= 0 {
		return f.at + skipped + end
	}
	return len(f.text)
}

// rows draws the field in h rows of w cells with its cursor in sight.
func (f field) rows(w, h int) []row {
	all := []row{nil}
	col, at := 0, 0
	cell := func(s string, t tone) {
		n := diff.Width(s)
		if col+n > w && col > 0 {
			all, col = append(all, nil), 0
		}
		if t == cursor {
			at = len(all) - 1
		}
		all[len(all)-1] = append(all[len(all)-1], span{s, t})
		col += n
	}
	from := 0
	if h == 1 { // one row scrolls sideways
		for from < f.at && diff.Width(diff.Visible(f.text[from:f.at])) >= w {
			from += graphemeEnd(f.text[from:])
		}
	}
	for pos := from; pos < len(f.text); {
		end := pos + graphemeEnd(f.text[pos:])
		t := text
		if pos == f.at {
			t = cursor
		}
		cell(diff.Visible(f.text[pos:end]), t)
		pos = end
	}
	if f.at == len(f.text) {
		cell(" ", cursor)
	}
	out := make([]row, h)
	copy(out, all[max(0, min(at-h+1, len(all)-h)):])
	return out
}
