package sheet

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"fletch/themes"
	"fletch/tui/diff"
)

// The least screen that a sheet can be read on, and what it needs for frame
// and labels.
const (
	leastW, leastH = 40, 10
	fullW, fullH   = 60, 12
)

func tooSmall(w, h int) bool { return w < leastW || h < leastH }

// frame is where everything stands at a size. It depends on nothing but the
// sheet: what is drawn and what counts as seen cannot differ.
type frame struct {
	compact bool
	inner   int // cells for the facts
	facts   []row
	factsH  int
	diffW   int
	diffH   int
	reasonH int // rows of the reason line; 0 when it is closed
}

func (s Sheet) frame(w, h int) frame {
	f := frame{compact: w < fullW || h < fullH, inner: w - 3, diffW: w - 2}
	least := 3 // rows of the diff
	if f.compact {
		f.inner, f.diffW, least = w-2, w, 2
	}
	f.facts = s.facts(f.inner, f.compact)
	f.factsH = max(0, min(len(f.facts), h-3-least)) // 3: the top, the line between, the bottom
	f.diffH = max(0, h-3-f.factsH)
	if s.typing {
		f.reasonH = 2
		if f.compact {
			f.reasonH = 1
		}
		f.diffH = max(0, f.diffH-1-f.reasonH)
	}
	return f
}

// View draws the sheet as h lines of at most w cells, joined by newlines.
func (s Sheet) View(st themes.Styles, m themes.Marks, w, h int) string {
	p := newPainter(st)
	if tooSmall(w, h) {
		return m.Text(strings.Join(s.small(p, w, h), "\n"))
	}
	f := s.frame(w, h)
	edge := ask
	if s.isRed() {
		edge = bad
	}
	bar := p.row(row{{themes.HeavyVertical + " ", edge}}, w)
	if f.compact {
		bar = ""
	}
	lines := []string{p.row(s.header(f, w, edge), w)}
	for i := range f.factsH {
		lines = append(lines, bar+p.row(f.facts[min(s.top+i, len(f.facts)-1)], f.inner))
	}
	lines = append(lines, p.row(s.between(f, w, edge), w))
	for _, l := range s.leaves(p, st, f) {
		lines = append(lines, bar+l)
	}
	if s.typing {
		lines = append(lines, p.row(rule(f, w, edge, row{{"deny", strong}, {"  tell " + diff.Visible(s.agent.Provider) + " why, or leave it empty", faint}}, nil), w))
		for _, r := range s.reason.rows(f.inner, f.reasonH) {
			lines = append(lines, bar+p.row(r, f.inner))
		}
	}
	lines = append(lines, p.row(s.footer(f, w, edge), w))
	return m.Text(strings.Join(lines, "\n"))
}

// header is the top line: who asks for what, and how many ask.
func (s Sheet) header(f frame, w int, edge tone) row {
	bold := askStrong
	if edge == bad {
		bold = badStrong
	}
	if f.compact {
		right := fmt.Sprintf("%d of %d", s.index, s.total)
		name := diff.Shorten(diff.Visible(s.agent.Name), max(1, w-len(" ? push ")-len(right)-3), "…")
		left := row{{" " + themes.MarkRequest + " push ", bold}, {name, strong}}
		return append(left, span{strings.Repeat(" ", max(1, w-left.width()-len(right)-1)), faint}, span{right, faint})
	}
	right := fmt.Sprintf("request %d of %d", s.index, s.total)
	name := diff.Shorten(diff.Visible(s.agent.Name), max(1, w-len("+- ? push   asks  ")-len(right)-8), "…")
	left := row{
		{themes.HeavyTop + themes.HeavyHorizontal + " ", edge},
		{themes.MarkRequest + " push", bold},
		{"  ", faint},
		{name, strong},
		{" asks ", text},
	}
	fill := w - left.width() - len(right) - 3
	return append(left, span{strings.Repeat(themes.HeavyHorizontal, max(1, fill)), edge}, span{" " + right + " ", faint}, span{themes.HeavyHorizontal, edge})
}

