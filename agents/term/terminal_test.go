package term

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func write(t *testing.T, term *Terminal, text string) {
	t.Helper()
	if n, err := term.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("Write(%q) = %d, %v", text, n, err)
	}
}

// replies takes all that is answered so far.
func replies(term *Terminal) string {
	var b strings.Builder
	for {
		select {
		case r := <-term.Replies():
			b.Write(r)
		default:
			return b.String()
		}
	}
}

func events(term *Terminal) []Event {
	var all []Event
	for {
		select {
		case e := <-term.Events():
			all = append(all, e)
		default:
			return all
		}
	}
}

func TestTextIsWhatTheProgramWrote(t *testing.T) {
	term := New(20, 4, 0)
	write(t, term, "hello\r\n  w\u00f6rld \x1b[31mred\x1b[m\r\n\u4f60\u597d|")
	if got, want := term.Text(), "hello\n  w\u00f6rld red\n\u4f60\u597d|"; got != want {
		t.Errorf("Text() = %q, want %q", got, want)
	}
	row := term.Snapshot().Changed[2].Cells
	want := []Cell{{Text: "\u4f60", Width: 2}, {}, {Text: "\u597d", Width: 2}, {}, {Text: "|", Width: 1}}
	if !slices.Equal(row, want) {
		t.Errorf("wide row = %+v, want %+v", row, want)
	}
}

func TestColoursAndAttributesReachTheCells(t *testing.T) {
	term := New(20, 2, 0)
	write(t, term, "\x1b[1;4;31ma\x1b[0;38;5;200mb\x1b[0;48;2;1;2;3mc\x1b[0;7;9;2;3md")
	want := []Style{
		{Fg: Indexed(1), Attrs: Bold | Underline},
		{Fg: Indexed(200)},
		{Bg: RGB(1, 2, 3)},
		{Attrs: Reverse | Strike | Faint | Italic},
	}
	for x, cell := range term.Snapshot().Changed[0].Cells {
		if cell.Style != want[x] {
			t.Errorf("cell %d = %+v, want %+v", x, cell.Style, want[x])
		}
	}
}

func TestSinceGivesOnlyRowsThatChanged(t *testing.T) {
	term := New(20, 5, 0)
	write(t, term, "one\r\ntwo\r\nthree")
	first := term.Snapshot()
	if !first.Whole || len(first.Changed) != 5 {
		t.Fatalf("snapshot: whole %v with %d rows", first.Whole, len(first.Changed))
	}
	if again := term.Since(first.Seq); again.Whole || len(again.Changed) != 0 || again.Seq != first.Seq {
		t.Errorf("nothing happened, yet Since gave %+v", again)
	}
	write(t, term, "\x1b[2;1HTWO")
	next := term.Since(first.Seq)
	if next.Whole || len(next.Changed) != 1 || next.Changed[0].Y != 1 || next.Changed[0].Text() != "TWO" {
		t.Errorf("after a change in row 1: %+v", next)
	}
	if next.Seq <= first.Seq {
		t.Errorf("Seq went from %d to %d", first.Seq, next.Seq)
	}
}

func TestAMovedCursorIsAChange(t *testing.T) {
	term := New(20, 5, 0)
	seq := term.Snapshot().Seq
	write(t, term, "\x1b[3;4H\x1b[5 q\x1b[?25l")
	f := term.Since(seq)
	if f.Seq == seq || f.Cursor != (Cursor{X: 3, Y: 2, Shape: 5}) {
		t.Errorf("cursor %+v at seq %d, was %d", f.Cursor, f.Seq, seq)
	}
}

func TestSinceIsWholeAfterAResizeOrForAnUnknownFrame(t *testing.T) {
	term := New(20, 5, 0)
	seq := term.Snapshot().Seq
	term.Resize(30, 7)
	if f := term.Since(seq); !f.Whole || f.Cols != 30 || f.Rows != 7 || len(f.Changed) != 7 {
		t.Errorf("after Resize: %+v", f)
	}
	if f := term.Since(term.Snapshot().Seq + 1000); !f.Whole {
		t.Error("a frame from the future was taken for known")
	}
}

