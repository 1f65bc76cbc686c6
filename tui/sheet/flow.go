package sheet

import (
	"strings"

	"fletch/tui/diff"
)

// tone is the role in which a text is drawn.
type tone uint8

const (
	text tone = iota
	strong
	faint
	line
	focus
	focusStrong
	ask
	askStrong
	good
	bad
	badStrong
	info
	infoStrong
	chipBad
	cursor
	tones // how many there are
)

// span is a stretch of text in one tone, and row is a line of them. What a
// span holds is safe to show.
type span struct {
	text string
	tone tone
}

type row []span

func (r row) width() int {
	n := 0
	for _, s := range r {
		n += diff.Width(s.text)
	}
	return n
}

// flow sets groups of spans into rows. A group stays whole if a row can hold
// it; a longer one is cut at the edge and goes on below: nothing is dropped.
type flow struct {
	width  int
	indent int
	rows   []row
	col    int
	empty  bool // nothing but the indent stands in the last row
}

// newFlow begins rows of width cells. What follows stands behind the label.
func newFlow(width, indent int, label ...span) *flow {
	f := &flow{width: max(width, indent+1), indent: indent, empty: true}
	first := row(label)
	if n := indent - first.width(); n > 0 {
		first = append(first, span{strings.Repeat(" ", n), faint})
	}
	f.rows, f.col = []row{first}, first.width()
	return f
}

func (f *flow) newline() {
	var r row
	if f.indent > 0 {
		r = row{{strings.Repeat(" ", f.indent), faint}}
	}
	f.rows = append(f.rows, r)
	f.col, f.empty = f.indent, true
}

// put adds a group, gap cells behind what stands before it in its row.
func (f *flow) put(gap int, group ...span) {
	n := row(group).width()
	if n == 0 {
		return
	}
	switch {
	case f.empty:
	case f.col+gap+n <= f.width, n > f.width-f.indent && f.col+gap < f.width:
		f.add(span{strings.Repeat(" ", gap), faint})
	default:
		f.newline()
	}
	for _, s := range group {
		for s.text != "" {
			head, rest := diff.Cut(s.text, f.width-f.col)
			if head == "" && f.empty {
				head, rest = s.text, "" // a single cell too narrow for one sign
			}
			if head != "" {
				f.add(span{head, s.tone})
				f.empty = false
			}
			if s.text = rest; rest != "" {
				f.newline()
			}
		}
	}
}

func (f *flow) add(s span) {
	last := len(f.rows) - 1
	f.rows[last] = append(f.rows[last], s)
	f.col += diff.Width(s.text)
}

// words adds running text, broken between words.
func (f *flow) words(gap int, s string, t tone) {
	for _, w := range strings.Fields(s) {
		f.put(gap, span{w, t})
		gap = 1
	}
}
