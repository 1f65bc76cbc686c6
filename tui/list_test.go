package tui

import (
	"slices"
	"testing"
	"time"

	"fletch/state"
	"fletch/tui/tuitest"
)

func TestWhoNeedsThePersonStandsOnTop(t *testing.T) {
	f := tuitest.Drawn()
	p := listPane{}.sorted(f)
	want := []state.AgentID{tuitest.AmberRiver, tuitest.CalmCedar, tuitest.ElmStar, tuitest.FernLake, tuitest.BlueOtter, tuitest.GoldFinch, tuitest.DryLake, tuitest.HazelMoor}
	if p.needs != 3 || !slices.Equal(p.order, want) {
		t.Errorf("%d need: %v", p.needs, p.order)
	}
	f = f.Apply(state.Event{Seq: 101, Agent: tuitest.HazelMoor, Body: state.Asked{Request: tuitest.Push("9", tuitest.HazelMoor, "hazel-moor", tuitest.Newer, tuitest.Noon())}})
	if p = p.sorted(f); p.order[1] != tuitest.HazelMoor || p.order[2] != tuitest.CalmCedar {
		t.Errorf("a request stands below a question: %v", p.order)
	}
}

func TestNoRowMovesWithinASecondOfAKey(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j")
		d.happen(tuitest.GoldFinch, state.StatusChanged{Status: state.Waiting})
		d.wait(ms(900))
		if d.m.list.order[2] == tuitest.GoldFinch || d.m.list.needs != 3 {
			t.Fatal("a row moved under the eye")
		}
		d.sees("◆ gold-finch   asks you") // but it says so at once
		d.wait(ms(200))
		if d.m.list.needs != 4 {
			t.Errorf("after a second of quiet it is not sorted: %v", d.m.list.order)
		}
		if d.m.list.cursor != tuitest.CalmCedar {
			t.Errorf("the cursor is on %s", d.m.list.cursor)
		}
	})
}

func TestTheCursorFollowsTheAgent(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.does("last")
		d.does("up")
		if d.m.list.cursor != tuitest.DryLake {
			t.Fatalf("the cursor is on %s", d.m.list.cursor)
		}
		d.wait(2 * time.Second)
		d.happen(tuitest.DryLake, state.StatusChanged{Status: state.Failed})
		if d.m.list.cursor != tuitest.DryLake || d.m.list.needs != 4 {
			t.Errorf("the cursor is on %s", d.m.list.cursor)
		}
	})
}

func TestARemovedAgentLeavesTheCursorToItsNeighbour(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.press("j", "j", "j")
		a, _ := d.m.selected()
		d.happen(a.ID, state.Removed{Agent: a})
		if d.m.list.cursor != tuitest.BlueOtter {
			t.Errorf("the cursor is on %s", d.m.list.cursor)
		}
		d.does("last")
		a, _ = d.m.selected()
		d.happen(a.ID, state.Removed{Agent: a})
		if d.m.list.cursor != tuitest.DryLake {
			t.Errorf("the cursor is on %s", d.m.list.cursor)
		}
		for _, a := range d.hub.Fleet().Agents {
			d.happen(a.ID, state.Removed{Agent: a})
		}
		d.sees("No agents yet.")
	})
}

func TestNextGoesAroundThoseWhoNeedThePerson(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		for _, want := range []state.AgentID{tuitest.CalmCedar, tuitest.ElmStar, tuitest.AmberRiver} {
			d.does("next")
			if d.m.list.cursor != want {
				t.Errorf("next is %s, want %s", d.m.list.cursor, want)
			}
		}
		d.does("previous")
		if d.m.list.cursor != tuitest.ElmStar {
			t.Errorf("previous is %s", d.m.list.cursor)
		}
	})
}

func TestALongListKeepsTheCursorInSight(t *testing.T) {
	f := tuitest.Drawn()
	for i := range 60 {
		a := f.Agents[6]
		a.ID = state.AgentID("x" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
		a.Name = "extra-" + string(a.ID)
		f.Agents = append(f.Agents, a)
	}
	for _, size := range sizes {
		atDesk(t, scene{w: size[0], h: size[1], fleet: &f, options: bar}, func(d *desk) {
			for range len(f.Agents) {
				a, _ := d.m.selected()
				d.sees("▌")
				d.sees(a.Name)
				d.does("down")
			}
			d.does("first")
			d.sees("▌⚑ amber-river")
		})
	}
}

func TestClickingARowSelectsIt(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.send(click(5, 10))
		if d.m.list.cursor != tuitest.BlueOtter {
			t.Errorf("the cursor is on %s:\n%s", d.m.list.cursor, d.screen())
		}
		d.send(click(5, 30)) // below the list
		if d.m.list.cursor != tuitest.BlueOtter {
			t.Errorf("the cursor is on %s", d.m.list.cursor)
		}
	})
}

func TestSinceIsAClockTimeOrADay(t *testing.T) {
	now := tuitest.Noon()
	for at, want := range map[time.Time]string{now.Add(-time.Hour): "13:06", now.Add(-48 * time.Hour): "29 Nov", {}: ""} {
		if got := since(at, now); got != want {
			t.Errorf("since(%v) = %q, want %q", at, got, want)
		}
	}
}
