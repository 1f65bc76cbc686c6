package term

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
)

type ansiParams = ansi.Params

// Any bytes with any resizes between them leave a terminal that answers, and
// whose frames hold together.
func FuzzWriteAndResize(f *testing.F) {
	f.Add([]byte("hello\r\nworld"), uint8(3), uint16(0x0505))
	f.Add([]byte("\x1b[1;39r\x1b[40;80H\x1b7\x1b8\x1b[?1049h\x1b[2J"), uint8(5), uint16(0x1403))
	f.Add([]byte("\x1b[?2026h\u4f60\u597d\x1b[65535b\x1b[65535L\x1b[65535@"), uint8(4), uint16(0x0202))
	f.Add([]byte("\x1b]0;t\a\x1b]7501;state=idle\a\x1b[c\x1b[?u\x1bP+q00\x1b\\\x1b_G\x1b\\"), uint8(7), uint16(0xffff))
	f.Add([]byte("\x1b[3g\x1b[I\x1b[Z\x1bH\x1b[?69h\x1b[2;3s\x1b[?6h\x1b[H\x1b[f"), uint8(9), uint16(0x0a0a))
	f.Fuzz(func(t *testing.T, p []byte, step uint8, size uint16) {
		if len(p) > 1<<14 {
			return
		}
		term := New(40, 12, 50)
		defer func() { _ = term.Close() }()
		for chunk := int(step) + 1; len(p) > 0; {
			n := min(chunk, len(p))
			_, _ = term.Write(p[:n])
			p = p[n:]
			term.Resize(int(size>>8), int(size&0xff))
			size = size<<3 | size>>13
			check(t, term)
		}
	})
}

func check(t *testing.T, term *Terminal) {
	t.Helper()
	f := term.Snapshot()
	if f.Cursor.X < 0 || f.Cursor.Y < 0 || f.Cursor.X >= f.Cols || f.Cursor.Y >= f.Rows {
		t.Fatalf("cursor %+v outside %dx%d", f.Cursor, f.Cols, f.Rows)
	}
	if len(f.Changed) != f.Rows {
		t.Fatalf("%d rows in a whole frame of %d", len(f.Changed), f.Rows)
	}
	for _, line := range append(f.Changed, term.Scrollback(0, 50)...) {
		if len(line.Cells) > 500 {
			t.Fatalf("row %d has %d cells", line.Y, len(line.Cells))
		}
		for x, c := range line.Cells {
			if c.Width > 2 || c.Width == 2 && (x+1 >= len(line.Cells) || line.Cells[x+1].Width != 0) || c.Width == 0 && (x == 0 || line.Cells[x-1].Width != 2) {
				t.Fatalf("row %d: cell %d of %+v does not fit its neighbours", line.Y, x, line.Cells)
			}
		}
	}
	for _, line := range f.Changed {
		if len(line.Cells) > f.Cols {
			t.Fatalf("row %d has %d cells of %d", line.Y, len(line.Cells), f.Cols)
		}
	}
}

func FuzzPaste(f *testing.F) {
	f.Add("text\x1b[201~more", true)
	f.Fuzz(func(t *testing.T, text string, bracketed bool) {
		got := string(Modes{Paste: bracketed}.EncodePaste(text))
		if bracketed && got != "" {
			got = got[len(pasteStart) : len(got)-len(pasteEnd)]
		}
		for _, r := range got {
			if r == 0x1b || r == 3 || r == 0x9b {
				t.Fatalf("%q pastes %U", text, r)
			}
		}
	})
}
