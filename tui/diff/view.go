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

// ink is a style as the bytes before and behind a text. A frame has hundreds
// of stretches of text, all of one line and free of controls: rendering each
// through lipgloss would take most of the frame's time.
type ink struct{ before, behind string }

func newInk(style lipgloss.Style) ink {
	before, behind, _ := strings.Cut(style.Render("x"), "x")
	return ink{before, behind}
}

func (i ink) paint(text string) string {
	if text == "" {
		return ""
	}
	return i.before + text + i.behind
}

// brush is the inks that a frame of a viewer needs. The named ones are for
// characters that are written out.
type brush struct {
	text, strong, faint, line, ask, info, file ink
	add, del                                   ink
	named, addNamed, delNamed                  ink
}

func newBrush(s themes.Styles) brush {
	loud := func(row lipgloss.Style) ink {
		return newInk(row.Foreground(s.Ask.GetForeground()).Bold(true))
	}
	return brush{
		text: newInk(s.Text), strong: newInk(s.Strong), faint: newInk(s.Faint), line: newInk(s.Line),
		ask: newInk(s.Ask), info: newInk(s.Info), file: newInk(s.Info.Bold(true)), add: newInk(s.Add), del: newInk(s.Del),
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
		return b.faint.paint(pick("", more+" ")) + paint(b.strong, b.named, text)
	case kindMessage:
		return b.line.paint(pick("  ", more+" ")+themes.Vertical+" ") + paint(b.text, b.named, text)
	case kindOmitted:
		return b.ask.paint(pick(themes.MarkWarning, more)+" ") + paint(b.ask, b.named, text)
	case kindFile:
		return b.info.paint(pick(themes.MarkOpen, more)+" ") + paint(b.file, b.named, text)
	case kindNote:
		return b.faint.paint(pick("    ", "  "+more+" ")) + paint(b.faint, b.named, text)
	case kindBy, kindRaw:
		return b.faint.paint(pick("  ", more+" ")) + paint(b.faint, b.named, text)
	case kindGap:
		return b.line.paint(strings.Repeat("·", min(8, l.width)))
	}
	return ""
}

// code is the gutter of a line of a file: its number, and the sign that a
// diff is read by.
func (l *layout) code(b brush, row ink, ln *line, sub int, sign string) string {
	num := strconv.Itoa(int(ln.num))
	if l.width < compactBelow {
		if sub > 0 {
			sign = more
		}
		return row.paint(sign)
	}
	if sub > 0 {
		sign, num = " ", more
	}
	return b.faint.paint(strings.Repeat(" ", max(0, l.doc.digits-Width(num)))+num) + " " + row.paint(" "+sign)
}

func (l *layout) pad(row ink, k kind, width int) string {
	return row.paint(strings.Repeat(" ", max(0, l.room(k)-width)))
}

func paint(row, named ink, text []piece) string {
	if len(text) == 1 && !text[0].named {
		return row.paint(text[0].text)
	}
	var out strings.Builder
	for _, p := range text {
		if p.named {
			out.WriteString(named.paint(p.text))
		} else {
			out.WriteString(row.paint(p.text))
		}
	}
	return out.String()
}
