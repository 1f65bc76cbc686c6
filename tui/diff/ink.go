package diff

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// Ink is a style as the bytes before and behind a text. A frame has hundreds
// of stretches of text, all of one line and free of controls: rendering each
// through lipgloss would take most of the frame's time.
type Ink struct{ before, behind string }

// NewInk makes an ink of what style says about colour and weight; anything
// else in it is ignored.
func NewInk(style lipgloss.Style) Ink {
	before, behind, _ := strings.Cut(style.Render("x"), "x")
	return Ink{before, behind}
}

// Paint is text, which must be [Visible], in this ink.
func (i Ink) Paint(text string) string {
	if text == "" {
		return ""
	}
	return i.before + text + i.behind
}
