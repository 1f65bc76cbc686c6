package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	"fletch/tui/diff"
)

// row builds one line of the screen. Whatever is added to it is made visible
// and cut at the row's width, so no text, however hostile, can push what
// stands beside it.
type row struct {
	out   strings.Builder
	width int // cells so far
	max   int
}

func newRow(max int) *row { return &row{max: max} }

// add appends text in a style, as much of it as fits.
func (r *row) add(style lipgloss.Style, text string) *row {
	text, _ = diff.Cut(diff.Visible(text), r.max-r.width)
	if text == "" {
		return r
	}
	r.out.WriteString(style.Render(text))
	r.width += diff.Width(text)
	return r
}

// fit appends text in at most width cells, shortened with an ellipsis.
func (r *row) fit(style lipgloss.Style, text string, width int) *row {
	return r.add(style, diff.Shorten(diff.Visible(text), max(0, min(width, r.max-r.width)), "…"))
}

// to pads with spaces up to column col.
func (r *row) to(style lipgloss.Style, col int) *row {
	return r.line(style, " ", col)
}

// line repeats a glyph of one cell up to column col.
func (r *row) line(style lipgloss.Style, glyph string, col int) *row {
	n := min(col, r.max) - r.width
	if n <= 0 {
		return r
	}
	r.out.WriteString(style.Render(strings.Repeat(glyph, n)))
	r.width += n
	return r
}

func (r *row) String() string { return r.out.String() }

// span is a piece of a row.
type span struct {
	style lipgloss.Style
	text  string
}

func (r *row) spans(all ...span) *row {
	for _, s := range all {
		r.add(s.style, s.text)
	}
	return r
}

func spansWidth(all []span) int {
	w := 0
	for _, s := range all {
		w += diff.Width(diff.Visible(s.text))
	}
	return w
}

// lines cuts or fills a block to exactly h lines.
func fitLines(block []string, h int) []string {
	if len(block) >= h {
		return block[:max(h, 0)]
	}
	return append(block, make([]string, h-len(block))...)
}
