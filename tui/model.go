package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/tui/sheet"
)

// Waits of the dashboard. Those of a request's locks are in tui/sheet.
const (
	sortQuiet    = time.Second             // no row moves this soon after a key
	openQuiet    = 1500 * time.Millisecond // a sheet opens by itself after this long without a key
	toastTime    = 6 * time.Second
	handOver     = 300 * time.Millisecond // enter is swallowed this long after the agent got the keyboard
	burst        = 30 * time.Millisecond  // no hand is this fast: what comes so soon was queued before
	backTwice    = 300 * time.Millisecond
	ctrlHeld     = 400 * time.Millisecond // after the return key ctrl+letter is the letter
	confirmArms  = 300 * time.Millisecond
	resizeQuiet  = 300 * time.Millisecond
	seenAfter    = time.Second            // an agent that is looked at this long has been seen
	successor    = 500 * time.Millisecond // a request that was withdrawn has one by then, or none
	newsQuiet    = 300 * time.Millisecond
	retryFirst   = time.Second
	retryLongest = 10 * time.Second
)

// tab is what the right side shows.
type tab uint8

const (
	tabScreen tab = iota
	tabChanges
	tabActivity
	tabSandbox
)

// Model is the whole dashboard. It is the only tea.Model of the program;
// everything below it is a value with methods.
type Model struct {
	ctx  context.Context // as long as the program: what commands work under
	o    Options
	keys keyMap
	look look
	now  time.Time // of the message that is being handled
	w, h int

	fleet    state.Fleet
	watching bool // a snapshot has been read
	events   <-chan state.Event
	retry    retry
	survey   *state.Survey // nil until it has been read

	list     listPane
	tab      tab
	right    bool // the right side has the keyboard
	whole    bool // the right side has the screen
	screens  screens
	changes  changesPane
	activity activityPane
	sandbox  textPane
	typing   typing
	dialogs  []dialog
	draft    draft
	request  *openRequest             // the sheet; nil when none is open
	putOff   map[state.RequestID]bool // requests that do not open by themselves again
	mine     map[state.RequestID]bool // requests that were answered here
	toast    toast
	needs    needs
	seen     time.Time // the finished turn that was last reported as seen
	mouseOff bool
	blurred  bool // the terminal window is not the one in front

	started time.Time
	lastKey time.Time
	resized time.Time // when the terminal last changed its size, zero when that is settled
	armed   time.Time // when the one timer on its way will ring; zero: none
	cache   *cache
	pace    *pace // nil: the framework draws at its own rate
}

// openRequest is the sheet and what belongs to it.
type openRequest struct {
	sheet sheet.Sheet
	wide  bool
	// gone is when the sheet closes because its request was withdrawn. Until
	// then the request that takes its place may come; keys are lost meanwhile.
	gone time.Time
}

// retry is the wait before something is tried again; it grows.
type retry struct {
	at   time.Time // zero: no retry is due
	wait time.Duration
}

func (r retry) next(now time.Time) retry {
	r.wait = min(max(2*r.wait, retryFirst), retryLongest)
	r.at = now.Add(r.wait)
	return r
}

func newModel(ctx context.Context, o Options) Model {
	o = o.withDefaults()
	m := Model{
		ctx: ctx, o: o, now: o.Now(), started: o.Now(), look: newLook(o.Env),
		putOff: map[state.RequestID]bool{}, mine: map[state.RequestID]bool{}, cache: &cache{},
		screens: newScreens(), needs: newNeeds(),
	}
	var problems []string
	m.keys, problems = newKeyMap(o.Keys)
	m.draft = readDraft(o.StatePath)
	if len(problems) > 0 {
		m.toast = warn(strings.Join(problems, "; "))
	}
	return m
}

// Init asks for the fleet, for what the machine can do, and for the colours
// of the terminal.
func (m Model) Init() tea.Cmd {
	return tea.Batch(m.watch(), m.askSurvey(), tea.RequestBackgroundColor)
}

// Update routes a message by its kind, then brings everything that follows
// from the state into line with it.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if _, ask := msg.(idleMsg); ask {
		return m, m.pace.settle()
	}
	m.now = m.o.Now()
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		m, cmd = m.onKey(tea.Key(msg))
	case tea.PasteMsg:
		m, cmd = m.onPaste(msg.Content)
	case tea.MouseMsg:
		m, cmd = m.onMouse(msg)
	case tea.WindowSizeMsg:
		m = m.onSize(msg.Width, msg.Height)
	case tea.ResumeMsg:
		cmd = tea.ClearScreen
	case tea.ColorProfileMsg:
		m.look = m.look.withProfile(msg.Profile)
	case tea.BackgroundColorMsg:
		m.look = m.look.withBackground(msg.IsDark())
	case tea.CursorPositionMsg:
		m.look = m.look.withReport(msg.X, msg.Y)
	case tea.FocusMsg:
		m.blurred = false
	case tea.BlurMsg:
		m.blurred = true
	case wakeMsg:
		m, cmd = m.onWake(msg)
	case newsMsg:
		m = msg.take(m)
	case stepMsg:
		m, cmd = msg.fold(m)
	}
	return m.settle(cmd, m.pace.touch())
}

// newsMsg is an answer of the hub or of a keeper. It knows what it changes.
type newsMsg interface{ take(m Model) Model }

// stepMsg is an answer after which something else is to be done.
type stepMsg interface {
	fold(m Model) (Model, tea.Cmd)
}

// settle makes what follows from the state follow: the order of the list, the
// sheet, the screen that is looked at, what the tabs show, the bell, and the
// one timer.
func (m Model) settle(cmds ...tea.Cmd) (tea.Model, tea.Cmd) {
	m = m.reorder()
	steps := []func(Model) (Model, tea.Cmd){
		Model.settleRequest, Model.settleScreen, Model.settleTab, Model.settleSize, Model.settleSeen,
		Model.settleNeeds, Model.settleMarks, Model.arm,
	}
	for _, step := range steps {
		var cmd tea.Cmd
		m, cmd = step(m)
		cmds = append(cmds, cmd)
	}
	return m, tea.Batch(cmds...)
}

// selected is the agent that the cursor is on.
func (m Model) selected() (state.Agent, bool) { return m.fleet.Agent(m.list.cursor) }

// newcomer reports whether the first screen is shown: nothing has ever
// happened here, or nothing can.
func (m Model) newcomer() bool {
	if !m.watching || len(m.fleet.Agents) > 0 || m.survey == nil {
		return false
	}
	return !m.canStart() || m.fleet.Left.IsZero() && len(m.fleet.Trash) == 0
}

// quietSince is since when the keyboard has been quiet.
func (m Model) quietSince() time.Time {
	if m.lastKey.After(m.started) {
		return m.lastKey
	}
	return m.started
}

// canStart reports whether some engine works.
func (m Model) canStart() bool {
	if m.survey == nil {
		return true
	}
	for _, e := range m.survey.Engines {
		if e.Usable {
			return true
		}
	}
	return false
}

func (m Model) layout() layout {
	return lay(m.w, m.h, m.list.height(m.fleet), m.right || m.typing.on, m.whole)
}

func (m Model) onSize(w, h int) Model {
	if m.w != 0 {
		m.resized = m.now
	}
	m.w, m.h = w, h
	return m
}

// close ends what the program holds open.
func (m Model) close() { m.screens.close() }
