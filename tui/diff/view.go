package diff

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"fletch/themes"
)

// more stands before a row that continues the one above: no row can pass for
// the beginning of a line.
const more = "»"

// brush is the inks that a frame of a viewer needs. The named ones are for
// characters that are written out.
type brush struct {
	text, strong, faint, line, ask, info, file Ink
	add, del                                   Ink
	named, addNamed, delNamed                  Ink
}

func newBrush(s themes.Styles) brush {
	loud := func(row lipgloss.Style) Ink {
		return NewInk(row.Foreground(s.Ask.GetForeground()).Bold(true))
	}
	return brush{
		text: NewInk(s.Text), strong: NewInk(s.Strong), faint: NewInk(s.Faint), line: NewInk(s.Line),
		ask: NewInk(s.Ask), info: NewInk(s.Info), file: NewInk(s.Info.Bold(true)), add: NewInk(s.Add), del: NewInk(s.Del),
		named: loud(s.Text), addNamed: loud(s.Add), delNamed: loud(s.Del),
	}
}

// View draws exactly h lines of at most w cells.
func (v Viewer) View(s themes.Styles, m themes.Marks, w, h int) []string {
	out := make([]string, max(h, 0))
	if v.doc == nil || w < 1 {
		return out
	}
	l, b := v.layout(w), newBrush(s)
	row := v.row(l)
	line, sub := l.find(row)
	for i := range out {
		if line >= len(v.doc.lines) {
			break
		}
		out[i] = m.Text(fit(l.draw(b, line, sub), w))
		if sub++; int(l.starts[line])+sub >= int(l.starts[line+1]) {
			line, sub = line+1, 0
		}
	}
	return out
}

// fit is a last resort for a screen of a few cells, where a gutter alone is
// wider than the line.
func fit(s string, w int) string {
	if w >= 16 {
		return s
	}
	return lipgloss.NewStyle().MaxWidth(w).Render(s)
}

// draw is one row: a gutter that is fletch's, then text that is safe.
func (l *layout) draw(b brush, i, sub int) string {
	ln := &l.doc.lines[i]
	text, width := l.row(i, sub)
	pick := func(first, later string) string {
		if sub > 0 {
			return later
		}
		return first
	}
	switch ln.kind {
	case kindContext:
		return l.code(b, b.text, ln, sub, " ") + paint(b.text, b.named, text)
	case kindAdded:
		return l.code(b, b.add, ln, sub, "+") + paint(b.add, b.addNamed, text) + l.pad(b.add, ln.kind, width)
	case kindRemoved:
		return l.code(b, b.del, ln, sub, "-") + paint(b.del, b.delNamed, text) + l.pad(b.del, ln.kind, width)
	case kindCommit, kindSection:
		return b.faint.Paint(pick("", more+" ")) + paint(b.strong, b.named, text)
	case kindMessage:
		return b.line.Paint(pick("  ", more+" ")+themes.Vertical+" ") + paint(b.text, b.named, text)
	case kindOmitted:
		return b.ask.Paint(pick(themes.MarkWarning, more)+" ") + paint(b.ask, b.named, text)
	case kindFile:
		return b.info.Paint(pick(themes.MarkOpen, more)+" ") + paint(b.file, b.named, text)
	case kindNote:
		return b.faint.Paint(pick("    ", "  "+more+" ")) + paint(b.faint, b.named, text)
	case kindBy, kindRaw:
		return b.faint.Paint(pick("  ", more+" ")) + paint(b.faint, b.named, text)
	case kindGap:
		return b.line.Paint(strings.Repeat("·", min(8, l.width)))
	}
	return ""
}

// code is the gutter of a line of a file: its number, and the sign that a
// diff is read by.
func (l *layout) code(b brush, row Ink, ln *line, sub int, sign string) string {
	num := strconv.Itoa(int(ln.num))
	if l.width < compactBelow {
		if sub > 0 {
			sign = more
		}
		return row.Paint(sign)
	}
	if sub > 0 {
		sign, num = " ", more
	}
	return b.faint.Paint(strings.Repeat(" ", max(0, l.doc.digits-Width(num)))+num) + " " + row.Paint(" "+sign)
}

func (l *layout) pad(row Ink, k kind, width int) string {
	return row.Paint(strings.Repeat(" ", max(0, l.room(k)-width)))
}

func paint(row, named Ink, text []piece) string {
	if len(text) == 1 && !text[0].named {
		return row.Paint(text[0].text)
	}
	var out strings.Builder
	for _, p := range text {
		if p.named {
			out.WriteString(named.Paint(p.text))
		} else {
			out.WriteString(row.Paint(p.text))
		}
	}
	return out.String()
}
