package attach

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fletch/agents/term"
)

// full is a frame in which everything there is occurs.
func full() term.Frame {
	t := term.New(120, 30, 0)
	for i := range 28 {
		for x := range 10 {
			_, _ = fmt.Fprintf(t, "\x1b[%d;38;2;%d;2;3;48;5;%dm%c\x1b[0m\u4f60e\u0301\U0001f468\u200d\U0001f469\u200d\U0001f467 ", 1+x%9, x, i%256, 'a'+x%26)
		}
		_, _ = t.Write([]byte("\r\n"))
	}
	_, _ = t.Write([]byte("\x1b]2;title\a\x1b[?1;2004;1003;1006h\x1b[>5u\x1b[3 q\x1b[17;21H"))
	return t.Snapshot()
}

// huge is the largest frame there can be.
func huge() term.Frame {
	f := term.Frame{Seq: 9, Cols: maxCols, Rows: maxRows, Whole: true}
	for y := range maxRows {
		l := term.Line{Y: y}
		for x := range maxCols {
			style := term.Style{Fg: term.RGB(byte(x), byte(y), 1), Bg: term.RGB(1, 2, 3), Attrs: term.Bold}
			l.Cells = append(l.Cells, term.Cell{Text: strings.Repeat("\U0001f468", maxCell/4), Width: 1, Style: style})
		}
		f.Changed = append(f.Changed, l)
	}
	return f
}

func decode(t *testing.T, a *assembler, b []byte) term.Frame {
	t.Helper()
	in := reader{from: bytes.NewReader(b)}
	for {
		k, payload, err := in.next()
		if err != nil {
			t.Fatal(err)
		}
		f, complete, err := a.take(k, payload)
		if err != nil {
			t.Fatal(err)
		}
		if complete {
			if in.start != in.end {
				t.Fatalf("%d bytes behind the frame", in.end-in.start)
			}
			return f
		}
	}
}

func TestAFrameSurvivesTheWire(t *testing.T) {
	want := full()
	var e frameEncoder
	var a assembler
	b := slices.Clone(e.encode(want))
	if got := decode(t, &a, b); !reflect.DeepEqual(got, want) {
		t.Fatalf("a frame of %d bytes came back different", len(b))
	}
	want.Whole, want.Changed, want.Seq = false, want.Changed[3:5], want.Seq+1
	if got := decode(t, &a, e.encode(want)); !reflect.DeepEqual(got, want) {
		t.Errorf("changed rows came back as %+v", got)
	}
	want.Changed, want.Title, want.Modes.AltScreen, want.Cursor.Visible = nil, "other", true, false
	if got := decode(t, &a, e.encode(want)); !reflect.DeepEqual(got, want) {
		t.Errorf("a moved cursor came back as %+v", got)
	}
}

func TestTheLargestFrameIsSplit(t *testing.T) {
	f := huge()
	var e frameEncoder
	b := e.encode(f)
	if len(b) <= maxMessage {
		t.Fatalf("the frame has only %d bytes", len(b))
	}
	var a assembler
	if got := decode(t, &a, b); !reflect.DeepEqual(got, f) {
		t.Error("it came back different")
	}
}

func TestAKeptFrameCanBeRead(t *testing.T) {
	want := full()
	path := filepath.Join(t.TempDir(), "last.frame")
	for range 2 {
		if err := WriteFrame(path, want); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	got, err := ReadFrame(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("it came back different: %v", err)
	}
	whole := encodeWhole(want)
	for _, n := range []int{0, 1, 5, 20, len(whole) / 2, len(whole) - 1} {
		if _, err := decodeFrame(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("the first %d of %d bytes were taken for a frame", n, len(whole))
		}
	}
	if _, err := ReadFrame(path + "-not"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestTextFromAKeeperCannotActOnATerminal(t *testing.T) {
	for _, text := range []string{"\x1b[2J", "\u009b2J", "\xff", "\a"} {
		f := term.Frame{Cols: 10, Rows: 1, Changed: []term.Line{{Cells: []term.Cell{{Text: text, Width: 2}, {}}}}}
		if _, err := decodeFrame(bytes.NewReader(encodeWhole(f))); !errors.Is(err, errMalformed) {
			t.Errorf("a cell of %q: %v", text, err)
		}
		f.Changed, f.Title = nil, text
		if _, err := decodeFrame(bytes.NewReader(encodeWhole(f))); !errors.Is(err, errMalformed) {
			t.Errorf("a title of %q: %v", text, err)
		}
	}
}

// Whatever a peer sends is a message, a fault, or not enough of either, and
// costs no more memory than it has bytes.
func FuzzFrames(f *testing.F) {
	small := term.New(10, 3, 0)
	_, _ = small.Write([]byte("a\u4f60\x1b[31mred"))
	f.Add(encodeWhole(small.Snapshot()))
	f.Add(encodeHistory(History{From: 2, Total: 4, Lines: []term.Line{{Y: 2, Cells: []term.Cell{{Text: "x", Width: 1}}}}}))
	f.Add(message(kindNews, []byte(`{"kind":"status"}`)))
	f.Add([]byte{0, 0x10, 0, 0, 3, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &Conn{in: reader{from: bytes.NewReader(b)}}
		for {
			m, err := c.next()
			if len(c.in.buf) > 2*len(b)+8192 {
				t.Fatalf("%d bytes of buffer for %d bytes", len(c.in.buf), len(b))
			}
			if err != nil {
				return
			}
			if frame, ok := m.(FrameMsg); ok {
				checkFrame(t, frame.Frame)
			}
		}
	})
}

func checkFrame(t *testing.T, f term.Frame) {
	t.Helper()
	if f.Cols > maxCols || f.Rows > maxRows || len(f.Changed) > f.Rows {
		t.Fatalf("a frame of %dx%d with %d rows", f.Cols, f.Rows, len(f.Changed))
	}
	for _, l := range f.Changed {
		if l.Y >= f.Rows {
			t.Fatalf("row %d of %d", l.Y, f.Rows)
		}
		for _, c := range l.Cells {
			if !showable(c.Text) {
				t.Fatalf("a cell of %q", c.Text)
			}
		}
	}
}

// What a viewer sends breaks no server.
func FuzzViewer(f *testing.F) {
	f.Add(slices.Concat(message(kindInput, []byte("x")), message(kindResize, []byte{80, 24}), message(kindSeen, nil)))
	f.Add(slices.Concat(message(kindHistory, []byte{0, 10}), message(kindSignal, []byte("TERM")), message(kindPaste, []byte("\x1b[201~"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		terminal := term.New(10, 3, 0)
		p := &quiet{}
		v := &viewer{server: NewServer(terminal, p), wake: make(chan struct{}, 1)}
		v.read(&reader{from: bytes.NewReader(b)})
		if len(v.history) > maxQueued {
			t.Fatalf("%d questions queued", len(v.history))
		}
	})
}

type quiet struct{}

func (*quiet) Input([]byte)    {}
func (*quiet) Resize(int, int) {}
func (*quiet) Signal(string)   {}
