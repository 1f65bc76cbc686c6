package tui

import (
	"fmt"
	"image/color"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/tui/tuitest"
)

// TestNoKeysBreakTheScreenOrAllow presses whatever comes, in whatever order
// and at whatever size, while the fleet does what it likes. Without ctrl+y
// nothing is ever allowed, nothing is wider than the terminal, and nothing
// panics.
func TestNoKeysBreakTheScreenOrAllow(t *testing.T) {
	names := []string{
		"j", "k", "J", "K", "g", "G", "w", "W", "r", "enter", "i", "1", "2", "3", "4", "tab", "shift+tab", "h", "l", "z", "n", "N",
		"x", "X", "c", "u", "D", "R", "?", "M", "q", "esc", "ctrl+]", `ctrl+\`, "ctrl+c", "ctrl+l", "ctrl+d", "ctrl+u", "ctrl+n", "alt+j",
		"space", "pgdown", "pgup", "up", "down", "left", "right", "home", "end", "backspace", "ctrl+j", "f", "y", "b", "a", "é",
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			atDesk(t, scene{w: 120, h: 40, fleet: open2()}, func(d *desk) {
				var last []string
				for range 200 {
					step := names[dice.IntN(len(names))]
					switch dice.IntN(12) {
					case 0:
						step = "size"
						d.take(tea.WindowSizeMsg{Width: 1 + dice.IntN(160), Height: 1 + dice.IntN(55)})
					case 1:
						step = "pause"
						d.wait(time.Duration(dice.IntN(3000)) * time.Millisecond)
					case 2:
						step = "event"
						d.anything(dice)
					case 3:
						step = "mouse"
						d.send(wheel(dice.IntN(160), dice.IntN(55), tea.MouseWheelUp+tea.MouseButton(dice.IntN(2))))
						d.send(click(dice.IntN(160), dice.IntN(55)))
					case 4:
						step = "paste"
						d.send(tea.PasteMsg{Content: "\x19\r\x1b[2Jx"})
					default:
						d.press(step)
					}
					if last = append(last, step); d.m.w >= minCols && d.m.h >= minRows {
						d.fits()
					}
					if t.Failed() {
						t.Fatalf("after %q:\n%s", last[max(0, len(last)-20):], d.screen())
					}
				}
				d.wantsNotAllowed()
			})
		})
	}
}

func (d *desk) wantsNotAllowed() {
	d.t.Helper()
	if calls := strings.Join(d.hub.Calls(), "\n"); strings.Contains(calls, "allow=true") {
		d.t.Errorf("it was allowed without ctrl+y:\n%s", calls)
	}
}

// anything makes something happen to somebody.
func (d *desk) anything(dice *rand.Rand) {
	agents := d.hub.Fleet().Agents
	if len(agents) == 0 {
		d.happen("zzzzzzzz", state.Created{Agent: tuitest.Drawn().Agents[0]})
		return
	}
	a := agents[dice.IntN(len(agents))]
	switch dice.IntN(8) {
	case 0:
		id := state.RequestID(fmt.Sprint(100 + d.hub.Fleet().Seq))
		d.hub.SetPatch(id, "", tuitest.Patch(tuitest.Head))
		d.happen(a.ID, state.Asked{Request: tuitest.Push(id, a.ID, a.Name, tuitest.Head, d.now())})
	case 1:
		if r, ok := d.hub.Fleet().PendingOf(a.ID); ok {
			d.happen(a.ID, state.Withdrawn{Request: r.ID, Why: "moved on"})
		}
	case 2:
		d.happen(a.ID, state.Removed{Agent: a})
	case 3:
		d.screens.Play(a.ID, 80, 36, strings.Repeat("line \x1b[31m日本\x1b[m\r\n", dice.IntN(60)))
		d.wait(ms(20))
	case 4:
		d.hub.Drop()
		d.settle()
	default:
		d.happen(a.ID, state.StatusChanged{Status: state.Statuses[dice.IntN(len(state.Statuses))], Reason: "\x1b[2J why"})
	}
}

func TestColoursOfBothThemes(t *testing.T) {
	for name, background := range map[string]color.Color{"dark": color.Black, "light": color.White} {
		atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
			d.send(tea.BackgroundColorMsg{Color: background})
			golden(t, "colours-"+name, strings.ReplaceAll(d.m.View().Content, "\x1b", "␛")+"\n")
		})
	}
}
