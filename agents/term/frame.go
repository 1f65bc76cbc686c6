// Package term is a terminal without a window: bytes in, cells out.
package term

// Frame is what a viewer needs to draw a terminal: all of it when Changed
// holds every row, else the rows that changed since the frame the viewer had.
type Frame struct {
	Seq        uint64 // grows with every change of the screen
	Cols, Rows int
	Changed    []Line // rows to replace, top first; Y counts from 0
	Whole      bool   // Changed holds every row: forget what was there
	Cursor     Cursor
	Modes      Modes
	Title      string // sanitised, 256 bytes at most
	History    int    // rows of scrollback that History can give
}

// Line is one row of cells. Cells after the last written one are left out.
type Line struct {
	Y     int
	Cells []Cell
}

// Cell is one grapheme cluster. A wide one is followed by a Cell of Width 0.
type Cell struct {
	Text  string // valid UTF-8 without control bytes; empty means a space
	Width uint8  // 0, 1 or 2
	Style Style
}

// Style is how a cell looks. The zero value is the terminal's default.
type Style struct {
	Fg, Bg Color
	Attrs  Attrs
}

// Color is a terminal colour: the zero value is the default one.
type Color uint32

// Colour kinds, in the top byte of a Color.
const (
	colorDefault = iota
	colorIndexed // low byte: palette index
	colorRGB     // low three bytes: red, green, blue
)

// Indexed is colour i of the 256-colour palette.
func Indexed(i uint8) Color { return Color(colorIndexed<<24 | uint32(i)) }

// RGB is a true colour.
func RGB(r, g, b uint8) Color {
	return Color(colorRGB<<24 | uint32(r)<<16 | uint32(g)<<8 | uint32(b))
}

// Default reports whether c is the terminal's own colour.
func (c Color) Default() bool { return c>>24 == colorDefault }

// Index returns the palette index of an indexed colour.
func (c Color) Index() (uint8, bool) { return uint8(c), c>>24 == colorIndexed }

// Channels returns red, green and blue of a true colour.
func (c Color) Channels() (r, g, b uint8, ok bool) {
	return uint8(c >> 16), uint8(c >> 8), uint8(c), c>>24 == colorRGB
}

// Attrs is a set of text attributes.
type Attrs uint16

// The attributes.
const (
	Bold Attrs = 1 << iota
	Faint
	Italic
	Underline
	Blink
	Reverse
	Conceal
	Strike
)

// Cursor is where the program's cursor is.
type Cursor struct {
	X, Y    int
	Visible bool
	Shape   uint8 // DECSCUSR: 0 default, 1–2 block, 3–4 underline, 5–6 bar
}

// Modes are what changes how keys and the mouse are sent to the program.
type Modes struct {
	AltScreen  bool
	AppCursor  bool   // DECCKM
	AppKeypad  bool   // DECKPAM
	Paste      bool   // bracketed paste, 2004
	Focus      bool   // focus reports, 1004
	Mouse      uint16 // 0, 9, 1000, 1002 or 1003
	MouseSGR   bool   // 1006
	KittyFlags uint8
}
