package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/tui/tuitest"
)

func TestTheBellRingsOnceForEachNewNeed(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.wait(time.Minute)
		if len(d.raw) != 0 {
			t.Fatalf("it rang for what was there: %q", d.raw)
		}
		d.happen(tuitest.BlueOtter, state.StatusChanged{Status: state.Done})
		d.happen(tuitest.GoldFinch, state.StatusChanged{Status: state.Waiting})
		d.wait(time.Minute)
		if !slices.Equal(d.raw, []string{"\a"}) {
			t.Fatalf("a burst rang %q", d.raw)
		}
		d.happen(tuitest.GoldFinch, state.StatusChanged{Status: state.Waiting, Reason: "still"})
		d.wait(time.Minute)
		if len(d.raw) != 1 {
			t.Error("it rang again for the same need")
		}
		d.happen(tuitest.GoldFinch, state.Asked{Request: tuitest.Push("8", tuitest.GoldFinch, "gold-finch", tuitest.Newer, d.now())})
		d.wait(time.Minute)
		if len(d.raw) != 2 {
			t.Error("a request above a question did not ring")
		}
	})
}

func TestTheBellIsQuietForTheAgentInView(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("enter")
		d.happen(tuitest.AmberRiver, state.Withdrawn{Request: "7"})
		d.happen(tuitest.AmberRiver, state.StatusChanged{Status: state.Waiting})
		d.wait(time.Minute)
		if len(d.raw) != 0 {
			t.Error("it rang for the agent that is typed to")
		}
		d.happen(tuitest.AmberRiver, state.StatusChanged{Status: state.Working})
		d.send(tea.BlurMsg{})
		d.happen(tuitest.AmberRiver, state.StatusChanged{Status: state.Waiting})
		d.wait(time.Minute)
		if len(d.raw) != 1 {
			t.Error("it did not ring in a window that nobody looks at")
		}
	})
}

func TestWhatIsOverAtOnceDoesNotRing(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.happen(tuitest.BlueOtter, state.StatusChanged{Status: state.Waiting})
		d.wait(ms(100))
		d.happen(tuitest.BlueOtter, state.StatusChanged{Status: state.Working})
		d.wait(time.Minute)
		if len(d.raw) != 0 {
			t.Error("it rang")
		}
	})
}

func TestTheTitleCountsWhoWaits(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		if got := d.m.View().WindowTitle; got != "(2) fletch" {
			t.Errorf("the title is %q", got)
		}
	})
}

func TestAnIdleFleetArmsNoTimer(t *testing.T) {
	f := tuitest.Drawn()
	f.Requests = nil
	atDesk(t, scene{w: 120, h: 40, fleet: &f}, func(d *desk) {
		d.press("j", "k", "2", "1")
		d.wait(time.Minute)
		if !d.m.armed.IsZero() {
			t.Fatalf("a timer is armed for %v", d.m.armed)
		}
		before := d.screen()
		messages := 0
		timer := time.NewTimer(time.Hour)
		for waiting := true; waiting; {
			select {
			case msg := <-d.msgs:
				messages++
				t.Errorf("a message came: %T", msg)
				d.take(msg)
			case <-timer.C:
				waiting = false
			}
		}
		if messages > 0 || d.screen() != before {
			t.Error("something happened by itself")
		}
	})
}

func TestALookMarksAFinishedTurnAsSeen(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j", "j", "j", "j")
		d.wait(time.Minute)
		d.wantsNot("seen") // passed over in no time
		d.press("k")
		d.wait(ms(900))
		d.wantsNot("seen")
		d.wait(ms(200))
		d.wants("seen dddddddd")
		d.sees("○ fern-lake    idle")
	})
}

func TestWhatIsDoneWhileNobodyIsThereStaysUnseen(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j", "j", "j", "j")
		d.wait(time.Minute)
		d.happen(tuitest.BlueOtter, state.StatusChanged{Status: state.Done})
		d.wait(time.Hour)
		d.wantsNot("seen eeeeeeee")
		d.press("M")
		d.wait(2 * time.Second)
		d.wants("seen eeeeeeee")
	})
}

