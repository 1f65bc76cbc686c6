package tui

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"fletch/state"
	"fletch/tui/tuitest"
)

var update = flag.Bool("update", false, "write the golden files")

// desk is a person in front of a dashboard, with a clock that jumps: it runs
// the model and its commands as the framework does, inside a synctest bubble.
type desk struct {
	t       *testing.T
	m       Model
	hub     *tuitest.Hub
	screens *tuitest.Screens
	now     func() time.Time
	msgs    chan tea.Msg
	ctx     context.Context
	raw     []string // written past the view: the bell
	quit    bool
	cleared int
	asked   int // how often the terminal was asked how wide marks are
}

type fakeScreens struct{ *tuitest.Screens }

func (s fakeScreens) Open(_ context.Context, id state.AgentID) (Screen, error) {
	screen, err := s.Connect(id)
	if err != nil {
		return nil, err
	}
	return screen, nil
}

// scene is what a desk begins with.
type scene struct {
	w, h    int
	fleet   *state.Fleet   // nil: the drawn one
	machine *state.Survey  // nil: the drawn one
	options func(*Options) // changes them
}

// atDesk runs a test in front of a dashboard.
func atDesk(t *testing.T, sc scene, test func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() time.Time { return tuitest.Noon().Add(time.Since(start)) }
		fleet, machine := tuitest.Drawn(), tuitest.Machine()
		if sc.fleet != nil {
			fleet = *sc.fleet
		}
		if sc.machine != nil {
			machine = *sc.machine
		}
		ctx, cancel := context.WithCancel(t.Context())
		d := &desk{t: t, hub: tuitest.NewHub(fleet, machine, now), now: now, msgs: make(chan tea.Msg, 10000), ctx: ctx}
		d.screens = tuitest.DrawnScreens(80, 36)
		d.hub.SetPatch("7", tuitest.AmberRiver, tuitest.Patch(tuitest.Head))
		d.hub.SetPatch("8", "", tuitest.Patch(tuitest.Newer))
		o := Options{
			Hub: d.hub, Screens: fakeScreens{d.screens}, Dir: "/home/you/src/shop", Home: "/home/you", Version: "0.1.0", Now: now,
			Env: []string{"LANG=C.UTF-8"}, Demo: func(context.Context) error { return nil },
		}
		if sc.options != nil {
			sc.options(&o)
		}
		d.m = newModel(ctx, o)
		d.run(d.m.Init())
		d.send(tea.WindowSizeMsg{Width: sc.w, Height: sc.h})
		defer func() {
			cancel()
			d.m.close()
			d.hub.Drop()
			d.screens.Close()
			time.Sleep(time.Hour) // what was armed rings, and finds nobody
			synctest.Wait()
		}()
		test(d)
	})
}

// run starts a command as the framework does.
func (d *desk) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		if msg := cmd(); msg != nil {
			select {
			case d.msgs <- msg:
			case <-d.ctx.Done():
			}
		}
	}()
}

func (d *desk) take(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.BatchMsg:
		for _, cmd := range msg {
			d.run(cmd)
		}
		return
	case tea.QuitMsg:
		d.quit = true
		return
	case tea.RawMsg:
		if text := fmt.Sprint(msg.Msg); strings.Contains(text, measured) {
			d.asked++
		} else {
			d.raw = append(d.raw, text)
		}
		return
	}
	if v := reflect.ValueOf(msg); v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd]() {
		for i := range v.Len() { // a sequence
			d.take(v.Index(i).Interface().(tea.Cmd)())
		}
		return
	}
	if fmt.Sprintf("%T", msg) == "tea.clearScreenMsg" {
		d.cleared++
	}
	next, cmd := d.m.Update(msg)
	d.m = next.(Model)
	_ = d.m.View() // the framework draws after every message
	d.run(cmd)
}

// settle handles everything that can happen without time going on.
func (d *desk) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-d.msgs:
			d.take(msg)
		default:
			return
		}
	}
}

func (d *desk) send(msg tea.Msg) {
	d.take(msg)
	d.settle()
}

// wait lets time go on.
func (d *desk) wait(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case msg := <-d.msgs:
			d.take(msg)
		case <-timer.C:
			d.settle()
			return
		}
	}
}

// press presses keys as the table names them.
func (d *desk) press(names ...string) {
	for _, name := range names {
		d.send(keyPress(name))
	}
}

// does presses the first key of an action in the list.
func (d *desk) does(act action) {
	d.t.Helper()
	b, ok := d.m.keys.of(d.m.scope(), act)
	if !ok {
		b, ok = d.m.keys.of(inAny, act)
	}
	if !ok {
		d.t.Fatalf("no key does %q in %s", act, d.m.scope())
	}
	d.press(b.keys[0])
}

func (d *desk) happen(id state.AgentID, body state.Body) {
	d.hub.Happen(id, body)
	d.settle()
}

// screen is what is on the terminal, without colours.
func (d *desk) screen() string {
	lines := strings.Split(ansi.Strip(d.m.View().Content), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (d *desk) sees(text string) {
	d.t.Helper()
	if !strings.Contains(d.screen(), text) {
		d.t.Errorf("the screen does not say %q:\n%s", text, d.screen())
	}
}

func (d *desk) seesNot(text string) {
	d.t.Helper()
	if strings.Contains(d.screen(), text) {
		d.t.Errorf("the screen says %q:\n%s", text, d.screen())
	}
}

// called reports whether the hub was asked for something.
func (d *desk) called(what string) bool {
	for _, c := range d.hub.Calls() {
		if strings.HasPrefix(c, what) {
			return true
		}
	}
	return false
}

func (d *desk) wants(what string) {
	d.t.Helper()
	if !d.called(what) {
		d.t.Errorf("the hub was not asked to %q; it was asked %q", what, d.hub.Calls())
	}
}

func (d *desk) wantsNot(what string) {
	d.t.Helper()
	if d.called(what) {
		d.t.Errorf("the hub was asked to %q: %q", what, d.hub.Calls())
	}
}

func (d *desk) golden(name string) {
	d.t.Helper()
	golden(d.t, name, d.screen())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s looks different (-update writes it anew):\n%s\nwanted:\n%s", name, got, want)
	}
}

// keyPress is a key by the name that the table gives it.
func keyPress(name string) tea.KeyPressMsg {
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
		"left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome,
		"end": tea.KeyEnd, "space": tea.KeySpace, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete,
	}
	var k tea.Key
	rest := name
	for _, mod := range []struct {
		prefix string
		mod    tea.KeyMod
	}{{"ctrl+", tea.ModCtrl}, {"alt+", tea.ModAlt}, {"shift+", tea.ModShift}} {
		if after, ok := strings.CutPrefix(rest, mod.prefix); ok && after != "" {
			k.Mod |= mod.mod
			rest = after
		}
	}
	if code, ok := special[rest]; ok {
		k.Code = code
		if rest == "space" {
			k.Text = " "
		}
		return tea.KeyPressMsg(k)
	}
	r := []rune(rest)[0]
	k.Code = r
	if k.Mod == 0 {
		k.Text = rest
		if r >= 'A' && r <= 'Z' {
			k.Code, k.ShiftedCode, k.Mod = r+'a'-'A', r, tea.ModShift
		}
	}
	return tea.KeyPressMsg(k)
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
