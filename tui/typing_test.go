package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/tui/tuitest"
)

func click(x, y int) tea.Msg { return tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft} }

func wheel(x, y int, button tea.MouseButton) tea.Msg {
	return tea.MouseWheelMsg{X: x, Y: y, Button: button}
}

func (d *desk) typed(id state.AgentID) string { return strings.Join(d.screens.Notes(id), " ") }

func TestASecondEnterDoesNotReachTheAgent(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j", "enter")
		d.wait(ms(200))
		d.press("enter")
		if got := d.typed(tuitest.CalmCedar); got != "" {
			t.Fatalf("the agent got %s", got)
		}
		d.press("y") // other keys count as soon as a hand can press them
		d.wait(ms(200))
		d.press("enter")
		if got := d.typed(tuitest.CalmCedar); got != `input "y" input "\r"` {
			t.Errorf("the agent got %s", got)
		}
	})
}

func TestWhatWasQueuedBeforeTheHandOverIsDropped(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter", "1", "enter")
		d.send(tea.PasteMsg{Content: "yes\n"})
		d.wait(ms(100))
		d.send(tea.PasteMsg{Content: "yes\n"})
		if got := d.typed(tuitest.AmberRiver); got != "" {
			t.Errorf("the agent got %s", got)
		}
	})
}

func TestEveryKeyGoesToTheAgent(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter")
		d.wait(time.Second)
		d.press("q", "esc", "ctrl+c", "ctrl+z", "ctrl+l", "?", "up", "ctrl+y", "space", "tab", "shift+tab", "alt+x")
		want := `input "q" input "\x1b" input "\x03" input "\x1a" input "\f" input "?" input "\x1b[A" input "\x19" input " " input "\t" input "\x1b[Z" input "\x1bx"`
		if got := d.typed(tuitest.AmberRiver); got != want {
			t.Errorf("the agent got\n%s\nwant\n%s", got, want)
		}
		if d.quit || !d.m.typing.on {
			t.Error("a key did something to the dashboard")
		}
	})
}

func TestAPasteIsOnePaste(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter")
		d.wait(time.Second)
		d.send(tea.PasteMsg{Content: "one\ntwo\x1d"})
		if got := d.typed(tuitest.AmberRiver); got != `paste "one\ntwo\x1d"` || !d.m.typing.on {
			t.Errorf("the agent got %s", got)
		}
		d.send(tea.PasteMsg{Content: strings.Repeat("x", maxPaste+1)})
		if got := d.typed(tuitest.AmberRiver); strings.Count(got, "paste") != 1 {
			t.Error("a paste that is too long was sent")
		}
	})
}

