package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fletch/agents/term"
)

func TestMain(m *testing.M) {
	if dialFromElsewhere() {
		return
	}
	goleak.VerifyTestMain(m)
}

// program notes what viewers do.
type program struct {
	terminal *term.Terminal
	typed    chan string
	signals  chan string
}

func (p *program) Input(b []byte)        { p.typed <- string(b) }
func (p *program) Resize(cols, rows int) { p.terminal.Resize(cols, rows) }
func (p *program) Signal(name string)    { p.signals <- name }

type world struct {
	*testing.T
	program  *program
	terminal *term.Terminal
	server   *Server
	socket   string
}

// serve starts a server that ends with the test.
func serve(t *testing.T) *world {
	t.Helper()
	terminal := term.New(40, 10, 100)
	w := &world{
		T: t, terminal: terminal, socket: filepath.Join(t.TempDir(), "k.sock"),
		program: &program{terminal, make(chan string, 100), make(chan string, 100)},
	}
	w.server = NewServer(terminal, w.program)
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		_ = terminal.Close()
	})
	return w
}

func (w *world) dial(h Hello) *Conn {
	w.Helper()
	h.Protocol = Protocol
	if h.Role == "" {
		h.Role = RoleViewer
	}
	c, err := Dial(w.Context(), w.socket, h)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) write(text string) {
	if _, err := w.terminal.Write([]byte(text)); err != nil {
		w.Error(err)
	}
}

// screen is what a viewer has put together from its frames.
type screen struct {
	frame term.Frame
	rows  map[int]string
}

func (s *screen) apply(f term.Frame) {
	if f.Whole {
		s.rows = map[int]string{}
	}
	for _, l := range f.Changed {
		s.rows[l.Y] = l.Text()
	}
	s.frame = f
}

// until applies frames until the screen is as wanted.
func (s *screen) until(t *testing.T, c *Conn, done func(*screen) bool) {
	t.Helper()
	for s.rows == nil || !done(s) {
		m, err := c.Next(t.Context())
		if err != nil {
			t.Fatalf("waiting for a frame: %v; have %v", err, s.rows)
		}
		if f, ok := m.(FrameMsg); ok {
			s.apply(f.Frame)
		}
	}
}

func row(y int, text string) func(*screen) bool {
	return func(s *screen) bool { return s.rows[y] == text }
}

func TestAViewerSeesTheScreenAndWhatChanges(t *testing.T) {
	w := serve(t)
	w.write("\x1b]2;title\a\x1b[?2004hold\r\n")
	c := w.dial(Hello{})
	var s screen
	s.until(t, c, row(0, "old"))
	if !s.frame.Whole || s.frame.Title != "title" || !s.frame.Modes.Paste || s.frame.Cols != 40 || s.frame.Rows != 10 {
		t.Errorf("first frame = %+v", s.frame)
	}
	w.write("new\x1b]2;other\a")
	s.until(t, c, row(1, "new"))
	if s.frame.Whole || len(s.frame.Changed) != 1 || s.frame.Title != "other" || !s.frame.Modes.Paste || s.frame.Cursor.X != 3 {
		t.Errorf("next frame = %+v", s.frame)
	}
	w.write("\x1b[5;5H")
	s.until(t, c, func(s *screen) bool { return s.frame.Cursor == term.Cursor{X: 4, Y: 4, Visible: true} })
}

