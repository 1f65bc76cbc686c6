package term

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the length of a title or notification in bytes.
const maxText = 256

// maxCellText is the length of one grapheme cluster in bytes. A family emoji
// takes 25; what is longer is a stack of marks meant to smear.
const maxCellText = 64

// plain makes text that a program chose fit to be shown elsewhere: valid
// UTF-8 on one line, without control, format and bidi characters, limit bytes
// at most, no blanks around it.
func plain(text string, limit int) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n', r == '\t', r == '\r', r == '\u2028', r == '\u2029':
			r = ' '
		case hidden(r):
			continue
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// hidden reports whether r changes how text is shown without being seen
// itself. Joiners stay: clusters are made of them.
func hidden(r rune) bool {
	switch {
	case r == utf8.RuneError, unicode.IsControl(r):
		return true
	case r == '\u200c', r == '\u200d':
		return false
	}
	return unicode.Is(unicode.Cf, r) && !tag(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// tag reports whether r is one of the tag characters that flags are spelt
// with.
func tag(r rune) bool { return r >= 0xE0020 && r <= 0xE007F }

// cellText is the text of one cell as frames carry it.
func cellText(text string) string {
	if len(text) == 1 {
		if c := text[0]; c > ' ' && c < 0x7f {
			return text
		}
		return ""
	}
	clean := len(text) <= maxCellText
	for _, r := range text {
		if hidden(r) {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
	return plain(text, maxCellText)
}