// A viewer that applies every Since sees what a new viewer sees, whatever the
// program does.
func TestChangesAddUpToTheScreen(t *testing.T) {
	pieces := []string{
		"text \u4f60 e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467", "\r\n", "\n\n\n", "\x1b[H", "\x1b[2J", "\x1b[5;1H\x1b[L", "\x1b[M", "\x1b[3@", "\x1b[2P",
		"\x1b[2;4r", "\x1b[r", "\x1b[S", "\x1b[T", "\x1b[?1049h", "\x1b[?1049l", "\x1b[44m", "\x1b[m", "\x1b[K", "\x1b[1K", "\x1b[1J", "\x1bM", "\x1bc",
		"\x1b[?2026h", "\x1b[?2026l", "\t", "\b", "\x1b[20X", "\x1b[10b", "\x1b7", "\x1b8", "\x1b[6n", "\x1b[3J", "\x1b[999;999H",
	}
	random := rand.New(rand.NewPCG(1, 2))
	term := New(12, 6, 20)
	view := map[int]string{}
	var seq uint64
	for step := range 3000 {
		write(t, term, pieces[random.IntN(len(pieces))])
		if random.IntN(40) == 0 {
			term.Resize(2+random.IntN(30), 2+random.IntN(10))
		}
		if random.IntN(3) > 0 {
			continue
		}
		f := term.Since(seq)
		if f.Whole {
			clear(view)
		}
		for _, line := range f.Changed {
			view[line.Y] = fmt.Sprint(line.Cells)
		}
		seq = f.Seq
		for _, line := range term.Snapshot().Changed {
			if view[line.Y] != fmt.Sprint(line.Cells) {
				t.Fatalf("step %d, row %d: viewer has %s, screen %v", step, line.Y, view[line.Y], line.Cells)
			}
		}
		if f.Cursor.X >= f.Cols || f.Cursor.Y >= f.Rows {
			t.Fatalf("step %d: cursor %+v outside %dx%d", step, f.Cursor, f.Cols, f.Rows)
		}
	}
	if n := term.Stats().Panics; n > 0 {
		t.Errorf("the emulator broke %d times", n)
	}
}

// What is touched is trusted for speed: this finds a change that was not
// noted.
func TestNoChangeGoesUnnoticed(t *testing.T) {
	term := New(30, 8, 0)
	random := rand.New(rand.NewPCG(3, 4))
	for step := range 2000 {
		write(t, term, fmt.Sprintf("\x1b[%d%c%c", random.IntN(9), "ABCDEFGHIJKLMPSTXZ@`adefgbrm"[random.IntN(28)], 'a'+rune(random.IntN(26))))
		f := term.Snapshot()
		for _, line := range f.Changed {
			if real := term.emu.row(line.Y); !slices.Equal(real, line.Cells) {
				t.Fatalf("step %d, row %d: frame has %v, emulator %v", step, line.Y, line.Cells, real)
			}
		}
	}
}

func TestScrollbackCountsFromTheNewestRow(t *testing.T) {
	term := New(20, 3, 4)
	for i := range 10 {
		write(t, term, fmt.Sprintf("line %d\r\n", i))
	}
	// Rows on screen: 8, 9, empty. Above: 7, 6, 5, 4.
	lines := term.Scrollback(0, 100)
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l.Y, " ", l.Text()))
	}
	if want := []string{"0 line 7", "1 line 6", "2 line 5", "3 line 4"}; !slices.Equal(got, want) {
		t.Errorf("scrollback = %q, want %q", got, want)
	}
	if lines := term.Scrollback(3, 1); len(lines) != 1 || lines[0].Text() != "line 4" {
		t.Errorf("the oldest row = %+v", lines)
	}
	for _, bad := range [][2]int{{-1, 2}, {4, 1}, {0, 0}, {0, -5}} {
		if lines := term.Scrollback(bad[0], bad[1]); lines != nil {
			t.Errorf("Scrollback(%d, %d) = %v", bad[0], bad[1], lines)
		}
	}
	if h := term.Snapshot().History; h != 4 {
		t.Errorf("History = %d", h)
	}
}

func TestTheAlternateScreenKeepsNoScrollback(t *testing.T) {
	term := New(20, 3, 100)
	write(t, term, "\x1b[?1049h"+strings.Repeat("row\r\n", 50))
	if f := term.Snapshot(); f.History != 0 || !f.Modes.AltScreen {
		t.Errorf("history %d, alt %v", f.History, f.Modes.AltScreen)
	}
	if sb := term.emu.screens[1].Scrollback(); sb != nil {
		t.Error("the alternate screen still has a scrollback: x/vt's layout is not what screensOf expects")
	}
}

func TestErasingTheScrollbackLeavesTheScreen(t *testing.T) {
	term := New(20, 2, 100)
	write(t, term, "1\r\n2\r\n3\r\n4\x1b[3J")
	if got := term.Text(); got != "3\n4" {
		t.Errorf("screen after ED 3 = %q", got)
	}
	if h := term.Snapshot().History; h != 0 {
		t.Errorf("%d rows of scrollback after ED 3", h)
	}
}

