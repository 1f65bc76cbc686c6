package tui

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"fletch/agents/term"
	"fletch/tui/diff"
)

// drawCells writes the first width cells of a terminal row as text with
// colours. The bytes are all made here: from a cell come its characters, if
// they are printable and as wide as the cell says, and nothing else.
func drawCells(cells []term.Cell, width int) string {
	var out strings.Builder
	out.Grow(width + 16)
	var pen term.Style
	used := 0
	for _, c := range cells {
		if c.Width == 0 {
			continue // the second half of a wide one
		}
		w := int(c.Width)
		if used+w > width {
			break
		}
		if c.Style != pen {
			writePen(&out, c.Style)
			pen = c.Style
		}
		out.WriteString(cellText(c))
		used += w
	}
	if pen != (term.Style{}) {
		out.WriteString("\x1b[m")
	}
	return out.String()
}

// cellText is what stands in a cell: exactly as wide as the cell, whichever
// way the terminal counts.
func cellText(c term.Cell) string {
	w := int(c.Width)
	if c.Text == "" || c.Style.Attrs&term.Conceal != 0 {
		return "  "[:min(w, 2)]
	}
	if w == 1 && len(c.Text) == 1 && c.Text[0] >= ' ' && c.Text[0] < 0x7f {
		return c.Text
	}
	if exact(c.Text, w) {
		return c.Text
	}
	// A cluster that terminals do not agree about: its first character may do.
	if r, _ := utf8.DecodeRuneInString(c.Text); exact(string(r), w) {
		return string(r)
	}
	return "??"[:min(w, 2)]
}

// exact reports whether text is safe to send and w cells wide, counted by
// graphemes and counted by characters.
func exact(text string, w int) bool {
	return diff.Visible(text) == text && ansi.StringWidth(text) == w && ansi.StringWidthWc(text) == w
}

// attributes in the order of their bits, with their SGR numbers.
const attributes = "\x01\x02\x03\x04\x05\x07\x08\x09"

// writePen sets a style from nothing.
func writePen(out *strings.Builder, s term.Style) {
	out.WriteString("\x1b[")
	for bit, n := range []byte(attributes) {
		if s.Attrs&(1<<bit) != 0 {
			out.WriteByte(';')
			out.WriteString(strconv.Itoa(int(n)))
		}
	}
	writeColor(out, s.Fg, 30, 90, "38")
	writeColor(out, s.Bg, 40, 100, "48")
	out.WriteByte('m')
}

// writeColor adds a colour's parameters; base and bright are where the eight
// named and the eight bright ones begin.
func writeColor(out *strings.Builder, c term.Color, base, bright int, extended string) {
	if i, ok := c.Index(); ok {
		switch {
		case i < 8:
			out.WriteByte(';')
			out.WriteString(strconv.Itoa(base + int(i)))
		case i < 16:
			out.WriteByte(';')
			out.WriteString(strconv.Itoa(bright + int(i) - 8))
		default:
			out.WriteString(";" + extended + ";5;" + strconv.Itoa(int(i)))
		}
		return
	}
	if r, g, b, ok := c.Channels(); ok {
		out.WriteString(";" + extended + ";2;" + strconv.Itoa(int(r)) + ";" + strconv.Itoa(int(g)) + ";" + strconv.Itoa(int(b)))
	}
}
