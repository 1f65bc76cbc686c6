package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	"fletch/themes"
	"fletch/tui/diff"
)

// Pieces that sheets, dialogs and panes are framed with. There is a heavy line
// above, at the left and below; there is none at the right, so a character
// whose width is disputed cannot push one out of place.

// sheetTop is a sheet's first line: "┏━ title ━━━━ note ━".
func sheetTop(edge lipgloss.Style, w int, title ...span) string {
	r := newRow(w).add(edge, themes.HeavyTop+themes.HeavyHorizontal+" ").spans(title...).add(edge, " ")
	return r.line(edge, themes.HeavyHorizontal, w).String()
}

// sheetBottom is its last line, with the keys: "┗━ enter start   esc … ━━━".
func sheetBottom(edge lipgloss.Style, w int, hints ...span) string {
	r := newRow(w).add(edge, themes.HeavyBottom+themes.HeavyHorizontal+" ").spans(hints...).add(edge, " ")
	return r.line(edge, themes.HeavyHorizontal, w).String()
}

// titleLine is a pane's title: a line with words in it, left and right. lead
// is what the line begins with.
func titleLine(line lipgloss.Style, glyph, lead string, w int, left, right []span) string {
	r := newRow(w).add(line, lead).spans(left...).add(line, " ")
	if n := spansWidth(right); n > 0 && r.width+n+4 <= w {
		r.line(line, glyph, w-n-3).add(line, " ").spans(right...).add(line, " "+glyph)
	}
	return r.line(line, glyph, w).String()
}

// wrap breaks words into lines of at most w cells. A word that is longer is
// broken.
func wrap(text string, w int) []string {
	if w < 1 {
		return nil
	}
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		line := ""
		for _, word := range strings.Fields(diff.Visible(paragraph)) {
			if line != "" && diff.Width(line)+1+diff.Width(word) <= w {
				line += " " + word
				continue
			}
			if line != "" {
				lines = append(lines, line)
			}
			for diff.Width(word) > w {
				head, rest := diff.Cut(word, w)
				if head == "" {
					break
				}
				lines, word = append(lines, head), rest
			}
			line = word
		}
		lines = append(lines, line)
	}
	return lines
}