func TestWhatAViewerDoesReachesTheProgram(t *testing.T) {
	w := serve(t)
	c := w.dial(Hello{})
	for _, err := range []error{c.Input([]byte("ls\r")), c.Paste("a\nb"), c.Signal("INT")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := <-w.program.typed; got != "ls\r" {
		t.Errorf("typed %q", got)
	}
	if got := <-w.program.typed; got != "a\rb" {
		t.Errorf("pasted %q", got)
	}
	if got := <-w.program.signals; got != "INT" {
		t.Errorf("signal %q", got)
	}
	w.write("\x1b[?2004h")
	if err := c.Paste("a\nb"); err != nil {
		t.Fatal(err)
	}
	if got := <-w.program.typed; got != "\x1b[200~a\nb\x1b[201~" {
		t.Errorf("pasted %q with brackets on", got)
	}
	if err := c.Signal("STOP"); err == nil {
		t.Error("any signal can be sent")
	}
	if err := c.Paste(strings.Repeat("x", maxMessage+1)); err == nil {
		t.Error("a paste of any size can be sent")
	}
}

func TestOnlyAskingChangesTheSize(t *testing.T) {
	w := serve(t)
	var first, second screen
	a := w.dial(Hello{Cols: 60, Rows: 20})
	first.until(t, a, func(s *screen) bool { return s.frame.Cols == 60 && s.frame.Rows == 20 })
	b := w.dial(Hello{})
	second.until(t, b, func(*screen) bool { return true })
	if second.frame.Cols != 60 {
		t.Errorf("looking made it %d wide", second.frame.Cols)
	}
	if err := b.Resize(70, 5); err != nil {
		t.Fatal(err)
	}
	first.until(t, a, func(s *screen) bool { return s.frame.Cols == 70 && s.frame.Rows == 5 })
	if !first.frame.Whole {
		t.Error("a frame of another size is not whole")
	}
}

func TestHistoryIsGivenWhenAsked(t *testing.T) {
	w := serve(t)
	for i := range 50 {
		w.write(fmt.Sprintf("line %d\r\n", i))
	}
	c := w.dial(Hello{})
	if err := c.AskHistory(1, 2); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h, ok := m.(History)
		if !ok {
			continue
		}
		// Rows 41 to 49 and an empty one are on the screen.
		if h.From != 1 || h.Total != 41 || len(h.Lines) != 2 || h.Lines[0].Text() != "line 39" || h.Lines[0].Y != 1 || h.Lines[1].Text() != "line 38" {
			t.Errorf("history = %+v", h)
		}
		return
	}
}

func TestAViewerThatNeverReadsDelaysNobody(t *testing.T) {
	w := serve(t)
	w.dial(Hello{}) // never calls Next
	c := w.dial(Hello{})
	var s screen
	for i := range 2000 {
		w.write(fmt.Sprintf("\x1b[H%s %d", strings.Repeat("x", 30), i))
	}
	s.until(t, c, row(0, strings.Repeat("x", 30)+" 1999"))
}

func TestAViewerThatComesBackSeesTheNewestFrame(t *testing.T) {
	w := serve(t)
	away, here := w.dial(Hello{}), w.dial(Hello{})
	var s, other screen
	s.until(t, away, row(0, ""))
	// While one is away the other sees many frames come and go.
	for i := range 12 {
		w.write(fmt.Sprintf("\x1b[H\x1b[Kcount %d", i))
		other.until(t, here, row(0, fmt.Sprintf("count %d", i)))
	}
	frames := 0
	s.until(t, away, func(s *screen) bool {
		frames++
		return s.rows[0] == "count 11"
	})
	// One was on its way when it left.
	if frames > 3 {
		t.Errorf("%d frames were queued", frames-1)
	}
}

func TestTwentyViewersSeeTheSameScreen(t *testing.T) {
	w := serve(t)
	var all sync.WaitGroup
	for range 20 {
		c := w.dial(Hello{})
		all.Go(func() {
			var s screen
			s.until(t, c, row(9, "last"))
		})
	}
	for i := range 300 {
		w.write(fmt.Sprintf("some line %d\r\n", i))
	}
	w.write("last")
	all.Wait()
}

func TestAHubGetsNewsAndNoFrames(t *testing.T) {
	w := serve(t)
	w.server.Publish(News{Kind: NewsAttested, Facts: []Fact{{"net", "private", "observed"}}})
	w.server.Publish(News{Kind: NewsStatus, Status: "working"})
	w.server.Publish(News{Kind: NewsBlocked, Text: "evil.example:443"})
	w.server.Publish(News{Kind: NewsStatus, Status: "idle"})
	w.server.Publish(News{Kind: NewsBell})
	hub := w.dial(Hello{Role: RoleHub})
	w.write("something to see")
	want := []string{"attested", "status idle", "blocked evil.example:443", "notify hello"}
	var got []string
	for len(got) < len(want) {
		m, err := hub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n, ok := m.(News)
		if !ok {
			t.Fatalf("a hub got %T", m)
		}
		got = append(got, strings.TrimSpace(n.Kind+" "+n.Status+n.Text))
		if len(got) == 3 {
			w.server.Publish(News{Kind: NewsNotify, Text: "hello"})
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("news = %q, want %q", got, want)
	}
}

func TestTheEndReachesEveryViewerBehindTheLastFrame(t *testing.T) {
	w := serve(t)
	c, hub := w.dial(Hello{}), w.dial(Hello{Role: RoleHub})
	slow := w.dial(Hello{})
	w.write("famous last words")
	w.server.Farewell(Exit{Code: 3, Reason: "why"})
	for name, c := range map[string]*Conn{"viewer": c, "hub": hub, "slow": slow} {
		var s screen
		for {
			m, err := c.Next(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if f, ok := m.(FrameMsg); ok {
				s.apply(f.Frame)
				continue
			}
			if e, ok := m.(Exit); !ok || e.Code != 3 || e.Reason != "why" {
				t.Errorf("%s: %+v", name, m)
			}
			break
		}
		if name != "hub" && s.rows[0] != "famous last words" {
			t.Errorf("%s saw %q at the end", name, s.rows[0])
		}
		for range 2 {
			if _, err := c.Next(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("%s: after the end: %v", name, err)
			}
		}
	}
	if _, err := Dial(t.Context(), w.socket, Hello{Protocol: Protocol, Role: RoleViewer}); err == nil {
		t.Error("one can still connect")
	}
}

func TestNextCanBeCalledAgainAfterItsContextEnded(t *testing.T) {
	w := serve(t)
	c := w.dial(Hello{})
	var s screen
	s.until(t, c, func(*screen) bool { return true })
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Next(ctx)
		waiting <- err
	}()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Fatalf("Next: %v", err)
	}
	w.write("still there")
	s.until(t, c, row(0, "still there"))
}

