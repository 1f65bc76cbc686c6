package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/tui/tuitest"
)

// open2 is a fleet with two requests: of amber-river and of gold-finch.
func open2() *state.Fleet {
	f := tuitest.Drawn()
	f.Requests = append(f.Requests, tuitest.Push("8", tuitest.GoldFinch, "gold-finch", tuitest.Newer, tuitest.Noon()))
	return &f
}

func TestASheetOpensByItselfWhenNothingIsInTheWay(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40}, func(d *desk) {
		d.wait(ms(1400))
		if d.m.request != nil {
			t.Fatal("it opened before the keyboard was quiet")
		}
		d.press("j")
		d.wait(ms(1400))
		if d.m.request != nil {
			t.Fatal("a key did not put it off")
		}
		d.wait(ms(200))
		d.sees("request 1 of 1")
		d.sees("needs you") // the list stays visible from 110 columns
	})
}

func TestASheetNeverOpensOverSomethingElse(t *testing.T) {
	for name, play := range map[string]func(*desk){
		"help":           func(d *desk) { d.does("help") },
		"the form":       func(d *desk) { d.does("new") },
		"a confirmation": func(d *desk) { d.does("stop") },
		"the right side": func(d *desk) { d.does("right") },
		"a whole screen": func(d *desk) { d.does("whole") },
		"typing":         func(d *desk) { d.press("enter") },
	} {
		atDesk(t, scene{w: 120, h: 40}, func(d *desk) {
			play(d)
			d.wait(time.Minute)
			if d.m.request != nil {
				t.Errorf("it opened over %s", name)
			}
		})
	}
}

func TestWithBarASheetOpensOnlyWhenAsked(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.wait(time.Minute)
		if d.m.request != nil {
			t.Fatal("it opened by itself")
		}
		d.happen(tuitest.GoldFinch, state.Asked{Request: tuitest.Push("8", tuitest.GoldFinch, "gold-finch", tuitest.Newer, d.now())})
		d.sees("⚑ gold-finch asks to push   r")
		d.does("review")
		d.sees("request 1 of 2")
		d.sees("amber-river asks")
	})
}

func TestARequestPutOffDoesNotReopen(t *testing.T) {
	for _, key := range []string{"esc", "q"} {
		atDesk(t, scene{w: 120, h: 40}, func(d *desk) {
			d.wait(2 * time.Second)
			d.press(key)
			d.wait(time.Minute)
			if d.m.request != nil || d.quit {
				t.Fatalf("after %s it opened again, or the dashboard closed", key)
			}
			d.happen(tuitest.GoldFinch, state.Asked{Request: tuitest.Push("8", tuitest.GoldFinch, "gold-finch", tuitest.Newer, d.now())})
			d.wait(time.Minute)
			d.sees("gold-finch asks")
		})
	}
}

func TestAllowNamesWhatWasOnTheScreen(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.press("ctrl+y")
		d.wantsNot("decide")
		d.wait(ms(300))
		d.wants("decide 7 allow=true commit=9f3c1e7")
		d.sees("✓ pushed  9f3c1e7 to acme/shop fletch/amber-river")
		if d.m.request != nil {
			t.Error("the sheet is still open")
		}
		d.wait(toastTime)
		d.seesNot("pushed")
	})
}

func TestAnotherKeyStopsAnAllow(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.press("ctrl+y")
		d.wait(ms(100))
		d.press("j")
		d.wait(time.Minute)
		d.wantsNot("decide")
	})
}

func TestNoOtherKeyAndNoPasteAllows(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		for _, key := range []string{"y", "Y", "enter", "space", "ctrl+alt+y", "ctrl+shift+y", "ctrl+j", "a", "1"} {
			d.wait(time.Second)
			d.send(keyPressMods(key))
		}
		d.wait(time.Second)
		d.send(tea.PasteMsg{Content: "\x19"})
		d.wait(time.Minute)
		d.wantsNot("decide")
	})
}

func keyPressMods(name string) tea.Msg {
	switch name {
	case "ctrl+alt+y":
		return tea.KeyPressMsg{Code: 'y', Mod: tea.ModCtrl | tea.ModAlt}
	case "ctrl+shift+y":
		return tea.KeyPressMsg{Code: 'y', Mod: tea.ModCtrl | tea.ModShift}
	}
	return keyPress(name)
}

func TestDenyTellsTheAgentWhy(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.press("x")
		d.wait(time.Second)
		d.press("n", "o", "q", "?")
		d.press("ctrl+y") // not in a text field
		d.wait(time.Second)
		d.press("enter")
		d.wants(`decide 7 allow=false commit= reason="noq?"`)
		d.sees("✓ denied;  claude was told why")
		d.wait(time.Minute)
		if strings.Contains(strings.Join(d.hub.Calls(), " "), "allow=true") {
			t.Error("it was allowed as well")
		}
	})
}

