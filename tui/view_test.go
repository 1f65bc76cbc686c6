package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"fletch/state"
	"fletch/tui/tuitest"
)

// sizes are those that the drawings have.
var sizes = [][2]int{{40, 10}, {60, 20}, {80, 24}, {120, 40}, {200, 50}}

func bar(o *Options) { o.Open = OpenBar }

func TestEveryScreenLooksAsDrawn(t *testing.T) {
	first, empty, bare := state.Fleet{}, state.Fleet{Left: tuitest.Noon()}, tuitest.BareMachine()
	scenes := map[string]struct {
		scene scene
		play  func(*desk)
	}{
		"main":    {scene{options: bar}, func(*desk) {}},
		"typing":  {scene{options: bar}, func(d *desk) { d.press("enter", "enter") }},
		"whole":   {scene{options: bar}, func(d *desk) { d.does("whole") }},
		"first":   {scene{fleet: &first}, func(*desk) {}},
		"bare":    {scene{fleet: &first, machine: &bare}, func(*desk) {}},
		"empty":   {scene{fleet: &empty}, func(*desk) {}},
		"new":     {scene{options: bar}, func(d *desk) { d.does("new") }},
		"help":    {scene{options: bar}, func(d *desk) { d.does("help") }},
		"confirm": {scene{options: bar}, func(d *desk) { d.does("stop") }},
		"toast": {scene{options: bar}, func(d *desk) {
			d.happen(tuitest.AmberRiver, state.Decided{Verdict: state.Verdict{Request: "7", Allow: true}})
			d.happen(tuitest.AmberRiver, state.Published{Request: "7"})
		}},
		"request":  {scene{}, func(d *desk) { d.wait(2 * openQuiet) }},
		"changes":  {scene{options: bar}, func(d *desk) { d.does("tab-changes") }},
		"activity": {scene{options: bar}, func(d *desk) { activity(d); d.does("tab-activity") }},
		"sandbox":  {scene{options: bar}, func(d *desk) { d.does("tab-sandbox") }},
		"doctor":   {scene{options: bar}, func(d *desk) { d.does("doctor") }},
	}
	for name, sc := range scenes {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				sc.scene.w, sc.scene.h = size[0], size[1]
				atDesk(t, sc.scene, func(d *desk) {
					sc.play(d)
					d.golden(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]))
					d.fits()
				})
			})
		}
	}
}

// activity makes a few things happen to the selected agent.
func activity(d *desk) {
	for _, body := range []state.Body{
		state.Prepared{Base: state.Base{Ref: "main", Commit: tuitest.Base}, NotIncluded: 12},
		state.Noticed{Kind: "blocked-host", Text: "blocked: evil.example:443"},
		state.StatusChanged{Status: state.Waiting},
		state.Withdrawn{Request: "7", Why: "moved on"},
	} {
		d.happen(tuitest.AmberRiver, body)
	}
}

// fits reports a line that is wider than the terminal, or a screen of another
// height, at whatever is shown.
func (d *desk) fits() {
	d.t.Helper()
	lines := strings.Split(d.m.View().Content, "\n")
	if len(lines) != d.m.h {
		d.t.Errorf("%d lines on a terminal of %d", len(lines), d.m.h)
	}
	for y, line := range lines {
		if w := ansi.StringWidth(line); w > d.m.w {
			d.t.Errorf("line %d is %d cells wide on a terminal of %d: %q", y, w, d.m.w, ansi.Strip(line))
		}
	}
}

func TestNoSizeBreaksTheScreen(t *testing.T) {
	atDesk(t, scene{w: 80, h: 24, options: bar}, func(d *desk) {
		keys := []string{"enter", "ctrl+]", "z", "z", "2", "tab", "esc", "3", "4", "1", "n", "esc", "?", "esc", "x", "esc", "r", "esc"}
		for w := 1; w < 130; w += 7 {
			for _, h := range []int{1, 2, 9, 10, 11, 13, 14, 15, 21, 22, 23, 40} {
				d.take(tea.WindowSizeMsg{Width: w, Height: h})
				if w < minCols || h < minRows {
					if n := strings.Count(d.screen(), "\n"); n > h {
						t.Errorf("%d lines at %dx%d", n, w, h)
					}
					continue
				}
				d.fits()
				d.take(keyPress(keys[(w+h)%len(keys)]))
				d.fits()
			}
		}
	})
}

func TestTooSmallSaysSoInOneLine(t *testing.T) {
	atDesk(t, scene{w: 32, h: 8}, func(d *desk) {
		if got := d.screen(); got != "fletch needs 40×10; this is 32×8\n" && !strings.HasPrefix(got, "fletch needs 40×10; this is 32×8") {
			t.Errorf("got %q", got)
		}
	})
}

func TestWhatCannotBeSeenCannotBePressed(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.does("new")
		d.send(tea.WindowSizeMsg{Width: 20, Height: 5})
		d.wait(time.Second)
		d.press("x", "enter", "tab", "esc")
		d.send(tea.PasteMsg{Content: "unseen"})
		d.send(tea.WindowSizeMsg{Width: 120, Height: 40})
		d.sees("new agent")
		d.seesNot("unseen")
		d.wantsNot("launch")
		d.send(tea.WindowSizeMsg{Width: 20, Height: 5})
		d.press("q")
		if !d.quit {
			t.Error("there is no way out")
		}
	})
}

func TestWithoutUTF8EverythingIsASCII(t *testing.T) {
	atDesk(t, scene{w: 80, h: 24, options: func(o *Options) { o.Open, o.Env = OpenBar, []string{"LANG=C", "NO_COLOR=1"} }}, func(d *desk) {
		for _, key := range []string{"j", "?", "esc", "n", "esc", "2", "q", "r"} {
			d.press(key)
			for i, c := range []byte(d.m.View().Content) {
				if c >= 0x80 {
					t.Fatalf("after %q: a byte %#x at %d: %q", key, c, i, d.screen())
				}
			}
		}
		d.press("esc", "g")
		d.golden("ascii-80x24")
	})
}

func TestAHostileNameCannotDrawOnTheScreen(t *testing.T) {
	f := tuitest.Drawn()
	f.Agents[0].Name = "a\x1b[2J\u202eb\x07"
	f.Agents[0].Reason = "\x1b]0;owned\x07"
	f.Agents[2].Reason = "died\x1b[31m\u202e\n\rgone"
	f.Agents[3].Provider = "cl\x1b[5mude"
	atDesk(t, scene{w: 120, h: 40, fleet: &f, options: bar}, func(d *desk) {
		for _, key := range []string{"1", "j", "j", "2", "3", "4", "x", "esc", "g", "r", "esc", "?", "esc", "enter"} {
			d.press(key)
			plain := ansi.Strip(d.m.View().Content)
			if strings.ContainsAny(plain, "\x1b\x07\r\u202e") {
				t.Errorf("after %q something was left: %q", key, plain)
			}
			if strings.Contains(d.m.View().Content, "\x1b[2J") || strings.Contains(d.m.View().Content, "\x1b]") {
				t.Errorf("after %q the agent's sequence is sent", key)
			}
			d.fits()
		}
	})
}
