package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fletch/agents/attach"
	"fletch/home"
	"fletch/sandbox"
	"fletch/sandbox/enginetest"
)

func TestMain(m *testing.M) {
	if actAs() {
		return
	}
	goleak.VerifyTestMain(m)
}

// patience bounds a wait that should not be long: a loaded machine is no fault.
const patience = time.Minute

// world is a FLETCH_HOME with one agent in it.
type world struct {
	testing.TB
	home   home.Home
	order  Order
	engine *enginetest.Fake
	stop   context.CancelFunc
	ended  chan error
}

// prepare makes an order that runs script.
func prepare(t testing.TB, script string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "k") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := home.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	return &world{
		TB: t, home: h, engine: enginetest.New(), ended: make(chan error, 1),
		order: Order{
			Agent: "abcdefgh", Home: h.Dir(), Engine: "fake", Status: StatusRules{Mode: ModeShell},
			Spec: sandbox.Spec{
				Agent: "abcdefgh", Store: "test", Argv: []string{"sh", "-c", script}, Dir: work,
				Env:      []string{"PATH=/usr/bin:/bin", "TERM=xterm-256color", "HOME=" + work, "SECRET=hunter2"},
				Mounts:   []sandbox.Mount{{Source: work, Write: true}},
				Terminal: &sandbox.Size{Cols: 80, Rows: 24},
			},
		},
	}
}

// run starts the keeper and waits until the agent runs.
func (w *world) run() *world {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	ready := make(chan struct{})
	over := make(chan struct{})
	go func() {
		w.ended <- Run(ctx, w.order, w.engine, func() { close(ready) })
		close(over)
	}()
	w.Cleanup(func() {
		for _, b := range w.engine.Boxes() {
			_ = b.Signal(os.Kill)
		}
		cancel()
		<-over
	})
	select {
	case <-ready:
	case <-over:
		w.Fatalf("it did not start: %v", <-w.ended)
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.home.Run(w.order.Agent), name) }

// exit waits for the end and reads how it was.
func (w *world) exit() exitFile {
	w.Helper()
	if err := <-w.ended; err != nil {
		w.Fatalf("Run: %v", err)
	}
	return w.exitFile()
}

func (w *world) exitFile() exitFile {
	w.Helper()
	var e exitFile
	w.read("exit.json", &e)
	return e
}

func (w *world) read(name string, into any) {
	w.Helper()
	raw, err := os.ReadFile(w.path(name))
	if err != nil {
		w.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		w.Fatalf("%s: %v in %s", name, err, raw)
	}
}

func (w *world) transcript() string {
	w.Helper()
	old, err := os.ReadFile(w.path("transcript.1"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	raw, err := os.ReadFile(w.path("transcript"))
	if err != nil {
		w.Fatal(err)
	}
	return string(old) + string(raw)
}

func (w *world) dial(role string) *attach.Conn {
	w.Helper()
	c, err := attach.Dial(w.Context(), w.home.KeeperSocket(w.order.Agent), attach.Hello{Protocol: attach.Protocol, Role: role})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// until reads messages until one is as wanted.
func until(t *testing.T, c *attach.Conn, wanted func(attach.Message) bool) attach.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		m, err := c.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for a message: %v", err)
		}
		if wanted(m) {
			return m
		}
	}
}

// shows waits until a row of the screen holds text.
func shows(t *testing.T, c *attach.Conn, text string) {
	t.Helper()
	until(t, c, func(m attach.Message) bool {
		f, ok := m.(attach.FrameMsg)
		if !ok {
			return false
		}
		for _, l := range f.Changed {
			if strings.Contains(l.Text(), text) {
				return true
			}
		}
		return false
	})
}

func status(want string) func(attach.Message) bool {
	return func(m attach.Message) bool {
		n, ok := m.(attach.News)
		return ok && n.Kind == attach.NewsStatus && n.Status == want
	}
}

func TestHowAProgramEndedIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   exitFile
	}{
		"by itself":       {"exit 0", exitFile{}},
		"with a code":     {"exit 7", exitFile{Code: 7}},
		"by a signal":     {"kill -KILL $$", exitFile{Code: 137, Signal: "killed"}},
		"by another one":  {"kill -TERM $$", exitFile{Code: 143, Signal: "terminated"}},
		"in a child only": {"sh -c 'kill -KILL $$'; exit 3", exitFile{Code: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got := prepare(t, c.script).run().exit()
			if got.Code != c.want.Code || got.Signal != c.want.Signal || got.Reason != "" {
				t.Errorf("exit = %+v, want %+v", got, c.want)
			}
			if got.At.IsZero() || got.BootID != bootID() {
				t.Errorf("at %v in boot %q", got.At, got.BootID)
			}
		})
	}
}