func TestAHeadThatMovesStartsTheSheetOver(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.press("ctrl+y")
		d.wait(ms(100))
		d.happen(tuitest.AmberRiver, state.Withdrawn{Request: "7", Why: "replaced"})
		d.wait(ms(50))
		d.press("ctrl+y")
		d.happen(tuitest.AmberRiver, state.Asked{Request: tuitest.Push("8", tuitest.AmberRiver, "amber-river", tuitest.Newer, d.now())})
		d.sees("amber-river moved on while you read: 9f3c1e7 is now 77ab901")
		d.wait(time.Minute)
		d.wantsNot("decide")
		d.press("ctrl+y")
		d.wait(time.Second)
		d.wants("decide 8 allow=true commit=77ab901")
	})
}

func TestTheNextRequestDisarmsAgain(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, fleet: open2(), options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.press("tab")
		d.sees("gold-finch asks")
		d.press("ctrl+y")
		d.wait(ms(300))
		d.wantsNot("decide")
		d.wait(time.Second)
		d.press("ctrl+y")
		d.wait(ms(300))
		d.wants("decide 8 allow=true commit=77ab901")
	})
}

func TestOnePressNeverAnswersTwoRequests(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, fleet: open2()}, func(d *desk) {
		d.wait(ms(2500))
		for range 3 { // a key that is held
			d.press("ctrl+y")
		}
		d.wait(time.Minute)
		if n := strings.Count(strings.Join(d.hub.Calls(), "\n"), "decide"); n > 1 {
			t.Errorf("one press gave %d answers", n)
		}
	})
}

func TestARequestSettledElsewhereCloses(t *testing.T) {
	for want, body := range map[string]state.Body{
		"already denied in another window":      state.Decided{Verdict: state.Verdict{Request: "7"}},
		"already allowed in another window":     state.Decided{Verdict: state.Verdict{Request: "7", Allow: true}},
		"amber-river no longer asks":            state.Withdrawn{Request: "7", Why: "x"},
		"amber-river is gone; its request too":  state.Removed{Agent: tuitest.Drawn().Agents[0]},
		"nothing that anybody would see at all": nil,
	} {
		atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
			d.press("r")
			if body == nil {
				return
			}
			d.happen(tuitest.AmberRiver, body)
			d.wait(successor)
			if d.m.request != nil {
				t.Errorf("%q: the sheet is still open", want)
			}
			d.sees(want)
		})
	}
}

func TestAnAnswerThatDidNotArriveIsAskedAgain(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.hub.Fail(errors.New("the disk is full"))
		d.press("ctrl+y")
		d.wait(ms(300))
		d.sees("request 1 of 1")
		d.wait(ms(500))
		d.sees("the disk is full")
		d.hub.Fail(nil)
		d.wait(time.Minute)
		d.seesNot("pushed")
		d.press("ctrl+y")
		d.wait(ms(300))
		d.sees("pushed")
	})
}

func TestHelpOverARequestStartsItsLocksOver(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.press("?")
		d.sees("allow, after a moment without a key")
		d.wait(time.Minute)
		d.press("ctrl+y", "esc", "ctrl+y")
		d.wait(ms(300))
		d.wantsNot("decide")
		d.sees("request 1 of 1")
		d.wait(time.Second)
		d.press("ctrl+y")
		d.wait(ms(300))
		d.wants("decide 7 allow=true")
	})
}

func TestAResizeStartsTheLocksOver(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.send(tea.WindowSizeMsg{Width: 100, Height: 30})
		d.press("ctrl+y")
		d.wait(ms(300))
		d.wantsNot("decide")
	})
}

func TestATerminalTooSmallNeverAllows(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.send(tea.WindowSizeMsg{Width: 30, Height: 8})
		d.wait(time.Second)
		d.press("ctrl+y")
		d.wait(time.Second)
		d.wantsNot("decide")
	})
}

func TestZMakesTheSheetWide(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("r")
		d.wait(time.Second)
		d.press("z")
		d.seesNot("needs you")
		d.sees("request 1 of 1")
		d.press("z")
		d.sees("needs you")
	})
}

func TestAPushThatFailedStaysUntilEsc(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.happen(tuitest.AmberRiver, state.Decided{Verdict: state.Verdict{Request: "7", Allow: true}})
		d.happen(tuitest.AmberRiver, state.PublishFailed{Request: "7", Outcome: "the remote refused (protected branch)"})
		d.wait(time.Hour)
		d.press("j", "k")
		d.sees("not pushed: the remote refused (protected branch)")
		d.press("esc")
		d.seesNot("not pushed")
		if d.quit {
			t.Error("esc left the dashboard")
		}
	})
}

func TestASuccessorAfterAllowSaysNothingFalse(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, fleet: open2()}, func(d *desk) {
		d.wait(ms(2500))
		d.press("ctrl+y")
		d.wait(ms(300))
		d.sees("pushed")
		d.wait(2 * time.Second)
		d.sees("gold-finch asks")
		d.seesNot("moved on")
	})
}