func TestOnReturnItSaysWhatHappened(t *testing.T) {
	f := tuitest.Drawn()
	f.News = []state.Event{
		{At: tuitest.Noon(), Agent: tuitest.FernLake, Body: state.StatusChanged{Status: state.Done}},
		{At: tuitest.Noon(), Agent: tuitest.ElmStar, Body: state.StatusChanged{Status: state.Failed}},
		{At: tuitest.Noon(), Agent: tuitest.AmberRiver, Body: state.Asked{}},
	}
	atDesk(t, scene{w: 120, h: 40, fleet: &f, options: bar}, func(d *desk) {
		d.wait(time.Hour)
		d.sees("since 12:00: 1 done, 1 failed, 1 asks to push, 1 asks you")
		d.press("j")
		d.seesNot("since 12:00")
		d.sees("next who needs you")
	})
}

func TestAToastGoesWithTheNextKeyWhichStillWorks(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("ctrl+c")
		d.sees("q leaves; agents go on")
		if d.quit {
			t.Fatal("ctrl+c left")
		}
		d.press("j")
		d.seesNot("q leaves; agents go on")
		if d.m.list.cursor != tuitest.CalmCedar {
			t.Error("the key did nothing but close the toast")
		}
		d.press("ctrl+c")
		d.wait(toastTime - ms(100))
		d.sees("q leaves; agents go on")
		d.wait(ms(200))
		d.seesNot("q leaves; agents go on")
	})
}

func TestOnlyQLeaves(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		for _, key := range []string{"esc", "ctrl+c", "tab", "q", "z", "q", "?", "q", "n", "esc", "x", "q", "r", "q", "ctrl+l"} {
			d.press(key)
		}
		if d.quit {
			t.Fatal("something else left")
		}
		if d.cleared != 1 {
			t.Errorf("ctrl+l drew again %d times", d.cleared)
		}
		d.press("q")
		if !d.quit {
			t.Error("q did not leave")
		}
	})
}

func TestAStreamThatEndsIsReadAgain(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j")
		d.hub.Drop()
		d.settle()
		d.happen(tuitest.BlueOtter, state.StatusChanged{Status: state.Failed})
		d.wait(2 * time.Second)
		d.sees("✗ blue-otter   failed")
		if d.m.list.cursor != tuitest.CalmCedar {
			t.Errorf("the cursor is on %s", d.m.list.cursor)
		}
	})
}

// deaf is a hub that does not answer.
type deaf struct {
	*tuitest.Hub
	tries *int
}

func (h deaf) Watch(ctx context.Context) (state.Fleet, <-chan state.Event, error) {
	*h.tries++
	if *h.tries < 5 {
		return state.Fleet{}, nil, errors.New("connection refused")
	}
	return h.Hub.Watch(ctx)
}

func TestAHubThatDoesNotAnswerIsAskedAgainEverLessOften(t *testing.T) {
	tries := 0
	atDesk(t, scene{w: 120, h: 40, options: func(o *Options) { o.Hub = deaf{o.Hub.(*tuitest.Hub), &tries} }}, func(d *desk) {
		d.sees("the hub does not answer: connection refused")
		d.wait(ms(10_500)) // 1 + 2 + 4 s
		if tries != 4 {
			t.Errorf("%d tries", tries)
		}
		d.wait(10 * time.Second)
		d.sees("amber-river")
		d.seesNot("the hub does not answer")
	})
}

func TestChangesAreReadAgainOnlyAtTheTop(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("2", "tab")
		d.sees("checkout/retry.go")
		d.press("j", "j", "j")
		d.hub.SetPatch("", tuitest.AmberRiver, state.Patch{Base: tuitest.Base})
		d.happen(tuitest.AmberRiver, state.Measured{Work: state.Work{Files: 9}})
		d.sees("changed since you read it")
		d.sees("checkout/retry.go")
		d.press("R")
		d.sees("No changes since main@1a2b3c4.")
	})
}

func TestEachTabFollowsTheCursor(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("3")
		d.sees("Nothing yet.")
		d.happen(tuitest.CalmCedar, state.Noticed{Kind: "refused", Text: "git fetch of evil"})
		d.seesNot("git fetch of evil")
		d.press("j")
		d.sees("git fetch of evil")
		d.happen(tuitest.CalmCedar, state.Noticed{Kind: "info", Text: "second"})
		d.happen(tuitest.CalmCedar, state.Noticed{Kind: "info", Text: "third"})
		d.sees("third")
		if n := strings.Count(d.screen(), "second"); n != 1 {
			t.Errorf("an event is shown %d times", n)
		}
	})
}

