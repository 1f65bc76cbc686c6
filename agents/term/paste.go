package term

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// EncodePaste gives the bytes for pasted text: bracketed when the program
// asked for that, so that it can tell them from typing. Whatever could end
// the brackets early or act as a key is taken out: escape sequences of its
// own and every control character but newline and tab. Without brackets a
// newline is what the Enter key sends.
func (m Modes) EncodePaste(text string) []byte {
	text = strings.ReplaceAll(text, pasteEnd, "")
	text = strings.ReplaceAll(text, pasteStart, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
	switch {
	case text == "":
		return nil
	case m.Paste:
		return []byte(pasteStart + text + pasteEnd)
	}
	return []byte(strings.ReplaceAll(text, "\n", "\r"))
}

// EncodeFocus tells the program that its terminal gained or lost the focus;
// nothing unless it asked.
func (m Modes) EncodeFocus(gained bool) []byte {
	switch {
	case !m.Focus:
		return nil
	case gained:
		return []byte("\x1b[I")
	}
	return []byte("\x1b[O")
}
