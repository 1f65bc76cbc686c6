package keeper

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"fletch/agents/term"
)

// How an agent's status is told from its output.
const (
	// shellQuiet is how old the last output of an idle shell is at least.
	shellQuiet = time.Second
	// activityQuiet is how long a working agent must be silent to be done.
	activityQuiet = 2500 * time.Millisecond
	// echoTime is how long after a key or a resize output may be no more than
	// its echo.
	echoTime = time.Second
)

// Words for what an agent is doing; state.Status has the same.
const (
	working = "working"
	waiting = "waiting"
	idle    = "idle"
	done    = "done"
)

// Modes of StatusRules.
const (
	// ModeShell: a program that knows nothing of turns. With Shell, an
	// interactive shell is idle when its output is a second old and it is in
	// the foreground itself; without, a command works until it ends.
	ModeShell = "shell"
	// ModeActivity: an agent works while output flows and is done when it is
	// quiet for 2.5 s.
	ModeActivity = "activity"
)

// StatusRules say how to tell what an agent is doing. What the program
// reports itself (OSC 7501) goes before a title that a rule knows, and that
// before its output.
type StatusRules struct {
	Mode   string      `json:"mode"` // ModeShell or ModeActivity
	Shell  bool        `json:"shell,omitempty"`
	Titles []TitleRule `json:"titles,omitempty"` // the first that matches counts
	// Task says that the agent was started with a task: the first thing it
	// does is work, not only the drawing of its screen.
	Task bool `json:"task,omitempty"`
}

// TitleRule gives a window title a meaning.
type TitleRule struct {
	Match  string `json:"match"`  // a regular expression, RE2
	Status string `json:"status"` // working, waiting, idle or done
}

func (r StatusRules) check() error {
	if r.Mode != ModeShell && r.Mode != ModeActivity {
		return fmt.Errorf("%q is no way to tell the status", r.Mode)
	}
	for _, t := range r.Titles {
		if _, err := regexp.Compile(t.Match); err != nil {
			return fmt.Errorf("reading the title rule for %s: %w", t.Status, err)
		}
		if !slices.Contains([]string{working, waiting, idle, done}, t.Status) {
			return fmt.Errorf("a title cannot mean %q", t.Status)
		}
	}
	return nil
}

// tracker follows what an agent is doing. Nothing ticks in it: a timer runs
// only after output.
type tracker struct {
	rules      StatusRules
	titles     []*regexp.Regexp
	foreground func() bool // the shell itself is in the foreground
	publish    func(status, text string)

	mu       sync.Mutex
	told     string // what was published last
	toldText string
	base     string // told from output
	titled   string // told from the title; empty when no rule knows it
	reported string // told by the program; empty when it does not
	text     string // with reported
	begun    bool   // what it does now counts as work, not as starting up
	last     time.Time
	touched  time.Time // when a key or resize last asked for an echo
	armed    bool
	closed   bool
	quiet    *time.Timer
}

// newTracker makes a tracker; publish is called for every change, by one
// goroutine at a time, and must not call back.
func newTracker(rules StatusRules, foreground func() bool, publish func(status, text string)) *tracker {
	t := &tracker{rules: rules, foreground: foreground, publish: publish, base: working, begun: rules.Task}
	for _, r := range rules.Titles {
		t.titles = append(t.titles, regexp.MustCompile(r.Match))
	}
	t.quiet = time.AfterFunc(time.Hour, t.fell)
	t.quiet.Stop()
	return t
}

// start publishes the first status. A program that never writes anything is
// found to be idle as well.
func (t *tracker) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	t.arm(t.patience())
	t.tell()
}

func (t *tracker) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.quiet.Stop()
}

// byOutput reports whether output says anything.
func (t *tracker) byOutput() bool { return t.rules.Mode == ModeActivity || t.rules.Shell }

func (t *tracker) patience() time.Duration {
	if t.rules.Mode == ModeActivity {
		return activityQuiet
	}
	return shellQuiet
}

// output is called for every read of the program's output.
func (t *tracker) output() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	if !t.byOutput() || t.closed {
		return
	}
	if t.base != working {
		if t.rules.Mode == ModeActivity && t.last.Sub(t.touched) < echoTime {
			return
		}
		t.base = working
		t.tell()
	}
	t.arm(t.patience())
}

func (t *tracker) arm(d time.Duration) {
	if t.armed || t.closed || !t.byOutput() {
		return
	}
	t.armed = true
	t.quiet.Reset(d)
}

// fell is called when the output may have been quiet for long enough.
func (t *tracker) fell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
	if left := t.patience() - time.Since(t.last); left > 0 {
		t.arm(left)
		return
	}
	switch {
	case t.closed || t.base != working:
		return
	case t.rules.Mode == ModeActivity && t.begun:
		t.base = done
	case t.rules.Mode == ModeActivity:
		t.base = idle
	case !t.foreground():
		// Something runs in the shell and is silent. When it ends the shell
		// writes its prompt, so this is asked again then.
		return
	default:
		t.base = idle
	}
	t.tell()
}

// input is called for what a person types.
func (t *tracker) input(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touched = time.Now()
	if bytes.IndexByte(p, '\r') >= 0 {
		t.begun = true
	}
}

// redrawn is called when the program will draw its screen again.
func (t *tracker) redrawn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touched = time.Now()
}

// event takes what the program tells its terminal.
func (t *tracker) event(e term.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case term.Status:
		t.report(e)
	case term.Title:
		t.titled = t.meaning(e.Text)
	case term.Bell, term.Notification:
		return
	}
	t.tell()
}

func (t *tracker) report(s term.Status) {
	t.text = s.Text
	if t.text == "" {
		t.text = s.Kind
	}
	switch s.State {
	case "working", "idle", "done":
		t.reported = s.State
	case "blocked", "error":
		t.reported = waiting
	case "clear":
		t.reported, t.text = "", ""
	}
}

func (t *tracker) meaning(title string) string {
	for i, r := range t.titles {
		if r.MatchString(title) {
			return t.rules.Titles[i].Status
		}
	}
	return ""
}

// tell publishes the status when it changed.
func (t *tracker) tell() {
	status, text := t.base, ""
	switch {
	case t.reported != "":
		status, text = t.reported, t.text
	case t.titled == idle && (t.told == working || t.told == done):
		status = done // the end of a turn that nobody has seen
	case t.titled != "":
		status = t.titled
	}
	if t.closed || status == t.told && text == t.toldText {
		return
	}
	t.told, t.toldText = status, text
	t.publish(status, text)
}
