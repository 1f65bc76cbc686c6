package diff

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// tabStop is how far apart tabs are, counted from where a text begins.
const tabStop = 4

// clusterRunes bounds what may pile up on one letter. Real scripts stay
// below it; a stack of a hundred accents, which paints over its neighbours,
// does not.
const clusterRunes = 8

// unit is what goes to the screen whole: a grapheme, or the name of a
// character that must not go there itself.
type unit struct {
	text  string
	width int
	named bool // text is "<U+202E>" or "<0x9B>", not what was written
}

// hidden reports whether r would be invisible on a terminal, or would change
// what is around it: controls, bidi and other format characters, spaces that
// are not the space, variation selectors, and everything that has no agreed
// width (private use, not assigned).
func hidden(r rune) bool {
	if r >= ' ' && r < 0x7f {
		return false
	}
	return !unicode.IsPrint(r) || r == 0x2800 || // the blank braille pattern prints nothing
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func name(r rune) unit {
	text := fmt.Sprintf("<U+%04X>", r)
	return unit{text, len(text), true}
}

// next takes one unit off s, which must not be empty; col is where it will
// stand, for tabs. It returns how many bytes it took.
func next(s string, col int) (unit, int) {
	c := s[0]
	if c >= ' ' && c < 0x7f && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return unit{s[:1], 1, false}, 1
	}
	if c == '\t' {
		n := tabStop - col%tabStop
		return unit{"        "[:n], n, false}, 1
	}
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		return unit{fmt.Sprintf("<0x%02X>", c), 6, true}, 1
	}
	if hidden(r) || unicode.Is(unicode.M, r) { // a mark without its letter would land on what precedes
		return name(r), size
	}
	graphemes := displaywidth.StringGraphemes(s[:min(len(s), 16*utf8.UTFMax)])
	if !graphemes.Next() {
		return name(r), size
	}
	whole := graphemes.Value()
	end, runes := 0, 0
	for end < len(whole) && runes < clusterRunes {
		r, size := utf8.DecodeRuneInString(whole[end:])
		if hidden(r) || r == utf8.RuneError && size == 1 {
			break
		}
		end += size
		runes++
	}
	width := displaywidth.String(whole[:end])
	if width < 1 || width > 2 {
		return name(r), size
	}
	return unit{whole[:end], width, false}, end
}

// Visible is s as one line that is safe to show: tabs become spaces, and each
// character that a terminal would obey or hide is written out as <U+202E>
// (<0x9B> for a byte that is not UTF-8). Nothing is left out.
func Visible(s string) string {
	if plain(s) {
		return s
	}
	var out strings.Builder
	for col := 0; s != ""; {
		u, n := next(s, col)
		out.WriteString(u.text)
		col += u.width
		s = s[n:]
	}
	return out.String()
}

// plain reports whether s is printable ASCII throughout.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Width is how many cells s takes; s must be [Visible].
func Width(s string) int {
	if plain(s) {
		return len(s)
	}
	return displaywidth.String(s)
}

// Cut splits s, which must be [Visible], so that head takes at most width
// cells. Graphemes stay whole; head is empty only if s is, or if width is
// less than 2 and the first grapheme is wider.
func Cut(s string, width int) (head, rest string) {
	if plain(s) {
		n := min(len(s), max(width, 0))
		return s[:n], s[n:]
	}
	at, col := 0, 0
	for at < len(s) {
		u, n := next(s[at:], col)
		if col+u.width > width {
			break
		}
		at += n
		col += u.width
	}
	return s[:at], s[at:]
}

// Shorten is s, which must be [Visible], in at most width cells: if it does
// not fit, it ends in mark. It is for names that stand in full nearby.
func Shorten(s string, width int, mark string) string {
	if Width(s) <= width {
		return s
	}
	head, _ := Cut(s, width-Width(mark))
	return head + mark
}
