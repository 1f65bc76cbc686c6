package term

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds on a terminal's size. They keep the memory of one terminal and the
// size of one frame in hand, whatever a viewer asks for.
const (
	minCols, maxCols = 2, 500
	minRows, maxRows = 2, 300
)

// maxHistory bounds how many rows of scrollback a terminal keeps;
// defaultHistory is what it keeps when nothing is asked for.
const (
	maxHistory     = 2000
	defaultHistory = 1000
)

// syncHold is how long a frame is held back at most while the program says
// that it is still drawing (synchronized output, mode 2026).
const syncHold = 200 * time.Millisecond

// writeChunk is how much is fed to the emulator between two chances for a
// reader to look at the screen.
const writeChunk = 16 << 10

// Bounds on what waits for a reader of Replies and Events. The program can
// ask and tell faster than anybody reads.
const (
	maxReplies = 256
	maxEvents  = 64
)

// Terminal is a terminal without a window. Its methods may be called from any
// goroutine.
type Terminal struct {
	mu      sync.Mutex
	emu     *emulator
	history int
	closed  bool
	stats   Stats

	// The screen as readers last saw it. Lines in it are never changed, only
	// replaced, so frames share them.
	seq    uint64
	base   uint64 // frames older than this have another size
	lines  []screenLine
	cursor Cursor
	modes  Modes
	title  string
	above  int // rows of scrollback

	dirty    bool      // the emulator may show something else
	drawing  time.Time // since when the program is drawing a frame; zero: it is not
	awaited  bool      // a reader looked while the program was drawing
	overtime *time.Timer

	changed chan struct{}
	replies chan []byte
	events  chan Event
}

type screenLine struct {
	cells []Cell
	seq   uint64 // when it last changed
}

// Stats counts what a terminal gave up so as not to block or break.
type Stats struct {
	LostReplies uint64 // answers that the program did not read in time
	LostEvents  uint64 // events that nobody read in time; the newest are kept
	Panics      uint64 // faults of the emulator that were caught
}

// ClampSize is the size a terminal gets when asked for cols and rows: 2×2 at
// least, 500×300 at most.
func ClampSize(cols, rows int) (int, int) {
	return min(max(cols, minCols), maxCols), min(max(rows, minRows), maxRows)
}

// New makes a terminal of cols by rows cells, see [ClampSize], that keeps
// history rows of scrollback: 1000 when it is zero or less, 2000 at most.
func New(cols, rows, history int) *Terminal {
	cols, rows = ClampSize(cols, rows)
	if history <= 0 {
		history = defaultHistory
	}
	t := &Terminal{
		history: min(history, maxHistory),
		seq:     1,
		base:    1,
		changed: make(chan struct{}, 1),
		replies: make(chan []byte, maxReplies),
		events:  make(chan Event, maxEvents),
	}
	t.overtime = time.AfterFunc(time.Hour, t.wake)
	t.overtime.Stop()
	t.emu = newEmulator(cols, rows, t.history, t)
	t.lines = make([]screenLine, rows)
	t.commit()
	return t
}

// Write feeds the program's output to the terminal. It never blocks on what
// the program asked, never panics, and takes all of p; after Close it does
// nothing.
func (t *Terminal) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		chunk := rest[:min(len(rest), writeChunk)]
		rest = rest[len(chunk):]
		t.write(chunk)
	}
	t.wake()
	return len(p), nil
}

func (t *Terminal) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.dirty = true
	if !t.emu.write(p) {
		t.stats.Panics++
	}
}

// Resize gives the screen another size, see [ClampSize].
func (t *Terminal) Resize(cols, rows int) {
	cols, rows = ClampSize(cols, rows)
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, r := t.emu.size(); t.closed || c == cols && r == rows {
		return
	}
	if !t.emu.resize(cols, rows) {
		t.stats.Panics++
	}
	t.lines = make([]screenLine, rows)
	t.seq++
	t.base = t.seq
	t.dirty = true
	t.drawing = time.Time{}
	t.commit()
	t.wake()
}

// Snapshot is the whole screen.
func (t *Terminal) Snapshot() Frame { return t.Since(0) }

// Since is what changed after the frame seq: rows that changed, and the
// newest cursor, modes and title. It is Whole when seq is zero or unknown, or
// of another size. While the program draws a frame (mode 2026) it gives the
// screen as it was before, for 200 ms at most.
func (t *Terminal) Since(seq uint64) Frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	cols, rows := t.emu.size()
	f := Frame{
		Seq: t.seq, Cols: cols, Rows: rows, Cursor: t.cursor, Modes: t.modes, Title: t.title, History: t.above,
		Whole: seq < t.base || seq > t.seq,
	}
	for y, line := range t.lines {
		if f.Whole || line.seq > seq {
			f.Changed = append(f.Changed, Line{Y: y, Cells: line.cells})
		}
	}
	return f
}