func TestTheScreenOfAnAgentThatEndedSaysHow(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j", "j")
		d.sees("exit status 56")
		d.sees("failed: its program ended with 56")
		d.sees("enter continues it")
	})
}

func TestBeforeTheFleetIsReadNothingIsSaidAboutIt(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: func(o *Options) { o.Hub = deaf{o.Hub.(*tuitest.Hub), new(int)} }}, func(d *desk) {
		d.seesNot("No agents yet")
		d.seesNot("nobody needs you")
		d.sees("reading the fleet …")
		d.press("r", "enter", "x", "2", "z", "j", "esc")
	})
}

func TestMarksOfTwoCellsBecomeASCII(t *testing.T) {
	for name, sc := range map[string]struct {
		report tea.CursorPositionMsg
		plain  bool
	}{
		"one cell each":          {tea.CursorPositionMsg{X: 5, Y: 1}, false},
		"two cells each":         {tea.CursorPositionMsg{X: 10, Y: 1}, true},
		"some of two":            {tea.CursorPositionMsg{X: 8, Y: 1}, true},
		"a report of else where": {tea.CursorPositionMsg{X: 10, Y: 9}, false},
	} {
		atDesk(t, scene{w: 80, h: 24, options: bar}, func(d *desk) {
			d.send(sc.report) // nobody has asked yet
			d.sees("⚑")
			d.wait(time.Second)
			if d.asked != 1 || d.cleared != 1 {
				t.Fatalf("%s: asked %d times, drew again %d times", name, d.asked, d.cleared)
			}
			d.send(sc.report)
			if plain := strings.Contains(d.screen(), "=? amber-river"); plain != sc.plain {
				t.Errorf("%s: ASCII is %v", name, plain)
			}
			d.wait(time.Hour)
			if d.asked != 1 {
				t.Errorf("%s: asked again", name)
			}
		})
	}
	atDesk(t, scene{w: 80, h: 24, options: func(o *Options) { o.Env = []string{"LANG=C"} }}, func(d *desk) {
		d.wait(time.Second)
		if d.asked != 0 {
			t.Error("asked though everything is ASCII")
		}
	})
}

func TestAScreenThatCannotBeOpenedIsTriedAgain(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.screens.Fail(errors.New("connection refused"))
		d.press("j")
		d.sees("its screen cannot be shown: connection refused")
		d.press("enter", "1")
		d.wait(2 * time.Second)
		d.screens.Fail(nil)
		d.wait(10 * time.Second)
		d.sees("Would you like to run the following command?")
		d.seesNot("cannot be shown")
		if got := d.typed(tuitest.CalmCedar); got != "" {
			t.Errorf("what was typed into the void came through: %s", got)
		}
		d.press("2")
		if got := d.typed(tuitest.CalmCedar); got != `input "2"` {
			t.Errorf("the agent got %s", got)
		}
		d.wait(time.Minute)
		if !d.m.armed.IsZero() {
			t.Error("it is tried again though it is there")
		}
	})
}

func TestASlowStartShowsABar(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.does("last")
		d.sees("◌ starting: checking out 40 %")
		d.sees(strings.Repeat("━", 16) + strings.Repeat("─", 24))
		d.press("enter")
		d.sees("hazel-moor is still starting")
	})
}

func TestAnAgentThatWasNamedIsTypedToAtOnce(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: func(o *Options) { o.Agent = tuitest.GoldFinch }}, func(d *desk) {
		d.sees("every key goes to gold-finch")
		d.wait(time.Second)
		d.press("x")
		if got := d.typed(tuitest.GoldFinch); !strings.HasSuffix(got, `input "x"`) {
			t.Errorf("the agent got %s", got)
		}
		d.press("ctrl+]", "esc")
		d.sees("needs you")
	})
}

func TestTheCursorLooksAsTheAgentWants(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		if d.m.View().Cursor != nil {
			t.Error("there is a cursor though nothing is typed")
		}
		d.press("enter")
		d.screens.Play(tuitest.AmberRiver, 80, 36, "\x1b[6 q\x1b[3;5H")
		d.wait(ms(100))
		c := d.m.View().Cursor
		if c == nil || c.X != 44 || c.Y != 4 || c.Shape != tea.CursorBar || c.Blink {
			t.Errorf("the cursor is %+v", c)
		}
	})
}
