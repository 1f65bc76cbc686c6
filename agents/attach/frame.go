package attach

import (
	"encoding/binary"
	"math"

	"fletch/agents/term"
)

// Bounds on frames; term.Terminal keeps within them.
const (
	maxCols    = 500
	maxRows    = 300
	maxHistory = 100_000
	maxTitle   = 256
	maxCell    = 64 // bytes of text in one cell
)

// splitAt is the size at which a frame goes on in another message.
const splitAt = maxMessage / 2

// A run of cells begins with a byte: how its colours are given, whether it
// has attributes, and whether all of its cells are single ASCII characters.
const (
	runFgShift = 0 // two bits: 0 default, 1 indexed, 2 RGB
	runBgShift = 2
	runAttrs   = 1 << 4
	runASCII   = 1 << 5
)

// frameEncoder turns the frames for one viewer into messages. It sends modes
// and title only when they changed since the last frame.
type frameEncoder struct {
	modes term.Modes
	title string
	buf   []byte
}

// encode gives the messages for f. They are valid until the next call.
func (e *frameEncoder) encode(f term.Frame) []byte {
	b := e.buf[:0]
	if f.Whole || f.Modes != e.modes {
		start := len(b)
		b = end(appendModes(begin(b, kindMode), f.Modes), start)
	}
	if f.Whole || f.Title != e.title {
		start := len(b)
		b = end(append(begin(b, kindTitle), f.Title...), start)
	}
	e.modes, e.title = f.Modes, f.Title
	k := kindRows
	switch {
	case f.Whole:
		k = kindSnapshot
	case len(f.Changed) == 0:
		k = kindCursor
	}
	start := len(b)
	b = appendFrameHead(begin(b, k), f)
	if k == kindSnapshot {
		b = appendUint(appendUint(b, f.Cols), f.Rows)
	}
	lines := f.Changed
	for k != kindCursor {
		var rest []term.Line
		b, rest = appendLines(b, lines, start+splitAt)
		if len(rest) == 0 {
			break
		}
		b = end(b, start)
		lines, start, k = rest, len(b), kindRows
		b = appendFrameHead(begin(b, k), f)
	}
	b = end(b, start)
	e.buf = b
	return b
}

// appendFrameHead appends what every message of a frame begins with.
func appendFrameHead(b []byte, f term.Frame) []byte {
	b = binary.AppendUvarint(b, f.Seq)
	b = appendUint(b, f.History)
	b = appendUint(b, f.Cursor.X)
	b = appendUint(b, f.Cursor.Y)
	visible := byte(0)
	if f.Cursor.Visible {
		visible = 1
	}
	return append(b, visible, f.Cursor.Shape)
}

// modeBits packs the modes that are on or off.
func modeBits(m term.Modes) byte {
	bits := byte(0)
	for i, on := range [...]bool{m.AltScreen, m.AppCursor, m.AppKeypad, m.Paste, m.Focus, m.MouseSGR} {
		if on {
			bits |= 1 << i
		}
	}
	return bits
}

func appendModes(b []byte, m term.Modes) []byte {
	b = append(b, modeBits(m), m.KittyFlags)
	return appendUint(b, int(m.Mouse))
}

func (p *parser) modes() term.Modes {
	bits := p.byte()
	return term.Modes{
		AltScreen: bits&1 != 0, AppCursor: bits&2 != 0, AppKeypad: bits&4 != 0,
		Paste: bits&8 != 0, Focus: bits&16 != 0, MouseSGR: bits&32 != 0,
		KittyFlags: p.byte(), Mouse: uint16(p.int(math.MaxUint16)),
	}
}

// appendLines appends as many lines as fit until b is long, at least one, a
// byte that says whether more follow, and gives the rest.
func appendLines(b []byte, lines []term.Line, long int) (_ []byte, rest []term.Line) {
	more := len(b)
	b = append(b, 0)
	for len(lines) > 0 {
		b = appendLine(append(b, 1), lines[0])
		lines = lines[1:]
		if len(b) > long {
			break
		}
	}
	b = append(b, 0)
	if len(lines) > 0 {
		b[more] = 1
	}
	return b, lines
}

func appendLine(b []byte, l term.Line) []byte {
	b = appendUint(b, l.Y)
	b = appendUint(b, len(l.Cells))
	for cells := l.Cells; len(cells) > 0; {
		n := 1
		plain := isASCII(cells[0])
		for n < len(cells) && cells[n].Style == cells[0].Style && isASCII(cells[n]) == plain {
			n++
		}
		b = appendRun(b, cells[:n], plain)
		cells = cells[n:]
	}
	return b
}

// isASCII reports whether one byte says all about a cell but its style.
func isASCII(c term.Cell) bool {
	return c.Width == 1 && (c.Text == "" || len(c.Text) == 1 && c.Text[0] > ' ' && c.Text[0] < 0x7f)
}

func appendRun(b []byte, cells []term.Cell, plain bool) []byte {
	style := cells[0].Style
	head := len(b)
	b = append(b, 0)
	b = appendColor(b, head, runFgShift, style.Fg)
	b = appendColor(b, head, runBgShift, style.Bg)
	if style.Attrs != 0 {
		b[head] |= runAttrs
		b = appendUint(b, int(style.Attrs))
	}
	b = appendUint(b, len(cells))
	if plain {
		b[head] |= runASCII
		for _, c := range cells {
			if c.Text == "" {
				b = append(b, ' ')
			} else {
				b = append(b, c.Text[0])
			}
		}
		return b
	}
	for _, c := range cells {
		b = appendUint(b, len(c.Text)<<2|int(c.Width&3))
		b = append(b, c.Text...)
	}
	return b
}

