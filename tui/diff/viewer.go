// Package diff shows a patch: what would leave the machine, or what an agent
// has changed. It takes git's unified diff and commit messages as hostile
// text. Every line is shown, wrapped and never cut; characters that a
// terminal would obey or hide are written out. It knows no keys but the moves
// of a pager, no git and no clock.
package diff

import (
	"sort"

	"fletch/state"
)

// Viewer is a place in a patch. It is a value: moving gives a new one. The
// zero Viewer shows an empty patch. Viewers of one patch share the wrapped
// text, so they are not for several goroutines at once.
type Viewer struct {
	doc *document
	// widths holds the last layouts; a resize back and forth, or a list beside
	// it that comes and goes, measures nothing again.
	widths    *[2]*layout
	line, sub int // what is at the top: a line, and a row of it
}

// New takes a patch apart, in time linear in its size; it holds the text of p.
// A diff of more than 16 MiB or 500,000 lines is not read to its end: see
// [Viewer.Whole].
func New(p state.Patch) Viewer {
	return Viewer{doc: parse(p), widths: new([2]*layout)}
}

// Whole reports whether all of the patch's text is in the viewer. What
// [state.Patch.Omitted] names was never in it and does not count.
func (v Viewer) Whole() bool { return v.doc != nil && !v.doc.cut }

// Files lists the changed paths in the order of the diff.
func (v Viewer) Files() []File {
	if v.doc == nil {
		return nil
	}
	return v.doc.files
}

// Position is where a viewer stands at a size.
type Position struct {
	From, To, Total int // rows, from 1; all 0 when there is nothing
	// Commit and File count from 1. Commit is 0 unless nothing but commit
	// messages is in view; File is 0 when there are no files or Commit is not 0.
	Commit, Commits int
	File, Files     int
	Path            string // of File: not safe to show without [Visible]
	Hunk, Hunks     int    // of File, from 1; 0 when it has none
}

// Position tells what a view of w by h cells shows.
func (v Viewer) Position(w, h int) Position {
	if v.doc == nil {
		return Position{}
	}
	l := v.layout(w)
	top := v.row(l)
	p := Position{Total: l.total(), Commits: len(v.doc.heads), Files: len(v.doc.files)}
	if p.Total == 0 {
		return p
	}
	p.From, p.To = top+1, min(top+max(h, 1), p.Total)
	last, _ := l.find(p.To - 1)
	i := fileAt(v.doc, v.line)
	if i < 0 && p.Files > 0 && v.doc.files[0].line <= last {
		i = 0
	}
	if i < 0 {
		p.Commit = commitAt(v.doc, v.line)
		return p
	}
	f := v.doc.files[i]
	p.File, p.Path, p.Hunks = i+1, f.Path, len(f.hunks)
	for _, at := range f.hunks {
		if at <= v.line || p.Hunk == 0 {
			p.Hunk++
		}
	}
	return p
}

// fileAt is the index of the file that line is in; -1 before the first.
func fileAt(d *document, line int) int {
	i := len(d.files) - 1
	for i >= 0 && d.files[i].line > line {
		i--
	}
	return i
}

// commitAt counts the commit headers up to line.
func commitAt(d *document, line int) int {
	return sort.SearchInts(d.heads, line+1)
}

// Moves reports whether key is one that [Viewer.Update] knows.
func Moves(key string) bool {
	switch key {
	case "j", "k", "down", "up", "space", " ", "b", "pgdown", "pgup", "ctrl+d", "ctrl+u",
		"g", "G", "home", "end", "J", "K", "h", "l", "left", "right":
		return true
	}
	return false
}

// Update moves a view of w by h cells. A key that does not move gives v back.
func (v Viewer) Update(key string, w, h int) Viewer {
	if v.doc == nil || len(v.doc.lines) == 0 {
		return v
	}
	l := v.layout(w)
	page := max(1, h-1) // one line stays, to read on from
	switch key {
	case "j", "down":
		return v.scroll(l, h, 1)
	case "k", "up":
		return v.scroll(l, h, -1)
	case "space", " ", "pgdown":
		return v.scroll(l, h, page)
	case "b", "pgup":
		return v.scroll(l, h, -page)
	case "ctrl+d":
		return v.scroll(l, h, max(1, h/2))
	case "ctrl+u":
		return v.scroll(l, h, -max(1, h/2))
	case "g", "home":
		return v.top(0)
	case "G", "end":
		return v.scroll(l, h, l.total())
	case "J":
		return v.jump(func(f File) []int { return []int{f.line} }, true)
	case "K":
		return v.jump(func(f File) []int { return []int{f.line} }, false)
	case "l", "right":
		return v.jump(func(f File) []int { return f.hunks }, true)
	case "h", "left":
		return v.jump(func(f File) []int { return f.hunks }, false)
	}
	return v
}

// JumpTo puts file i, counted from 0, at the top. An i that is not there
// changes nothing.
func (v Viewer) JumpTo(i int) Viewer {
	if v.doc == nil || i < 0 || i >= len(v.doc.files) {
		return v
	}
	return v.top(v.doc.files[i].line)
}

func (v Viewer) top(line int) Viewer {
	v.line, v.sub = line, 0
	return v
}

// scroll moves by rows. It ends where the last row is at the bottom, unless a
// jump has gone further.
func (v Viewer) scroll(l *layout, h, by int) Viewer {
	row := v.row(l)
	end := max(row, l.total()-h, 0)
	v.line, v.sub = l.find(max(0, min(row+by, end)))
	return v
}

// jump goes to the nearest of the lines that at names, behind or before the
// top; with none there it stays.
func (v Viewer) jump(at func(File) []int, forward bool) Viewer {
	to := -1
	for _, f := range v.doc.files {
		for _, line := range at(f) {
			if forward && line > v.line {
				return v.top(line)
			}
			if !forward && (line < v.line || line == v.line && v.sub > 0) {
				to = line
			}
		}
	}
	if to < 0 {
		if forward {
			return v
		}
		to = 0 // before the first file: the commits
	}
	return v.top(to)
}

func (v Viewer) row(l *layout) int {
	if v.line >= len(v.doc.lines) {
		return 0
	}
	rows := int(l.starts[v.line+1] - l.starts[v.line])
	return int(l.starts[v.line]) + min(v.sub, rows-1)
}

// layout gives the patch at width w, from the cache if it can.
func (v Viewer) layout(w int) *layout {
	cache := v.widths
	if cache[0] != nil && cache[0].width == w {
		return cache[0]
	}
	cache[0], cache[1] = cache[1], cache[0]
	if cache[0] == nil || cache[0].width != w {
		cache[0] = newLayout(v.doc, w)
	}
	return cache[0]
}