// Scrollback gives up to n rows above the screen: row 0 is the newest one,
// the higher the older. Line.Y counts the same way. Nothing is given beyond
// what there is; see Frame.History.
func (t *Terminal) Scrollback(from, n int) []Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	total := t.emu.scrollback()
	if from < 0 || n <= 0 || from >= total {
		return nil
	}
	n = min(n, total-from)
	lines := make([]Line, 0, n)
	for i := from; i < from+n; i++ {
		lines = append(lines, Line{Y: i, Cells: t.emu.scrolled(i)})
	}
	return lines
}

// History is how many rows Scrollback can give.
func (t *Terminal) History() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.emu.scrollback()
}

// Text is the screen as plain text: one line per row, blanks at the ends of
// rows and empty rows at the end left out.
func (t *Terminal) Text() string {
	f := t.Snapshot()
	rows := make([]string, 0, len(f.Changed))
	for _, line := range f.Changed {
		rows = append(rows, line.Text())
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

// Text is the row as plain text without the blanks at its end.
func (l Line) Text() string {
	var b strings.Builder
	for _, c := range l.Cells {
		switch {
		case c.Text != "":
			b.WriteString(c.Text)
		case c.Width > 0:
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Modes are the modes as they are now; what is typed must be encoded by them.
func (t *Terminal) Modes() Modes {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.emu.modes()
}

// Stats says what was given up so far.
func (t *Terminal) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}

// Changed has room for one wake-up and gets one when Since may give
// something new. One reader is served; it must call Since until it has seen
// the newest frame, not once per wake-up.
func (t *Terminal) Changed() <-chan struct{} { return t.changed }

// Replies gives what the terminal answers to the program's questions, to be
// written to its input. Answers that nobody takes are dropped; Close closes
// the channel.
func (t *Terminal) Replies() <-chan []byte { return t.replies }

// Events gives what the program tells its terminal. When nobody reads, the
// oldest are dropped; Close closes the channel.
func (t *Terminal) Events() <-chan Event { return t.events }

// Close ends the terminal: Replies and Events are closed, Write does nothing
// any more, and the last screen can still be read.
func (t *Terminal) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	t.drawing = time.Time{}
	t.overtime.Stop()
	close(t.replies)
	close(t.events)
	return nil
}

func (t *Terminal) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// look takes over what the emulator shows, unless the program is in the
// middle of a frame.
func (t *Terminal) look() {
	if t.drawing.IsZero() {
		t.commit()
		return
	}
	left := syncHold - time.Since(t.drawing)
	if left <= 0 {
		t.commit()
		return
	}
	t.awaited = true
	t.overtime.Reset(left)
}

// draw is called by the emulator when the program begins or ends a frame.
// The end of a frame that a reader waited for is kept, since a program that
// draws without a pause may be in the next one when the reader comes back.
func (t *Terminal) draw(begin bool) {
	if begin {
		if t.drawing.IsZero() {
			t.drawing = time.Now()
		}
		return
	}
	t.drawing = time.Time{}
	if t.awaited {
		t.awaited = false
		t.overtime.Stop()
		t.commit()
		t.wake()
	}
}

// commit compares what the emulator shows with what readers know, and gives
// what changed a new number.
func (t *Terminal) commit() {
	if !t.dirty && t.lines[0].seq != 0 {
		return
	}
	t.dirty = false
	next := t.seq + 1
	for y := range t.lines {
		line := &t.lines[y]
		if line.seq != 0 && !t.emu.touched(y) {
			continue
		}
		cells := t.emu.row(y)
		if line.seq != 0 && slices.Equal(cells, line.cells) {
			continue
		}
		line.cells, line.seq = append([]Cell(nil), cells...), next // nil for an empty row
		t.seq = next
	}
	t.emu.untouch()
	cursor, modes, above := t.emu.cursor(), t.emu.modes(), t.emu.scrollback()
	if cursor != t.cursor || modes != t.modes || above != t.above || t.emu.title != t.title {
		t.cursor, t.modes, t.above, t.title = cursor, modes, above, t.emu.title
		t.seq = next
	}
}

// reply hands an answer to whoever writes to the program.
func (t *Terminal) reply(answer string) {
	if t.closed {
		return
	}
	select {
	case t.replies <- []byte(answer):
	default:
		t.stats.LostReplies++
	}
}

// tell hands an event on; the newest count, so the oldest makes room.
func (t *Terminal) tell(e Event) {
	for !t.closed {
		select {
		case t.events <- e:
			return
		default:
		}
		select {
		case <-t.events:
			t.stats.LostEvents++
		default:
		}
	}
}