func TestAProgramThatCannotStartIsAnErrorAndOnRecord(t *testing.T) {
	w := prepare(t, "")
	w.order.Spec.Argv = []string{"no-such-program"}
	err := Run(t.Context(), w.order, w.engine, func() { t.Error("it is ready") })
	if err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("Run: %v", err)
	}
	if e := w.exitFile(); e.Code != codeNeverRan || !strings.Contains(e.Reason, "no-such-program") {
		t.Errorf("exit = %+v", e)
	}
	if _, err := net.Dial("unix", w.home.KeeperSocket(w.order.Agent)); err == nil {
		t.Error("somebody answers")
	}
}

func TestOrdersThatMakeNoSenseAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Order){
		"an agent that is a path": func(o *Order) { o.Agent = "../../etc" },
		"no agent":                func(o *Order) { o.Agent = "" },
		"no terminal":             func(o *Order) { o.Spec.Terminal = nil },
		"nothing to run":          func(o *Order) { o.Spec.Argv = nil },
		"no status mode":          func(o *Order) { o.Status.Mode = "" },
		"a broken title rule":     func(o *Order) { o.Status.Titles = []TitleRule{{"(", working}} },
		"a title rule for allow":  func(o *Order) { o.Status.Titles = []TitleRule{{"x", "allowed"}} },
		"a broken network rule":   func(o *Order) { o.Rules = []string{"https://x/y z"} },
		"a home that is relative": func(o *Order) { o.Home = "home" },
		"a transcript below zero": func(o *Order) { o.TranscriptCap = -1 },
	} {
		w := prepare(t, "exit 0")
		change(&w.order)
		if err := Run(t.Context(), w.order, w.engine, func() {}); err == nil {
			t.Errorf("%s was taken", name)
		}
		if specs := w.engine.Specs(); len(specs) > 0 {
			t.Errorf("%s was started", name)
		}
	}
}

func TestAllOutputIsKeptThoughAViewerNeverReads(t *testing.T) {
	// 300 KB, and their checksum as the program sees it.
	w := prepare(t, `read go
		awk 'BEGIN { for (i = 0; i < 4000; i++) printf "%07d %s\n", i, "sixty-five characters to make a line of text that is long enough" }' >out
		stty -opost; cat out; sha256sum out | cut -c1-64 >sum`)
	w.order.Spec.Env = append(w.order.Spec.Env, "LC_ALL=C")
	w.run()
	silent := w.dial(attach.RoleViewer)
	if err := silent.Input([]byte("go\r")); err != nil {
		t.Fatal(err)
	}
	if e := w.exit(); e.Code != 0 {
		t.Fatalf("exit = %+v", e)
	}
	sum, err := os.ReadFile(filepath.Join(w.order.Spec.Dir, "sum"))
	if err != nil {
		t.Fatal(err)
	}
	all := w.transcript()
	at := strings.Index(all, "0000000 ")
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(all[max(at, 0):]))); got != strings.TrimSpace(string(sum)) {
		t.Errorf("the transcript of %d bytes has sum %s, the output %s", len(all), got, sum)
	}
}