func TestVersionsAreAgreedOrRefusedInWords(t *testing.T) {
	w := serve(t)
	if c, err := Dial(t.Context(), w.socket, Hello{Protocol: Protocol + 1, Role: RoleViewer}); err != nil || c.protocol != Protocol {
		t.Errorf("one version newer: %v", err)
	} else {
		_ = c.Close()
	}
	for version, word := range map[int]string{Protocol + 2: "protocol-too-new", 0: "protocol-too-old", -1: "protocol-too-old"} {
		_, err := Dial(t.Context(), w.socket, Hello{Protocol: version, Role: RoleViewer})
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code() != word || refusal.Hint() == "" {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestOtherBeginningsAreRefused(t *testing.T) {
	w := serve(t)
	hello, err := jsonMessage(kindHello, Hello{Protocol: Protocol, Role: "king"})
	if err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string][]byte{
		"another role":  hello,
		"no hello":      message(kindInput, []byte("rm -rf /\r")),
		"no JSON":       message(kindHello, []byte("{")),
		"HTTP":          []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"a huge length": {0xff, 0xff, 0xff, 0xff, 1},
	} {
		conn, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(bytes); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn)
		if len(all) < headerSize || kind(all[4]) != kindRefusal {
			t.Errorf("%s: answered with %q, %v", name, all, err)
		}
		_ = conn.Close()
	}
	if len(w.program.typed) > 0 {
		t.Errorf("something was typed: %q", <-w.program.typed)
	}
}

func TestAViewerThatTalksNonsenseIsLeft(t *testing.T) {
	w := serve(t)
	for name, bytes := range map[string][]byte{
		"an unknown kind":   message(200, nil),
		"a resize of bytes": message(kindResize, []byte{1}),
		"a signal":          message(kindSignal, []byte("HUP")),
	} {
		c := w.dial(Hello{})
		if err := c.send(bytes); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := c.Next(t.Context()); err != nil {
				if t.Context().Err() != nil {
					t.Errorf("%s: still connected", name)
				}
				break
			}
		}
	}
}

func TestFramesComeAtABoundedRate(t *testing.T) {
	w := serve(t)
	c := w.dial(Hello{})
	var s screen
	s.until(t, c, func(*screen) bool { return true })
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				w.write(fmt.Sprintf("\x1b[Hcount %d", i))
			}
		}
	})
	began := time.Now()
	const frames = 10
	for range frames {
		if _, err := c.Next(t.Context()); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	writing.Wait()
	// The first may come at once, every other one an interval after.
	if took, least := time.Since(began), (frames-2)*frameInterval; took < least {
		t.Errorf("%d frames in %v, faster than %v", frames, took, least)
	}
}

func TestWhoTypesIntoFlowingOutputSeesTheEchoSoon(t *testing.T) {
	w := serve(t)
	v := &viewer{server: w.server, role: RoleViewer, dirty: true, wake: make(chan struct{}, 1)}
	now := time.Now()
	if todo, wait := v.take(now); todo.frame || wait <= echoInterval {
		t.Errorf("without typing: frame %v, wait %v", todo.frame, wait)
	}
	if err := v.serve(kindInput, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if todo, wait := v.take(time.Now()); todo.frame || wait > echoInterval {
		t.Errorf("after typing: frame %v, wait %v", todo.frame, wait)
	}
	if todo, _ := v.take(now.Add(-frameInterval)); !todo.frame {
		t.Error("after an interval: no frame")
	}
}