func TestBothWaysBackTakeTheKeyboard(t *testing.T) {
	for _, key := range []string{"ctrl+]", `ctrl+\`} {
		atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
			d.press("enter")
			d.sees("TYPING")
			d.press(key)
			d.seesNot("TYPING")
			if got := d.typed(tuitest.AmberRiver); got != "" {
				t.Errorf("the agent got %s", got)
			}
		})
	}
}

func TestTheWayBackTwiceIsForTheAgent(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter")
		d.wait(time.Second)
		d.press("ctrl+]")
		d.wait(ms(200))
		d.press("ctrl+]", "x")
		if got := d.typed(tuitest.AmberRiver); got != `input "\x1d" input "x"` || !d.m.typing.on {
			t.Errorf("the agent got %s", got)
		}
		d.press("ctrl+]")
		d.wait(ms(300))
		d.press("ctrl+]")
		if d.m.typing.on {
			t.Error("a slow second press gave the keyboard away")
		}
	})
}

func TestCtrlStillHeldAfterTheWayBackIsTheLetter(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter", "ctrl+]", "ctrl+j")
		if d.m.list.cursor != tuitest.CalmCedar {
			t.Errorf("ctrl+j was not j: %s", d.m.list.cursor)
		}
		d.wait(ms(400))
		d.press("ctrl+k")
		if d.m.list.cursor != tuitest.CalmCedar {
			t.Error("ctrl+k was k long after")
		}
	})
}

func TestCtrlStillHeldNeverAllows(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter", "ctrl+]", "r", "ctrl+x")
		d.wait(time.Second)
		d.press("ctrl+x", "enter")
		d.wait(time.Second)
		d.wantsNot("decide")
	})
}

func TestARequestWhileTypingOnlyLightsTheChip(t *testing.T) {
	f := tuitest.Drawn()
	f.Requests = nil
	atDesk(t, scene{w: 120, h: 40, fleet: &f}, func(d *desk) {
		d.press("enter")
		d.wait(ms(200))
		d.happen(tuitest.GoldFinch, state.Asked{Request: tuitest.Push("8", tuitest.GoldFinch, "gold-finch", tuitest.Newer, d.now())})
		d.wait(time.Minute)
		if d.m.request != nil || !d.m.typing.on {
			t.Fatal("it took the keyboard")
		}
		d.sees("⚑ gold-finch asks to push · ctrl+] r")
	})
}

func TestAnAgentThatEndsGivesTheKeyboardBack(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter")
		d.happen(tuitest.AmberRiver, state.StatusChanged{Status: state.Exited})
		d.seesNot("TYPING")
		d.sees("amber-river has ended")
	})
}

func TestOnlyTypingGivesAnAgentASize(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j", "k", "2", "3", "4", "1", "tab", "esc")
		d.send(tea.WindowSizeMsg{Width: 150, Height: 50})
		d.wait(time.Second)
		if got := d.typed(tuitest.AmberRiver); got != "" {
			t.Fatalf("looking did %s", got)
		}
		d.press("enter")
		if got := d.typed(tuitest.AmberRiver); got != "resize 110x46" {
			t.Errorf("typing did %s", got)
		}
		d.send(tea.WindowSizeMsg{Width: 140, Height: 50})
		d.wait(ms(100))
		d.send(tea.WindowSizeMsg{Width: 130, Height: 40})
		d.wait(ms(400))
		if got := d.typed(tuitest.AmberRiver); got != "resize 110x46 resize 90x36" {
			t.Errorf("a settled terminal did %s", got)
		}
		d.press("ctrl+]", "z")
		if got := d.screens.Notes(tuitest.AmberRiver); got[len(got)-1] != "resize 130x36" {
			t.Errorf("whole did %q", got)
		}
	})
}

func TestTheDrawnSizeNeedsNoResize(t *testing.T) {
	if cols, rows := typingSize(120, 40, false); cols != 80 || rows != 36 {
		t.Errorf("%dx%d", cols, rows)
	}
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter")
		if got := d.typed(tuitest.AmberRiver); got != "" {
			t.Errorf("it did %s", got)
		}
	})
}

func TestOneScreenIsOpenAtATime(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j", "j", "k")
		opened, open := d.screens.Opened()
		if open != 1 || opened[len(opened)-1] != tuitest.CalmCedar {
			t.Errorf("%d are open of %v", open, opened)
		}
	})
}

func TestAStoppedAgentIsContinuedAndNotTypedTo(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j", "j", "enter", "enter")
		d.sees("continue elm-star")
		d.wantsNot("resume")
		d.wait(ms(400))
		d.press("enter")
		d.wants("resume cccccccc")
	})
}

func TestTheWheelScrollsWhereItIs(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		var rows []string
		for i := range 100 {
			rows = append(rows, "row "+string(rune('a'+i/10))+string(rune('0'+i%10)))
		}
		d.screens.Play(tuitest.AmberRiver, 80, 36, "\x1b[36;1H\r\n"+strings.Join(rows, "\r\n"))
		d.settle()
		d.wait(ms(100))
		d.sees("row j9")
		d.send(wheel(60, 10, tea.MouseWheelUp))
		d.seesNot("row j9")
		d.sees("3 lines above the end")
		d.send(wheel(60, 10, tea.MouseWheelDown))
		d.sees("row j9")
		d.send(wheel(5, 10, tea.MouseWheelDown))
		if d.m.list.cursor != tuitest.CalmCedar {
			t.Error("over the list it does not move the cursor")
		}
	})
}

func TestScrollbackIsFetchedAndKeepsItsPlace(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		var rows []string
		for i := range 300 {
			rows = append(rows, "row "+string(rune('a'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10)))
		}
		d.screens.Play(tuitest.AmberRiver, 80, 36, "\x1b[36;1H\r\n"+strings.Join(rows, "\r\n"))
		d.wait(ms(100))
		for range 3 {
			d.does("scroll-up")
			d.wait(ms(100))
		}
		seen := slices.IndexFunc(strings.Split(d.screen(), "\n"), func(l string) bool { return strings.Contains(l, "row b70") })
		if seen < 0 {
			t.Fatalf("row b70 is not there:\n%s", d.screen())
		}
		d.screens.Play(tuitest.AmberRiver, 80, 36, "\r\nmore\r\nand more")
		d.wait(ms(100))
		again := slices.IndexFunc(strings.Split(d.screen(), "\n"), func(l string) bool { return strings.Contains(l, "row b70") })
		if again != seen {
			t.Errorf("new output moved the place from line %d to %d", seen, again)
		}
		d.press("j", "k")
		d.sees("lines above the end")
	})
}

func TestTheMouseOverATypedAgentIsItsOwn(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.screens.Play(tuitest.AmberRiver, 80, 36, "\x1b[?1000h\x1b[?1006h")
		d.press("enter")
		d.wait(ms(100))
		d.send(click(45, 7))
		if got := d.typed(tuitest.AmberRiver); got != `input "\x1b[<0;6;6M"` {
			t.Errorf("the agent got %s", got)
		}
		d.press("ctrl+]")
		d.send(click(45, 7))
		if got := d.typed(tuitest.AmberRiver); strings.Count(got, "input") != 1 {
			t.Errorf("without the keyboard it got %s", got)
		}
	})
}