func TestTheTranscriptIsPrivateAndKeepsItsTail(t *testing.T) {
	w := prepare(t, `i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done`)
	w.order.TranscriptCap = 8 << 10
	w.run().exit()
	all := w.transcript()
	if len(all) > 8<<10 || len(all) < 4<<10 {
		t.Errorf("%d bytes are kept of a cap of %d", len(all), 8<<10)
	}
	want := ""
	for i := range 3000 {
		want += fmt.Sprintf("line %d\r\n", i)
	}
	if !strings.HasSuffix(want, all) {
		t.Errorf("what is kept is not the end of the output: …%.60q", all[max(0, len(all)-60):])
	}
	for _, name := range []string{"transcript", "transcript.1", "exit.json", "spec.json", "last.frame", "keeper.log", "attestation.json"} {
		if info, err := os.Stat(w.path(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestTheNextKeeperAppendsToTheTranscript(t *testing.T) {
	w := prepare(t, "echo once")
	w.run().exit()
	w.order.Spec.Argv[2] = "echo twice"
	w.run().exit()
	if got := w.transcript(); got != "once\r\ntwice\r\n" {
		t.Errorf("transcript = %q", got)
	}
}

func TestNoValueOfTheEnvironmentReachesTheDisk(t *testing.T) {
	w := prepare(t, "exit 0")
	w.order.Spec.Files = []sandbox.File{{Target: "/run/x", Content: []byte("hunter3")}}
	w.run().exit()
	names := false
	err := filepath.WalkDir(w.home.Dir(), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "hunter") {
			t.Errorf("%s holds a secret", path)
		}
		names = names || strings.Contains(string(raw), `"SECRET"`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !names {
		t.Error("spec.json does not name the variable")
	}
}

func TestTheLastScreenIsKept(t *testing.T) {
	w := prepare(t, `printf '\033[?2026hthe end'`).run()
	w.exit()
	f, err := attach.ReadFrame(w.path("last.frame"))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Changed[0].Text(); got != "the end" || f.Cols != 80 || f.Rows != 24 {
		t.Errorf("last frame of %dx%d begins with %q", f.Cols, f.Rows, got)
	}
}

func TestViewersHearTheEndAfterItIsOnRecord(t *testing.T) {
	w := prepare(t, "read x; echo bye; exit 5").run()
	c, hub := w.dial(attach.RoleViewer), w.dial(attach.RoleHub)
	if err := c.Input([]byte("\r")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*attach.Conn{c, hub} {
		m := until(t, c, func(m attach.Message) bool { _, ok := m.(attach.Exit); return ok })
		if e := m.(attach.Exit); e.Code != 5 {
			t.Errorf("exit = %+v", e)
		}
		if e := w.exitFile(); e.Code != 5 {
			t.Errorf("on record: %+v", e)
		}
	}
}

func TestTypingAndResizingReachTheProgram(t *testing.T) {
	w := prepare(t, `echo ready; while read x; do [ "$x" = size ] && stty size; echo "<$x>"; done`).run()
	c := w.dial(attach.RoleViewer)
	shows(t, c, "ready")
	if err := c.Input([]byte("hello\r")); err != nil {
		t.Fatal(err)
	}
	shows(t, c, "<hello>")
	if err := errors.Join(c.Resize(101, 33), c.Input([]byte("size\r"))); err != nil {
		t.Fatal(err)
	}
	shows(t, c, "33 101")
}

func TestWhatTheTerminalAnswersReachesTheProgram(t *testing.T) {
	w := prepare(t, `stty raw -echo; printf '\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c`).run()
	w.exit()
	if got := w.transcript(); !strings.Contains(got, "033   [   1   ;   1   R") {
		t.Errorf("the program read %q", got)
	}
}

func TestAProgramThatNeverReadsCanStillBeWatchedAndStopped(t *testing.T) {
	w := prepare(t, `stty raw -echo; echo ready; while :; do printf '\033[c'; sleep 0.01; done`).run()
	c := w.dial(attach.RoleViewer)
	shows(t, c, "ready")
	// Engines that use creack/pty make the descriptor block here.
	if err := c.Resize(90, 30); err != nil {
		t.Fatal(err)
	}
	until(t, c, func(m attach.Message) bool { f, ok := m.(attach.FrameMsg); return ok && f.Cols == 90 })
	for range 3 {
		if err := c.Input(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.AskHistory(0, 10); err != nil {
		t.Fatal(err)
	}
	until(t, c, func(m attach.Message) bool { _, ok := m.(attach.History); return ok })
	if err := c.Signal("TERM"); err != nil {
		t.Fatal(err)
	}
	if e := w.exit(); e.Reason != "stopped" {
		t.Errorf("exit = %+v", e)
	}
}

func TestStoppingAsksFirst(t *testing.T) {
	w := prepare(t, `trap 'echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.05; done`).run()
	c := w.dial(attach.RoleViewer)
	shows(t, c, "ready")
	if err := c.Signal("TERM"); err != nil {
		t.Fatal(err)
	}
	if e := w.exit(); e.Reason != "stopped" || e.Code != 0 {
		t.Errorf("exit = %+v", e)
	}
	if !strings.Contains(w.transcript(), "tidied") {
		t.Error("the program was not asked")
	}
}

func TestAProgramThatDoesNotStopIsKilled(t *testing.T) {
	for _, how := range []string{"KILL", "TERM"} {
		w := prepare(t, `trap '' TERM HUP; echo ready; while :; do sleep 0.05; done`).run()
		c := w.dial(attach.RoleViewer)
		shows(t, c, "ready")
		if err := c.Signal(how); err != nil {
			t.Fatal(err)
		}
		if e := w.exit(); e.Reason != "stopped" || e.Signal != "killed" {
			t.Errorf("%s: exit = %+v", how, e)
		}
	}
}

func TestInterruptingIsTheProgramsBusiness(t *testing.T) {
	w := prepare(t, `trap 'echo interrupted' INT; echo ready; read x; read x`).run()
	c := w.dial(attach.RoleViewer)
	shows(t, c, "ready")
	if err := c.Signal("INT"); err != nil {
		t.Fatal(err)
	}
	shows(t, c, "interrupted")
	if err := c.Input([]byte("\r\r")); err != nil {
		t.Fatal(err)
	}
	if e := w.exit(); e.Reason != "" {
		t.Errorf("exit = %+v", e)
	}
}

func TestABlockedHostIsNewsOnce(t *testing.T) {
	w := prepare(t, "read x")
	w.order.Spec.Network = sandbox.NetworkProxy
	w.order.Rules = []string{"good.example"}
	w.run()
	proxy := &url.URL{Scheme: "http", Host: w.engine.Boxes()[0].Listener().Addr().String()}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}
	for _, host := range []string{"evil.example", "evil.example", "worse.example:8080"} {
		response, err := (&http.Client{Transport: transport}).Get("http://" + host + "/")
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode == http.StatusOK {
			t.Errorf("%s was reached", host)
		}
		_ = response.Body.Close()
	}
	hub := w.dial(attach.RoleHub)
	var blocked []string
	for len(blocked) < 2 {
		m := until(t, hub, func(m attach.Message) bool { n, ok := m.(attach.News); return ok && n.Kind == attach.NewsBlocked })
		blocked = append(blocked, m.(attach.News).Text)
	}
	if blocked[0] != "evil.example:80" || blocked[1] != "worse.example:8080" {
		t.Errorf("news = %q", blocked)
	}
	raw, err := os.ReadFile(w.home.Audit(w.order.Agent))
	if err != nil || strings.Count(string(raw), "evil.example") < 2 {
		t.Errorf("audit: %v\n%s", err, raw)
	}
}

func TestTwentyViewersDelayNoProgram(t *testing.T) {
	w := prepare(t, `read go; i=0; while [ $i -lt 500 ]; do echo "line $i of some output that scrolls"; i=$((i+1)); done; echo finished; read x`).run()
	var watching sync.WaitGroup
	for i := range 20 {
		c := w.dial(attach.RoleViewer)
		if i%4 == 0 {
			continue // never reads
		}
		watching.Go(func() { shows(t, c, "finished") })
	}
	c := w.dial(attach.RoleViewer)
	if err := c.Input([]byte("go\r")); err != nil {
		t.Fatal(err)
	}
	watching.Wait()
}

func TestAnAgentHasOneKeeper(t *testing.T) {
	w := prepare(t, "read x").run()
	err := Run(t.Context(), w.order, w.engine, func() { t.Error("a second one is ready") })
	var coded interface{ Code() string }
	if !errors.As(err, &coded) || coded.Code() != "keeper-running" {
		t.Errorf("a second keeper: %v", err)
	}
	if n := len(w.engine.Specs()); n != 1 {
		t.Errorf("%d programs were started", n)
	}
	c := w.dial(attach.RoleViewer)
	until(t, c, func(attach.Message) bool { return true })
}

func TestADeadKeepersSocketIsTakenOver(t *testing.T) {
	w := prepare(t, "read x")
	if err := os.MkdirAll(w.home.Run(w.order.Agent), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", w.home.KeeperSocket(w.order.Agent))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	w.run().dial(attach.RoleViewer)
	info, err := os.Stat(w.home.KeeperSocket(w.order.Agent))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
}

func TestAHubThatComesLateHearsWhatCounts(t *testing.T) {
	w := prepare(t, `printf '\033]2;a title\a\033]7501;state=blocked:kind=question:msg=V2hpY2g/\033\\'; echo up; read x`).run()
	shows(t, w.dial(attach.RoleViewer), "up")
	hub := w.dial(attach.RoleHub)
	seen := map[string]attach.News{}
	until(t, hub, func(m attach.Message) bool {
		if n, ok := m.(attach.News); ok {
			seen[n.Kind] = n
		}
		s := seen[attach.NewsStatus]
		return s.Status == waiting && s.Text == "Which?" && seen[attach.NewsTitle].Text == "a title" &&
			seen[attach.NewsStarted].PID > 0 && len(seen[attach.NewsAttested].Facts) > 0
	})
}

func TestAnInteractiveShellIsIdleAtItsPrompt(t *testing.T) {
	w := prepare(t, "")
	w.order.Spec.Argv = []string{"bash", "--norc", "-i"}
	w.order.Status = StatusRules{Mode: ModeShell, Shell: true}
	w.run()
	hub, c := w.dial(attach.RoleHub), w.dial(attach.RoleViewer)
	until(t, hub, status(idle))
	if err := c.Input([]byte("sleep 2.5\r")); err != nil {
		t.Fatal(err)
	}
	until(t, hub, status(working))
	// Longer than the output stays fresh, and yet not idle: the command has
	// the terminal. The next thing to be heard is idle, once it has ended.
	m := until(t, hub, func(m attach.Message) bool { n, ok := m.(attach.News); return ok && n.Kind == attach.NewsStatus })
	if n := m.(attach.News); n.Status != idle {
		t.Errorf("status = %s", n.Status)
	}
}
