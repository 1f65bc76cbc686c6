package term

import (
	"image/color"
	"io"
	"reflect"
	"unsafe"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// emulator is the terminal core: x/vt, kept from panicking and blocking, with
// the answers and modes that it lacks. It belongs to the Terminal that made
// it and is used under its lock.
type emulator struct {
	owner   *Terminal
	history int
	vt      *vt.Emulator
	screens [2]*vt.Screen // main and alternate
	all     bool          // every row may have changed

	title string
	keys  Modes        // what EncodeKey and the others need to know
	set   map[int]bool // DEC modes that the program set
	kitty [2][]uint8   // stacks of keyboard flags, main and alternate
	shape uint8        // DECSCUSR
	cells []Cell       // scratch for one row
}

func newEmulator(cols, rows, history int, owner *Terminal) *emulator {
	e := &emulator{owner: owner, history: history}
	e.start(cols, rows)
	return e
}

// start makes a fresh x/vt, at the beginning and when one broke.
func (e *emulator) start(cols, rows int) {
	e.vt = vt.NewEmulator(cols, rows)
	e.screens = screensOf(e.vt)
	e.vt.SetScrollbackSize(e.history)
	// x/vt keeps 10,000 rows of the alternate screen that nobody can reach.
	e.screens[1].SetScrollback(nil)
	// Every answer is made in reply.go. Those that x/vt would make itself go
	// through a pipe that blocks until they are read; a closed one cannot.
	if pipe, ok := e.vt.InputPipe().(*io.PipeWriter); ok {
		_ = pipe.CloseWithError(io.EOF)
	}
	e.reset()
	e.handle()
	e.all = true
}

// reset forgets what the program set up.
func (e *emulator) reset() {
	e.keys = Modes{}
	e.set = map[int]bool{7: true, 25: true}
	e.kitty = [2][]uint8{}
	e.shape = 0
	e.all = true
}

// screensOf reaches the two screens of an emulator. x/vt has no way to turn
// off the scrollback of the alternate one, to clear what was touched, or to
// read the pen; a test holds that the layout is as expected.
func screensOf(e *vt.Emulator) [2]*vt.Screen {
	field := reflect.ValueOf(e).Elem().FieldByName("scrs")
	both := (*[2]vt.Screen)(unsafe.Pointer(field.UnsafeAddr())) // #nosec G103: see above
	return [2]*vt.Screen{&both[0], &both[1]}
}

func (e *emulator) size() (cols, rows int) { return e.vt.Width(), e.vt.Height() }

// current is the screen that is shown.
func (e *emulator) current() *vt.Screen {
	if e.vt.IsAltScreen() {
		return e.screens[1]
	}
	return e.screens[0]
}

// write feeds output in. It reports false when x/vt broke on it; then it
// starts again with an empty screen, since what it holds cannot be trusted.
func (e *emulator) write(p []byte) (ok bool) {
	defer e.recover(&ok, e.vt.Width(), e.vt.Height())
	_, _ = e.vt.Write(p) // it has no errors before Close
	return true
}

func (e *emulator) resize(cols, rows int) (ok bool) {
	defer e.recover(&ok, cols, rows)
	e.vt.Resize(cols, rows)
	for _, s := range e.screens {
		// Scrolling by nothing puts a cursor that is now outside back in.
		s.ScrollUp(0)
	}
	e.all = true
	if e.set[2048] {
		e.reportSize()
	}
	return true
}

func (e *emulator) recover(ok *bool, cols, rows int) {
	if recover() != nil {
		*ok = false
		e.start(cols, rows)
	}
}

// touched reports whether row y may have changed since untouch.
func (e *emulator) touched(y int) bool {
	rows := e.vt.Touched()
	return e.all || y < len(rows) && rows[y] != nil
}

func (e *emulator) untouch() {
	e.all = false
	e.current().ClearTouched()
}

// row gives the cells of row y. It is valid until the next call.
func (e *emulator) row(y int) []Cell {
	e.cells = e.cells[:0]
	cols := e.vt.Width()
	for x := 0; x < cols; x++ {
		e.cells = appendCell(e.cells, e.vt.CellAt(x, y), cols-x)
	}
	e.cells = trim(e.cells)
	return e.cells
}

func (e *emulator) scrollback() int { return e.vt.ScrollbackLen() }

// scrolled gives row i of the scrollback; 0 is the newest.
func (e *emulator) scrolled(i int) []Cell {
	line := e.vt.Scrollback().Line(e.scrollback() - 1 - i)
	var cells []Cell
	if len(line) > 0 {
		cells = make([]Cell, 0, len(line))
	}
	for x := range line {
		cells = appendCell(cells, &line[x], len(line)-x)
	}
	return trim(cells)
}

func (e *emulator) cursor() Cursor {
	at := e.vt.CursorPosition()
	c := Cursor{X: at.X, Y: at.Y, Visible: !e.vt.CursorHidden()}
	cols, rows := e.size()
	c.X, c.Y = min(max(c.X, 0), cols-1), min(max(c.Y, 0), rows-1)
	c.Shape = e.shape
	return c
}

func (e *emulator) modes() Modes {
	m := e.keys
	m.AltScreen = e.vt.IsAltScreen()
	m.KittyFlags = e.flags()
	return m
}

// appendCell appends one column, with room columns left in the row. A cell
// that claims more room than there is, or none at all, becomes a blank.
func appendCell(cells []Cell, c *uv.Cell, room int) []Cell {
	if c == nil {
		return append(cells, Cell{Width: 1})
	}
	behindWide := len(cells) > 0 && cells[len(cells)-1].Width == 2
	style := convertStyle(&c.Style)
	switch {
	case behindWide:
		// Whatever is there, the wide one before takes its place.
		return append(cells, Cell{Style: cells[len(cells)-1].Style})
	case c.Width == 2 && room >= 2:
		return append(cells, Cell{Text: cellText(c.Content), Width: 2, Style: style})
	case c.Width == 1:
		return append(cells, Cell{Text: cellText(c.Content), Width: 1, Style: style})
	}
	return append(cells, Cell{Width: 1, Style: style})
}

// trim takes the blanks off the end of a row.
func trim(cells []Cell) []Cell {
	n := len(cells)
	for n > 0 && cells[n-1] == (Cell{Width: 1}) {
		n--
	}
	return cells[:n]
}

func convertStyle(s *uv.Style) Style {
	if s.Fg == nil && s.Bg == nil && s.Attrs == 0 && s.Underline == uv.UnderlineNone {
		return Style{}
	}
	out := Style{Fg: convertColor(s.Fg), Bg: convertColor(s.Bg)}
	for _, a := range [...]struct {
		from uint8
		to   Attrs
	}{
		{uv.AttrBold, Bold},
		{uv.AttrFaint, Faint},
		{uv.AttrItalic, Italic},
		{uv.AttrBlink, Blink},
		{uv.AttrRapidBlink, Blink},
		{uv.AttrReverse, Reverse},
		{uv.AttrConceal, Conceal},
		{uv.AttrStrikethrough, Strike},
	} {
		if s.Attrs&a.from != 0 {
			out.Attrs |= a.to
		}
	}
	if s.Underline != uv.UnderlineNone {
		out.Attrs |= Underline
	}
	return out
}

func convertColor(c color.Color) Color {
	switch c := c.(type) {
	case nil:
		return 0
	case ansi.BasicColor:
		return Indexed(uint8(c))
	case ansi.IndexedColor:
		return Indexed(uint8(c))
	case color.RGBA:
		return RGB(c.R, c.G, c.B)
	}
	r, g, b, _ := c.RGBA()
	return RGB(uint8(r>>8), uint8(g>>8), uint8(b>>8))
}