func appendColor(b []byte, head, shift int, c term.Color) []byte {
	if i, ok := c.Index(); ok {
		b[head] |= 1 << shift
		return append(b, i)
	}
	if red, green, blue, ok := c.Channels(); ok {
		b[head] |= 2 << shift
		return append(b, red, green, blue)
	}
	return b
}

func (p *parser) color(how byte) term.Color {
	switch how & 3 {
	case 0:
		return 0
	case 1:
		return term.Indexed(p.byte())
	case 2:
		c := p.bytes(3)
		if len(c) == 3 {
			return term.RGB(c[0], c[1], c[2])
		}
	default:
		p.fail("an unknown colour")
	}
	return 0
}

// lines takes lines with row numbers below rows, and whether more follow.
func (p *parser) lines(rows int) (lines []term.Line, more bool) {
	more = p.byte() == 1
	for p.byte() == 1 {
		if len(lines) >= rows {
			p.fail("more rows than there are")
			return nil, false
		}
		lines = append(lines, p.line(rows))
	}
	return lines, more
}

func (p *parser) line(rows int) term.Line {
	l := term.Line{Y: p.int(max(rows-1, 0))}
	n := p.int(maxCols)
	if n > 0 && p.err == nil {
		// A cell takes a byte at least: what is not there is not made.
		l.Cells = make([]term.Cell, 0, min(n, len(p.b)))
	}
	for len(l.Cells) < n && p.err == nil {
		l.Cells = p.run(l.Cells, n-len(l.Cells))
	}
	return l
}

// ascii holds every printable character, so that cells need no memory of
// their own.
const ascii = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

// run appends a run of at most room cells.
func (p *parser) run(cells []term.Cell, room int) []term.Cell {
	head := p.byte()
	style := term.Style{Fg: p.color(head >> runFgShift), Bg: p.color(head >> runBgShift)}
	if head&runAttrs != 0 {
		style.Attrs = term.Attrs(p.int(math.MaxUint16))
	}
	n := p.int(room)
	if n == 0 {
		p.fail("an empty run")
		return cells
	}
	if head&runASCII != 0 {
		for _, c := range p.bytes(n) {
			cell := term.Cell{Width: 1, Style: style}
			switch {
			case c < ' ' || c > '~':
				p.fail("text with control bytes")
				return cells
			case c > ' ':
				cell.Text = ascii[c-' ' : c-' '+1]
			}
			cells = append(cells, cell)
		}
		return cells
	}
	for range n {
		head := p.int(maxCell<<2 | 3)
		cell := term.Cell{Text: p.text(head >> 2), Width: uint8(head & 3), Style: style}
		if cell.Width > 2 {
			p.fail("a cell of width 3")
		}
		if p.err != nil {
			return cells
		}
		cells = append(cells, cell)
	}
	return cells
}

// assembler puts the messages of frames together again.
type assembler struct {
	now     term.Frame // what is known of the screen, without rows
	pending []term.Line
	whole   bool // of the frame whose messages are arriving
	begun   bool // a snapshot came
}

// take adds a message. It reports whether a frame is complete.
func (a *assembler) take(k kind, payload []byte) (term.Frame, bool, error) {
	p := &parser{b: payload}
	if k == kindMode {
		a.now.Modes = p.modes()
		return term.Frame{}, false, p.done()
	}
	if k == kindTitle {
		if len(payload) > maxTitle {
			p.fail("a title that is too long")
		}
		a.now.Title = p.text(len(p.b))
		return term.Frame{}, false, p.done()
	}
	a.head(p)
	if k == kindSnapshot {
		a.now.Cols, a.now.Rows = p.int(maxCols), p.int(maxRows)
		a.pending, a.whole, a.begun = nil, true, true
	}
	if !a.begun {
		return term.Frame{}, false, malformed("rows of an unknown screen")
	}
	more := false
	if k != kindCursor {
		var lines []term.Line
		lines, more = p.lines(a.now.Rows)
		a.pending = append(a.pending, lines...)
	}
	if len(a.pending) > a.now.Rows {
		p.fail("more rows than there are")
	}
	if a.now.Cursor.X > a.now.Cols || a.now.Cursor.Y > a.now.Rows {
		p.fail("a cursor outside the screen")
	}
	if err := p.done(); err != nil || more {
		return term.Frame{}, false, err
	}
	f := a.now
	f.Changed, f.Whole = a.pending, a.whole
	a.pending, a.whole = nil, false
	return f, true, nil
}

func (a *assembler) head(p *parser) {
	a.now.Seq = p.uint(math.MaxUint64)
	a.now.History = p.int(maxHistory)
	a.now.Cursor = term.Cursor{X: p.int(maxCols), Y: p.int(maxRows), Visible: p.byte() == 1, Shape: p.byte()}
}

// encodeHistory gives the message for rows of scrollback; rows that do not
// fit are left out.
func encodeHistory(h History) []byte {
	b := appendUint(begin(nil, kindHistory), h.From)
	b = appendUint(b, h.Total)
	b, _ = appendLines(b, h.Lines, splitAt)
	return end(b, 0)
}

func decodeHistory(payload []byte) (History, error) {
	p := &parser{b: payload}
	h := History{From: p.int(maxHistory), Total: p.int(maxHistory)}
	h.Lines, _ = p.lines(maxHistory)
	return h, p.done()
}
