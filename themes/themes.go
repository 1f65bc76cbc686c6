// Package themes turns a palette of twelve roles into the styles that every
// part of the dashboard draws with. No component names a colour: it asks for
// a role. Styles are built once per theme, never while drawing.
package themes

import (
	"image/color"

	"charm.land/lipgloss/v2"
)

// Depth is how many colours the terminal shows.
type Depth uint8

// The depths.
const (
	None    Depth = iota // NO_COLOR: bold, faint and reverse only
	Sixteen              // the sixteen named colours
	Indexed              // the palette of 256
	Full                 // true colour
)

// Styles is one theme, ready to draw with.
type Styles struct {
	Text, Strong, Faint, Line lipgloss.Style
	Focus, Ask, Good, Bad     lipgloss.Style
	Info                      lipgloss.Style
	// Chip is a label that fills its background: Chip asks, ChipBad warns,
	// ChipFocus says where the keyboard is. A chip brings its own spaces.
	Chip, ChipBad, ChipFocus lipgloss.Style
	// Add and Del are a diff's added and removed rows, text and background.
	Add, Del lipgloss.Style
	// Fill is what pads a row to its width: nothing, or the background of
	// the selected row.
	Fill lipgloss.Style

	selected *Styles
}

// New builds the styles for a terminal with a dark or a light background.
func New(dark bool, depth Depth) Styles {
	switch depth {
	case Full:
		if dark {
			return build(Dark())
		}
		return build(Light())
	case Indexed:
		return build(indexed(dark))
	case Sixteen:
		s := build(sixteen(dark))
		s.selected = reversed()
		return s
	case None:
	}
	return plain()
}

// Selected is the same theme as it looks on the selected row.
func (s Styles) Selected() Styles {
	if s.selected == nil {
		return s
	}
	return *s.selected
}

func build(p Palette) Styles {
	s := over(p, nil)
	on := over(p, p.Sel)
	s.selected = &on
	return s
}

// over makes the styles with bg behind everything that has no background of
// its own.
func over(p Palette, bg color.Color) Styles {
	role := func(fg color.Color) lipgloss.Style {
		style := lipgloss.NewStyle()
		if fg != nil {
			style = style.Foreground(fg)
		}
		if bg != nil {
			style = style.Background(bg)
		}
		return style
	}
	chip := func(behind color.Color) lipgloss.Style {
		return lipgloss.NewStyle().Bold(true).Foreground(p.Chip).Background(behind)
	}
	row := func(fg, behind color.Color) lipgloss.Style {
		style := role(fg)
		if behind != nil {
			style = style.Background(behind)
		}
		return style
	}
	return Styles{
		Text: role(p.Text), Strong: role(p.Text).Bold(true), Faint: role(p.Faint), Line: role(p.Line),
		Focus: role(p.Focus), Ask: role(p.Ask), Good: role(p.Good), Bad: role(p.Bad), Info: role(p.Info),
		Chip: chip(p.Ask), ChipBad: chip(p.Bad), ChipFocus: chip(p.Focus),
		Add: row(p.Good, p.AddBg), Del: row(p.Bad, p.DelBg),
		Fill: role(nil),
	}
}

// plain draws without a colour: roles that matter keep their weight, and the
// word beside every mark says the rest.
func plain() Styles {
	text := lipgloss.NewStyle()
	faint := text.Faint(true)
	strong := text.Bold(true)
	chip := strong.Reverse(true)
	return Styles{
		Text: text, Strong: strong, Faint: faint, Line: faint,
		Focus: text, Ask: text, Good: text, Bad: text, Info: text,
		Chip: chip, ChipBad: chip, ChipFocus: chip,
		Add: text, Del: text, Fill: text,
		selected: reversed(),
	}
}

// reversed is a row in reverse video. All of it has one look: coloured words
// would each reverse into a block of their own.
func reversed() *Styles {
	text := lipgloss.NewStyle().Reverse(true)
	strong := text.Bold(true)
	return &Styles{
		Text: text, Strong: strong, Faint: text, Line: text,
		Focus: text, Ask: text, Good: text, Bad: text, Info: text,
		Chip: strong, ChipBad: strong, ChipFocus: strong,
		Add: text, Del: text, Fill: text,
	}
}
