package tui

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"fletch/themes"
)

// look is how this terminal is drawn on.
type look struct {
	styles themes.Styles
	marks  themes.Marks
	dark   bool
	depth  themes.Depth
	probed bool // the terminal was asked how wide it draws the marks
}

func newLook(env []string) look {
	l := look{dark: true, depth: themes.Full}
	l.marks.Plain = !isUTF8(env)
	if getenv(env, "NO_COLOR") != "" {
		l.depth = themes.None
	}
	return l.built()
}

func (l look) withProfile(p colorprofile.Profile) look {
	switch {
	case p <= colorprofile.Ascii:
		l.depth = themes.None
	case p == colorprofile.ANSI:
		l.depth = themes.Sixteen
	case p == colorprofile.ANSI256:
		l.depth = themes.Indexed
	default:
		l.depth = themes.Full
	}
	return l.built()
}

func (l look) withBackground(dark bool) look {
	l.dark = dark
	return l.built()
}

func (l look) built() look {
	l.styles = themes.New(l.dark, l.depth)
	return l
}

// isUTF8 reads the locale as the C library would: the first of the three that
// is set decides.
func isUTF8(env []string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(env, name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// getenv finds the last value of a variable in env, as the shell would.
func getenv(env []string, name string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// measured are the marks whose width terminals disagree about: one cell each,
// or two where the terminal is set up for East Asian text.
const measured = themes.MarkRequest + themes.MarkAsks + themes.MarkWorking + themes.MarkIdle + themes.MarkStopped

// probeRow is where they are written to be measured. It is not the first row:
// a report from there could be taken for a key.
const probeRow = 2

// probeAfter is how long after the start the alternate screen is there for
// sure.
const probeAfter = 150 * time.Millisecond

// settleMarks asks the terminal once where the cursor is behind the marks, and
// draws the screen again over them.
func (m Model) settleMarks() (Model, tea.Cmd) {
	if m.look.probed || m.look.marks.Plain || m.w == 0 || m.now.Sub(m.started) < probeAfter {
		return m, nil
	}
	m.look.probed = true
	ask := fmt.Sprintf("%s%s%s%s%s", ansi.SaveCursor, ansi.CursorPosition(1, probeRow), measured, ansi.RequestCursorPositionReport, ansi.RestoreCursor)
	return m, tea.Sequence(tea.Raw(ask), tea.ClearScreen)
}

// withReport takes the terminal's answer: marks of two cells would push what
// stands beside them, so everything is written in ASCII.
func (l look) withReport(x, y int) look {
	if l.probed && y == probeRow-1 && x > utf8.RuneCountInString(measured) {
		l.marks.Plain = true
	}
	return l
}
