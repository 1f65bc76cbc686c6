package diff

import (
	"sort"
	"strings"
)

// compactBelow is the width under which line numbers give way to text.
const compactBelow = 50

// layout is a document at one width: which row each line begins at.
type layout struct {
	doc    *document
	width  int
	starts []int32 // one for each line, and the total at the end
	// breaks holds where the rows of a line begin, for lines that need more
	// than one row and cannot be cut by counting bytes.
	breaks map[int][]int32
}

func newLayout(d *document, width int) *layout {
	l := &layout{doc: d, width: width, starts: make([]int32, len(d.lines)+1), breaks: map[int][]int32{}}
	row := int32(0)
	for i := range d.lines {
		l.starts[i] = row
		row += l.measure(i)
	}
	l.starts[len(d.lines)] = row
	return l
}

// measure gives the rows of line i.
func (l *layout) measure(i int) int32 {
	text, room := &l.doc.lines[i], l.room(l.doc.lines[i].kind)
	if int(text.cells) <= room {
		return 1
	}
	if text.flat {
		return int32((int(text.cells) + room - 1) / room)
	}
	breaks := wrap(text.text, room)
	if len(breaks) > 1 {
		l.breaks[i] = breaks
	}
	return int32(len(breaks))
}

// wrap says at which bytes the rows of text begin when each may take width
// cells. A unit wider than a row is alone in it.
func wrap(text string, width int) []int32 {
	breaks := []int32{0}
	for at, col := 0, 0; at < len(text); {
		u, n := next(text[at:], col)
		if col+u.width > width && col > 0 {
			breaks = append(breaks, int32(at))
			col = 0
			continue // a tab is shorter or longer there
		}
		at += n
		col += u.width
	}
	return breaks
}

// gutter is how many cells stand before the text of a line.
func (l *layout) gutter(k kind) int {
	switch k {
	case kindContext, kindAdded, kindRemoved:
		if l.width < compactBelow {
			return 1
		}
		return l.doc.digits + 3
	case kindMessage, kindNote:
		return 4
	case kindCommit, kindSection, kindFile, kindOmitted, kindRaw, kindBy:
		return 2
	case kindGap:
	}
	return 0
}

func (l *layout) room(k kind) int { return max(1, l.width-l.gutter(k)) }

func (l *layout) total() int { return int(l.starts[len(l.starts)-1]) }

// find says which line a row shows, and which row of it.
func (l *layout) find(row int) (line, sub int) {
	i := sort.Search(len(l.doc.lines), func(i int) bool { return int(l.starts[i+1]) > row })
	if i == len(l.doc.lines) {
		return i, 0
	}
	return i, row - int(l.starts[i])
}

// piece is a stretch of text in one manner.
type piece struct {
	text  string
	named bool
}

// row gives the text of row sub of line i, safe to show, and its width.
func (l *layout) row(i, sub int) ([]piece, int) {
	text, room := l.doc.lines[i], l.room(l.doc.lines[i].kind)
	if text.flat {
		from := min(sub*room, len(text.text))
		s := text.text[from:min(from+room, len(text.text))]
		return []piece{{s, false}}, len(s)
	}
	s := text.text
	if breaks := l.breaks[i]; breaks != nil {
		end := int32(len(s))
		if sub+1 < len(breaks) {
			end = breaks[sub+1]
		}
		s = s[breaks[sub]:end]
	}
	var out []piece
	var run strings.Builder
	named, width := false, 0
	for s != "" {
		u, n := next(s, width)
		s = s[n:]
		if width+u.width > room { // one unit wider than the screen
			u.text, _ = Cut(u.text, room-width)
			u.width = Width(u.text)
		}
		if u.named != named && run.Len() > 0 {
			out = append(out, piece{run.String(), named})
			run.Reset()
		}
		named = u.named
		run.WriteString(u.text)
		width += u.width
	}
	return append(out, piece{run.String(), named}), width
}
