package themes

import (
	"image/color"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Palette is a theme's colours, one per role. A nil colour is the terminal's
// own.
type Palette struct {
	Text  color.Color // the terminal's foreground
	Faint color.Color // secondary words, times, hints
	Line  color.Color // borders that do not have the keyboard
	Focus color.Color // the pane with the keyboard, the selected row's bar, keys in hints
	Ask   color.Color // what waits for a person
	Good  color.Color // working, added
	Bad   color.Color // failed, removed, danger, a guarantee given up
	Info  color.Color // names of branches, hosts, links
	Sel   color.Color // background of the selected row
	Chip  color.Color // text on a chip, whose background is Ask, Bad or Focus
	AddBg color.Color // background of an added row in a diff
	DelBg color.Color // background of a removed row in a diff
}

// Dark is the palette for a dark terminal.
func Dark() Palette {
	return Palette{
		Faint: lipgloss.Color("#808a96"),
		Line:  lipgloss.Color("#3d4650"),
		Focus: lipgloss.Color("#6cb6ff"),
		Ask:   lipgloss.Color("#f0b43c"),
		Good:  lipgloss.Color("#7fbe7e"),
		Bad:   lipgloss.Color("#ef6b73"),
		Info:  lipgloss.Color("#67b7c4"),
		Sel:   lipgloss.Color("#222c3a"),
		Chip:  lipgloss.Color("#121212"),
		AddBg: lipgloss.Color("#182c1e"),
		DelBg: lipgloss.Color("#361a1e"),
	}
}

// Light is the palette for a light terminal.
func Light() Palette {
	return Palette{
		Faint: lipgloss.Color("#656d76"),
		Line:  lipgloss.Color("#bec5cd"),
		Focus: lipgloss.Color("#0969da"),
		Ask:   lipgloss.Color("#9a6700"),
		Good:  lipgloss.Color("#1a7f37"),
		Bad:   lipgloss.Color("#cf222e"),
		Info:  lipgloss.Color("#0f7a85"),
		Sel:   lipgloss.Color("#ddebfa"),
		Chip:  lipgloss.Color("#ffffff"),
		AddBg: lipgloss.Color("#dafbe1"),
		DelBg: lipgloss.Color("#ffebe9"),
	}
}

// indexed is the palette for a terminal of 256 colours, as tmux is by default.
// The nearest of them to a dark tint is a loud one, so the selected row is grey
// and a diff's rows are told apart by their text and signs.
func indexed(dark bool) Palette {
	c := func(i uint8) color.Color { return ansi.IndexedColor(i) }
	if !dark {
		p := Light()
		p.Faint, p.Line, p.Focus, p.Ask = c(242), c(250), c(25), c(94)
		p.Good, p.Bad, p.Info, p.Chip = c(28), c(160), c(30), c(231)
		p.Sel, p.AddBg, p.DelBg = c(189), c(194), c(224)
		return p
	}
	return Palette{
		Faint: c(245), Line: c(238), Focus: c(75), Ask: c(214), Good: c(108), Bad: c(203), Info: c(73),
		Sel: c(236), Chip: c(233),
	}
}

// sixteen is the palette for a terminal of sixteen colours, whose actual look
// is the person's choice. There is no background colour that is sure to be
// readable, so rows are told apart by reverse video and by their signs.
func sixteen(dark bool) Palette {
	p := Palette{
		Faint: lipgloss.BrightBlack,
		Line:  lipgloss.BrightBlack,
		Focus: lipgloss.Blue,
		Ask:   lipgloss.Yellow,
		Good:  lipgloss.Green,
		Bad:   lipgloss.Red,
		Info:  lipgloss.Cyan,
		Chip:  lipgloss.Black,
	}
	if dark {
		p.Focus, p.Bad = lipgloss.BrightBlue, lipgloss.BrightRed
	}
	return p
}
