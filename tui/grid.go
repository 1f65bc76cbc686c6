package tui

import (
	"fletch/agents/attach"
	"fletch/agents/term"
)

// maxPast is how many rows of an agent's scrollback are kept here; the keeper
// has the rest.
const maxPast = 4000

// grid is the dashboard's copy of one agent's terminal, and where the person
// has scrolled it to. Only Update changes it.
type grid struct {
	seq     uint64
	cols    int
	lines   [][]term.Cell
	cursor  term.Cursor
	modes   term.Modes
	history int                 // rows of scrollback that can be asked for
	past    map[int][]term.Cell // by how old: 0 is the oldest row there is
	moved   bool                // past may have moved: the oldest rows are dropped as new ones come
	asked   bool                // scrollback is on its way
	up      int                 // rows above the live end; 0 is live

	drawn  []string // rows as drawn at width drawnW
	fresh  []bool
	drawnW int
}

// apply takes over a frame.
func (g *grid) apply(f term.Frame) {
	if f.Whole || f.Cols != g.cols || f.Rows != len(g.lines) {
		g.cols = f.Cols
		g.lines = make([][]term.Cell, f.Rows)
		g.drawnW = 0
	}
	for _, line := range f.Changed {
		if line.Y < 0 || line.Y >= len(g.lines) {
			continue
		}
		g.lines[line.Y] = line.Cells
		if line.Y < len(g.fresh) {
			g.fresh[line.Y] = false
		}
	}
	if g.up > 0 && f.History > g.history {
		g.up += f.History - g.history // stay at the same lines
	}
	if f.History < g.history {
		g.past, g.asked = nil, false
	}
	g.moved = g.moved || f.History == g.history && len(f.Changed) > 0
	g.seq, g.cursor, g.modes, g.history = f.Seq, f.Cursor, f.Modes, f.History
	g.up = min(g.up, g.history)
}

// remember takes over scrollback that was asked for.
func (g *grid) remember(h attach.History) {
	if g.past == nil || g.moved || len(g.past) > maxPast {
		g.past = map[int][]term.Cell{}
	}
	for i, line := range h.Lines {
		g.past[h.Total-1-h.From-i] = line.Cells
	}
	g.asked, g.moved = false, false
}

// end is the row after the last one with something on it, the cursor's
// included.
func (g *grid) end() int {
	for y := len(g.lines) - 1; y >= 0; y-- {
		if g.cursor.Visible && y == g.cursor.Y {
			return y + 1
		}
		for _, c := range g.lines[y] {
			if c.Text != "" && c.Text != " " || c.Style.Bg != 0 || c.Style.Attrs&term.Reverse != 0 {
				return y + 1
			}
		}
	}
	return 0
}

// top is the row, counted from the oldest of the scrollback, that a view of h
// rows begins with.
func (g *grid) top(h int) int {
	rows := len(g.lines)
	if g.up > 0 {
		return max(0, g.history+rows-h-g.up)
	}
	if rows <= h {
		return g.history
	}
	return g.history + max(0, g.end()-h)
}

// scroll moves the view by rows, up when positive.
func (g *grid) scroll(by, h int) {
	rows := len(g.lines)
	if g.up == 0 && by > 0 && rows > h {
		// From the end of what is written, not of the empty rows below it.
		by += max(0, rows-max(g.end(), h))
	}
	g.up = max(0, min(g.up+by, g.history+rows-min(rows, h)))
}

// missing is the scrollback that a view of h rows needs and that is not here:
// how many rows, and from which, 0 being the newest. No rows: nothing is
// missing, or it is on its way.
func (g *grid) missing(h int) (from, n int) {
	if g.up == 0 || g.asked {
		return 0, 0
	}
	top := g.top(h)
	for y := top; y < min(top+h, g.history); y++ {
		if _, have := g.past[y]; !have || g.moved {
			first, last := max(0, top-2*h), min(g.history, top+2*h) // and what comes next
			g.asked = true
			return g.history - last, last - first
		}
	}
	return 0, 0
}

// view draws h rows of width w.
func (g *grid) view(w, h int) []string {
	g.prepare(w)
	out := make([]string, 0, h)
	top := g.top(h)
	for y := top; y < top+h; y++ {
		switch at := y - g.history; {
		case at < 0:
			out = append(out, drawCells(g.past[y], w))
		case at < len(g.lines):
			if !g.fresh[at] {
				g.drawn[at], g.fresh[at] = drawCells(g.lines[at], w), true
			}
			out = append(out, g.drawn[at])
		default:
			out = append(out, "")
		}
	}
	return out
}

func (g *grid) prepare(w int) {
	if g.drawnW == w && len(g.drawn) == len(g.lines) {
		return
	}
	g.drawn = make([]string, len(g.lines))
	g.fresh = make([]bool, len(g.lines))
	g.drawnW = w
}
