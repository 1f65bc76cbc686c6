package diff

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"fletch/themes"
)

// listRow is a row of the list of files: a folder, or a file by its index.
type listRow struct {
	folder string
	file   int // -1 for a folder
}

// FileList draws the changed files as exactly h lines of at most w cells: the
// sum, then each folder with its files and what was added and removed in
// them. The file at the top of v is marked and stays in sight. It is for a pane beside the viewer; a name that does not
// fit is shortened here, since it stands in full in the diff.
func (v Viewer) FileList(s themes.Styles, m themes.Marks, w, h int) []string {
	out := make([]string, max(h, 0))
	if h < 1 || w < 8 {
		return out
	}
	files := v.Files()
	added, removed := 0, 0
	for _, f := range files {
		added, removed = added+f.Added, removed+f.Removed
	}
	current := -1
	if v.doc != nil {
		if current = fileAt(v.doc, v.line); current < 0 && len(files) > 0 {
			current = 0
		}
	}
	sum := fmt.Sprintf(" %d files", len(files))
	if len(files) == 1 {
		sum = " 1 file"
	}
	plus, minus := "+"+strconv.Itoa(added), "−"+strconv.Itoa(removed)
	gap := w - Width(sum) - Width(plus) - Width(minus) - 2
	b, chosen := newListBrush(s), newListBrush(s.Selected())
	chosen.name, chosen.bar = NewInk(s.Selected().Strong), NewInk(s.Focus)
	out[0] = b.faint.Paint(sum)
	if gap > 0 {
		out[0] += strings.Repeat(" ", gap) + b.good.Paint(plus) + " " + b.bad.Paint(minus) + " "
	}
	out[0] = m.Text(out[0])
	rows, at := listRows(files, current)
	top := 0
	if room := h - 1; len(rows) > room {
		top = max(0, min(at-room/2, len(rows)-room))
	}
	for i := 1; i < h && top+i-1 < len(rows); i++ {
		row := rows[top+i-1]
		if row.file < 0 {
			out[i] = m.Text(b.faint.Paint(" " + themes.MarkOpen + " " + Shorten(Visible(row.folder), w-4, "…")))
			continue
		}
		if row.file == current {
			out[i] = m.Text(listFile(chosen, themes.MarkBar, files[row.file], w))
			continue
		}
		out[i] = m.Text(listFile(b, " ", files[row.file], w))
	}
	return out
}

// listRows groups files by folder, in the order of the diff, and says where
// the current one is.
func listRows(files []File, current int) (rows []listRow, at int) {
	folder := "."
	for i, f := range files {
		if dir := path.Dir(f.Path); dir != folder {
			folder = dir
			if dir != "." {
				rows = append(rows, listRow{dir, -1})
			} else {
				rows = append(rows, listRow{"(top)", -1})
			}
		}
		if i == current {
			at = len(rows)
		}
		rows = append(rows, listRow{"", i})
	}
	return rows, at
}

// listBrush is the inks of a row of the list.
type listBrush struct{ bar, name, faint, good, bad, fill Ink }

func newListBrush(s themes.Styles) listBrush {
	return listBrush{NewInk(s.Text), NewInk(s.Text), NewInk(s.Faint), NewInk(s.Good), NewInk(s.Bad), NewInk(s.Fill)}
}

func listFile(b listBrush, bar string, f File, w int) string {
	plus, minus := "", ""
	if f.Added > 0 {
		plus = "+" + strconv.Itoa(f.Added)
	}
	if f.Removed > 0 {
		minus = "−" + strconv.Itoa(f.Removed)
	}
	if f.Binary {
		plus = "binary"
	}
	tail := fmt.Sprintf("%6s", plus)
	last := strings.Repeat(" ", max(0, 6-Width(minus))) + minus
	base := Visible(path.Base(f.Path))
	room := w - 3 - Width(tail) - Width(last) - 2
	if room < 4 {
		tail, last, room = "", "", w-4
	}
	base = Shorten(base, room, "…")
	return b.bar.Paint(bar) + b.fill.Paint("  ") + b.name.Paint(base) + b.fill.Paint(strings.Repeat(" ", max(1, room-Width(base)+1))) +
		b.good.Paint(tail) + b.bad.Paint(last) + b.fill.Paint(" ")
}
