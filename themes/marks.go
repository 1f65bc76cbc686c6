package themes

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// The marks. Each stands beside a word, so that neither colour nor font has
// to carry a meaning alone.
const (
	MarkRequest  = "⚑" // asks to push
	MarkAsks     = "◆" // asks you
	MarkFailed   = "✗"
	MarkDone     = "✓"
	MarkWorking  = "●"
	MarkIdle     = "○"
	MarkStarting = "◌"
	MarkStopped  = "■"
	MarkWarning  = "⚠"
	MarkBar      = "▌" // the selected row
	MarkHere     = "▸" // the choice that is taken
	MarkOpen     = "▾" // a part that is unfolded
)

// Lines that borders are drawn with: light ones look, heavy ones have the
// keyboard.
const (
	Horizontal      = "─"
	Vertical        = "│"
	HeavyHorizontal = "━"
	HeavyVertical   = "┃"
	HeavyTop        = "┏"
	HeavyBottom     = "┗"
	TeeDown         = "┬"
	TeeUp           = "┴"
)

// ascii gives each sign above, and what agents like to draw, one plain
// character. Where two signs must stay apart they get different ones.
const ascii = "⚑? ◆! ✗# ✓v ●* ○o ◌: ■x ⚠! ▌= ▸> ▾v ✻* ✶* ✽* ✢* ✳* •* ◦o ⏺* ⎿` ›> " +
	"─- │| ━= ┃| ┏+ ┗+ ┬+ ┴+ ┌+ ┐+ └` ┘+ ├+ ┤+ ┼+ ╭+ ╮+ ╯+ ╰+ ═= ║| ╔+ ╗+ ╚+ ╝+ ╶- ╴- ▪* ▫o " +
	"┓+ ┛+ ┣+ ┫+ ╋+ ┳+ ┻+ █# ▉# ▊# ▋# ▍# ▎| ▏| ▐# ▀# ▄# ░. ▒: ▓# " +
	"…. ·. −- –- —- “\" ”\" ‘' ’' «< »> ←< →> ↑^ ↓v ×x ≤< ≥> ❯> ❮< ▶> ◀< ▲^ ▼v ☐o ☑v ☒x ✔v ✘x ❌# ✅v"

// Marks says how signs are written where a terminal may not have them. The
// zero value writes them as they are.
type Marks struct {
	// Plain is for a locale that is not UTF-8, or a terminal that draws the
	// marks two cells wide: everything becomes ASCII.
	Plain bool
}

// Text returns s as the terminal can show it. Each character keeps its width,
// so a line keeps its columns, and escape sequences stay as they are.
func (m Marks) Text(s string) string {
	if !m.Plain || isASCII(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	state := byte(0)
	for len(s) > 0 {
		seq, width, n, next := ansi.DecodeSequence(s, state, nil)
		out.WriteString(plainCluster(seq, width))
		s, state = s[n:], next
	}
	return out.String()
}

// plainCluster is one grapheme cluster or escape sequence in ASCII.
func plainCluster(seq string, width int) string {
	if isASCII(seq) {
		return seq
	}
	if width == 0 {
		return "" // a combining mark or joiner that stands alone
	}
	first, rest := firstRune(seq)
	if i := strings.Index(ascii, first); i >= 0 && rest == "" {
		return string(ascii[i+len(first)]) + strings.Repeat(" ", width-1)
	}
	return strings.Repeat("?", width)
}

func firstRune(s string) (first, rest string) {
	for i := range s {
		if i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
