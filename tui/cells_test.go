package tui

import (
	"strings"
	"testing"

	"fletch/agents/term"
)

func TestCellsNeverSendAByteOfTheAgent(t *testing.T) {
	cells := []term.Cell{
		{Text: "\x1b[2J", Width: 1},
		{Text: "a\u202e", Width: 1},
		{Text: "日", Width: 2},
		{Width: 0},
		{Text: "👩‍👩‍👧", Width: 2},
		{Width: 0},
		{Text: "👍🏽", Width: 2},
		{Width: 0},
		{Text: "x", Width: 1, Style: term.Style{Fg: term.Indexed(1), Bg: term.RGB(1, 2, 3), Attrs: term.Bold | term.Reverse}},
		{Text: "s", Width: 1, Style: term.Style{Attrs: term.Conceal}},
	}
	want := "?a日👩👍\x1b[;1;7;31;48;2;1;2;3mx\x1b[;8m \x1b[m"
	if got := drawCells(cells, 80); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := drawCells(cells, 3); got != "?a" {
		t.Errorf("cropped to %q", got)
	}
}

func FuzzCells(f *testing.F) {
	f.Add("a日\x1b[2J👩‍👩‍👧", uint8(1), uint16(255), uint32(1<<24|9))
	f.Fuzz(func(t *testing.T, text string, width uint8, attrs uint16, color uint32) {
		cells := []term.Cell{
			{Text: text, Width: width % 3, Style: term.Style{Attrs: term.Attrs(attrs), Fg: term.Color(color), Bg: term.Color(color)}},
			{Text: "z", Width: 1},
		}
		out := drawCells(cells, 10)
		plain := stripped(out)
		if strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e }) {
			t.Errorf("%q came out as %q", text, out)
		}
	})
}