// between is the line under which everything may be the agent's words.
func (s Sheet) between(f frame, w int, edge tone) row {
	left := row{{"what leaves", strong}}
	var right row
	if n := len(f.facts); n > f.factsH {
		t := faint
		if s.unread() > 0 {
			t = ask
		}
		above := span{fmt.Sprintf("facts %d–%d of %d", s.top+1, s.top+f.factsH, n), t}
		if f.compact {
			left = row{above}
		} else {
			left = append(left, span{"  ", faint}, above)
		}
	}
	pos := s.viewer.Position(f.diffW, f.diffH)
	switch {
	case f.compact || len(f.facts) > f.factsH:
	case pos.Commit > 0:
		left = append(left, span{fmt.Sprintf("  commit %d of %d", pos.Commit, pos.Commits), faint})
	case pos.File > 0:
		left = append(left, span{fmt.Sprintf("  file %d of %d", pos.File, pos.Files), faint})
	}
	if pos.Total > 0 && f.diffH > 0 {
		words := fmt.Sprintf("lines %d–%d of %d", pos.From, pos.To, pos.Total)
		if f.compact {
			words = strings.TrimPrefix(words, "lines ")
		}
		right = row{{words, faint}}
	}
	return rule(f, w, edge, left, right)
}

// rule is a thin line across the sheet with words in it.
func rule(f frame, w int, edge tone, left, right row) row {
	tail := 2
	var out row
	if f.compact {
		tail = 1
	} else {
		out = row{{themes.HeavyVertical, edge}}
	}
	out = append(out, span{themes.Horizontal + " ", line})
	out = append(append(out, left...), span{" ", line})
	end := row{{strings.Repeat(themes.Horizontal, tail), line}}
	if right != nil {
		end = append(append(row{{" ", line}}, right...), span{" ", line}, end[0])
	}
	fill := w - out.width() - end.width()
	return append(append(out, span{strings.Repeat(themes.Horizontal, max(0, fill)), line}), end...)
}

// leaves is the diff, or why there is none.
func (s Sheet) leaves(p painter, st themes.Styles, f frame) []string {
	if s.listing {
		return s.viewer.FileList(st, themes.Marks{}, f.diffW, f.diffH)
	}
	if s.patch == patchShown {
		return s.viewer.View(st, themes.Marks{}, f.diffW, f.diffH)
	}
	out := make([]string, f.diffH)
	words := newFlow(f.inner, 0)
	if s.patch == patchAwaited {
		words.words(0, "reading what leaves …", faint)
	} else {
		words.words(0, themes.MarkWarning+" this cannot be shown: "+diff.Visible(clip(s.trouble)), badStrong)
		words.newline()
		words.words(0, "What cannot be shown cannot be allowed. x denies it, esc leaves it for later.", text)
	}
	for i := range min(len(out), len(words.rows)) {
		out[i] = p.row(words.rows[i], f.inner)
	}
	return out
}

// small is the whole sheet on a screen that cannot hold it.
func (s Sheet) small(p painter, w, h int) []string {
	lines := make([]string, max(h, 1))
	f := newFlow(max(w, 1), 0)
	f.put(0, span{themes.MarkRequest + " " + diff.Visible(s.agent.Name), askStrong})
	f.newline()
	f.words(0, "too small to show everything: make it 60×20, or", text)
	f.words(2, "fletch allow "+diff.Visible(string(s.request.ID))+" --commit "+s.request.Plan.Commit.Short()+"…", strong)
	f.newline()
	f.words(0, "x deny  esc later", faint)
	rows := f.rows
	if s.typing {
		rows = append([]row{{{"deny: why?", strong}}}, s.reason.rows(max(w-1, 1), max(1, min(2, h-1)))...)
	}
	for i := range min(len(lines), len(rows)) {
		lines[i] = p.row(rows[i], w)
	}
	return lines
}

// painter draws rows in a theme.
type painter [tones]diff.Ink

func newPainter(s themes.Styles) painter {
	styles := [tones]lipgloss.Style{
		text: s.Text, strong: s.Strong, faint: s.Faint, line: s.Line,
		focus: s.Focus, focusStrong: s.Focus.Bold(true), ask: s.Ask, askStrong: s.Ask.Bold(true),
		good: s.Good, bad: s.Bad, badStrong: s.Bad.Bold(true), info: s.Info, infoStrong: s.Info.Bold(true),
		chipBad: s.ChipBad, cursor: s.Chip,
	}
	var p painter
	for t, style := range styles {
		p[t] = diff.NewInk(style)
	}
	return p
}

// row draws at most w cells of r. Only what stands in full elsewhere may be
// wider: hints, and the titles of lines.
func (p painter) row(r row, w int) string {
	var out strings.Builder
	for _, s := range r {
		head, _ := diff.Cut(s.text, w)
		w -= diff.Width(head)
		if head != "" {
			out.WriteString(p[s.tone].Paint(head))
		}
	}
	return out.String()
}