func TestMarginsFromBeforeAShrinkBreakNothing(t *testing.T) {
	term := New(80, 40, 0)
	write(t, term, "\x1b[1;39r\x1b[40;80H\x1b7")
	term.Resize(80, 20)
	write(t, term, "\x1b[1;29r\x1b[20;1H\n\n\ntext\x1b[5L\x1b[5M\x1b8here\x1b[10;65535r\n\x1b[?69h\x1b[5;500s\x1b[65535@")
	if n := term.Stats().Panics; n != 0 {
		t.Errorf("the emulator broke %d times", n)
	}
}

func TestAFaultOfTheEmulatorCostsTheScreenNotTheProcess(t *testing.T) {
	term := New(20, 5, 0)
	term.emu.vt.RegisterCsiHandler('y', func(p ansiParams) bool { panic("broken") })
	write(t, term, "before\x1b[ylost")
	write(t, term, "after")
	if got := term.Text(); got != "after" {
		t.Errorf("screen = %q", got)
	}
	if n := term.Stats().Panics; n != 1 {
		t.Errorf("Panics = %d", n)
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	for ask, want := range map[string]string{
		"\x1b[c":                    "\x1b[?62;22c",
		"\x1b[>c":                   "\x1b[>1;10;0c",
		"\x1b[5n":                   "\x1b[0n",
		"ab\x1b[6n":                 "\x1b[1;3R",
		"\x1b[?6n":                  "\x1b[?1;1R",
		"\x1b[?u":                   "\x1b[?0u",
		"\x1b[>7u\x1b[?u":           "\x1b[?7u",
		"\x1b[>7u\x1b[<u\x1b[?u":    "\x1b[?0u",
		"\x1b[>0q":                  "\x1bP>|fletch\x1b\\",
		"\x1b[?2026$p":              "\x1b[?2026;2$y",
		"\x1b[?2004h\x1b[?2004$p":   "\x1b[?2004;1$y",
		"\x1b[?1016$p":              "\x1b[?1016;0$y",
		"\x1b]11;?\x1b\\":           "\x1b]11;rgb:0000/0000/0000\x1b\\",
		"\x1b]10;?\a":               "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\",
		"\x1b]4;1;?\a":              "\x1b]4;1;rgb:8080/0000/0000\x1b\\",
		"\x1b[18t":                  "\x1b[8;5;20t",
		"\x1bP+q4d73\x1b\\":         "\x1bP0+r4d73\x1b\\",
		"\x1bP$qm\x1b\\":            "\x1bP0$r\x1b\\",
		"\x1b]7501;?\a":             "\x1b]7501;?\a",
		"\x1b[14t\x1b[16t\x1b[=c":   "",
		"\x1b_Gi=31,a=q;AAAA\x1b\\": "",
		"\x1b]52;c;?\a":             "",
		"\x1b]9;4;1;50\a":           "",
	} {
		term := New(20, 5, 0)
		write(t, term, ask)
		if got := replies(term); got != want {
			t.Errorf("%q was answered with %q, want %q", ask, got, want)
		}
		if text := strings.TrimSpace(strings.ReplaceAll(term.Text(), "ab", "")); text != "" {
			t.Errorf("%q left %q on the screen", ask, text)
		}
	}
}

func TestAProgramThatReadsNoAnswersBlocksNothing(t *testing.T) {
	term := New(20, 5, 0)
	write(t, term, strings.Repeat("\x1b[c\x1b[6n\x1b[?2026$p\x1b[?2048h\x1b]11;?\a\x1b]2;title\a\a", 5000)+"alive")
	if !strings.Contains(term.Text(), "alive") {
		t.Error("the terminal did not go on")
	}
	stats := term.Stats()
	if stats.LostReplies == 0 || stats.LostEvents == 0 {
		t.Errorf("nothing was dropped: %+v", stats)
	}
}

func TestEventsCarryCleanText(t *testing.T) {
	long := strings.Repeat("\u00e9", 300)
	for in, want := range map[string][]Event{
		"\a":                                  {Bell{}},
		"\x1b]0;a;b\a":                        {Title{"a;b"}},
		"\x1b]2;x\u202ey\u0085z\a":            {Title{"xyz"}},
		"\x1b]2;" + long + "\a":               {Title{long[:256]}},
		"\x1b]9;done\nnow\a":                  {Notification{"donenow"}},
		"\x1b]777;notify;T;B\a":               {Notification{"T: B"}},
		"\x1b]777;other;T\a":                  nil,
		"\x1b]99;i=1:e=1;aGk=\a":              {Notification{"hi"}},
		"\x1b]99;i=1:p=?;\a":                  nil,
		"\x1b]7501;state=working:app=x\x1b\\": {Status{State: "working"}},
		"\x1b]7501;state=blocked:app=x:kind=permission:msg=b2s=\x07": {Status{"blocked", "permission", "ok"}},
		"\x1b]7501;state=allowed\a":                                  nil,
		"\x1b]7501;state=blocked:kind=evil\a":                        {Status{State: "blocked"}},
		"\x1b]7501;" + strings.Repeat("a", 5000) + ":state=done\a":   nil,
	} {
		term := New(20, 5, 0)
		write(t, term, in)
		if got := events(term); !slices.Equal(got, want) {
			t.Errorf("%.60q gave %+v, want %+v", in, got, want)
		}
	}
}

func TestTheNewestEventsAreKept(t *testing.T) {
	term := New(20, 5, 0)
	for i := range 500 {
		write(t, term, fmt.Sprintf("\x1b]7501;state=idle\a\x1b]2;%d\a", i))
	}
	all := events(term)
	if last := all[len(all)-1]; last != (Title{"499"}) {
		t.Errorf("last event = %+v", last)
	}
}

func TestCellsHoldNothingThatActs(t *testing.T) {
	term := New(80, 3, 0)
	write(t, term, "a\u202eb\u2066c\u200bd\u009be"+"x"+strings.Repeat("\u0301", 5000)+"\xff\xfe|")
	for _, line := range term.Snapshot().Changed {
		width := 0
		for _, c := range line.Cells {
			width += int(c.Width)
			if len(c.Text) > maxCellText {
				t.Errorf("a cell of %d bytes", len(c.Text))
			}
			for _, r := range c.Text {
				if hidden(r) {
					t.Errorf("cell %+q holds %U", c.Text, r)
				}
			}
		}
		if width > 80 {
			t.Errorf("row %d is %d wide", line.Y, width)
		}
	}
}

func TestAFrameInTheMakingIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := New(20, 2, 0)
		defer func() { _ = term.Close() }()
		write(t, term, "old")
		seq := term.Snapshot().Seq
		write(t, term, "\x1b[?2026h\x1b[2J\x1b[Hhalf")
		<-term.Changed()
		if f := term.Since(seq); len(f.Changed) != 0 {
			t.Errorf("half a frame was shown: %+v", f)
		}
		write(t, term, " whole\x1b[?2026l\x1b[?2026hnext")
		if got := term.Text(); got != "half whole" {
			t.Errorf("after the end of a frame that was waited for: %q", got)
		}
	})
}

func TestAFrameWithoutAnEndIsShownAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := New(20, 2, 0)
		defer func() { _ = term.Close() }()
		write(t, term, "\x1b[?2026hstuck")
		<-term.Changed()
		if got := term.Text(); got != "" {
			t.Fatalf("shown at once: %q", got)
		}
		began := time.Now()
		<-term.Changed()
		if waited := time.Since(began); waited > syncHold {
			t.Errorf("woken after %v", waited)
		}
		if got := term.Text(); got != "stuck" {
			t.Errorf("after %v: %q", syncHold, got)
		}
	})
}

func TestModesFollowTheProgram(t *testing.T) {
	term := New(20, 5, 0)
	write(t, term, "\x1b[?1;1002;1006;2004;1004h\x1b=\x1b[>5u")
	want := Modes{AppCursor: true, AppKeypad: true, Paste: true, Focus: true, Mouse: 1002, MouseSGR: true, KittyFlags: 5}
	if got := term.Modes(); got != want {
		t.Errorf("modes = %+v, want %+v", got, want)
	}
	write(t, term, "\x1b[?1002l\x1b[?2004l\x1b[?1049h")
	want.Mouse, want.Paste, want.AltScreen, want.KittyFlags = 0, false, true, 0
	if got := term.Modes(); got != want {
		t.Errorf("modes on the alternate screen = %+v, want %+v", got, want)
	}
	write(t, term, "\x1bc")
	if got := term.Modes(); got != (Modes{}) {
		t.Errorf("modes after a reset = %+v", got)
	}
}

func TestSizeIsBounded(t *testing.T) {
	for _, size := range [][2]int{{0, 0}, {-5, -5}, {1, 1}, {1 << 30, 1 << 30}} {
		term := New(size[0], size[1], -1)
		write(t, term, "\x1b[1;1r\x1b[2;1r\u4f60text\r\n\n\n")
		term.Resize(size[1], size[0])
		f := term.Snapshot()
		if f.Cols < 2 || f.Rows < 2 || f.Cols > 500 || f.Rows > 300 {
			t.Errorf("asked for %v, got %dx%d", size, f.Cols, f.Rows)
		}
	}
}

func TestAClosedTerminalStillShowsItsLastScreen(t *testing.T) {
	term := New(20, 5, 0)
	write(t, term, "the end")
	for range 2 {
		if err := term.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, term, "\x1b[c\a more")
	if got := term.Text(); got != "the end" {
		t.Errorf("Text() = %q", got)
	}
	if _, open := <-term.Replies(); open {
		t.Error("Replies is still open")
	}
}
