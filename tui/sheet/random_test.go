package sheet

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"fletch/state"
	"fletch/tui/diff"
)

func itoa(n int) string { return strconv.Itoa(n) }

// event is one thing that happened to a sheet, for the judge below.
type event struct {
	at   time.Time
	key  Key
	kind string // "key"; or "open", "patch", "resize", "moved"
	text bool   // the reason line had the cursor
	half bool   // the c of "[c"
}

func (e event) deliberate() bool {
	return e.kind == "key" && e.key.Name == "ctrl+y" && e.key.Text == "" && !e.key.Paste && !e.key.Repeat && !e.text
}

func (e event) moves() bool {
	return e.kind == "key" && !e.key.Paste && !e.text && (e.half || diff.Moves(e.key.Name) || e.key.Name == "[" || e.key.Name == "]")
}

func lastKey(log []event) event {
	for _, e := range slices.Backward(log) {
		if e.kind == "key" {
			return e
		}
	}
	return event{}
}

// judge says why an allow at the given time was wrong, knowing nothing but
// what happened. It is written against the rules, not against the sheet.
func judge(log []event, at time.Time, red bool) string {
	last := len(log) - 1
	if last < 0 || !log[last].deliberate() {
		return "the last key was no deliberate chord"
	}
	if at.Sub(log[last].at) < hold {
		return "it came less than 200 ms after the chord"
	}
	if why := armedBefore(log[:last], log[last].at); why != "" {
		return why
	}
	if !red {
		return ""
	}
	for i := last - 1; i >= 0; i-- {
		if log[i].deliberate() {
			if armedBefore(log[:i], log[i].at) == "" {
				return ""
			}
			continue
		}
		if !log[i].moves() {
			return "red, and no armed chord before: " + log[i].kind + " " + log[i].key.Name
		}
	}
	return "red, and there was no chord before"
}

// armedBefore wants a pause of 450 ms somewhere behind the last event that
// is not a move, up to the chord.
func armedBefore(log []event, chord time.Time) string {
	end := chord
	for _, e := range slices.Backward(log) {
		if end.Sub(e.at) >= quiet {
			return ""
		}
		if !e.moves() {
			return "there was no pause of 450 ms behind " + e.kind + " " + e.key.Name
		}
		end = e.at
	}
	return "no event at all"
}

func TestNoSequenceOfKeysAllowsWithoutAnArmedLoneDeliberateChord(t *testing.T) {
	const events = 120_000
	rng := rand.New(rand.NewPCG(7, 42))
	names := []string{
		"ctrl+y", "ctrl+y", "ctrl+y", "ctrl+y", "j", "k", "J", "G", "g", "h", "l", "space", "b", "[", "]", "c", "x", "ctrl+n", "esc", "q",
		"enter", "f", "y", "Y", "alt+y", "ctrl+shift+y", "tab", "o", "z", "ctrl+u", "ctrl+w", "left", "a", "backspace", "alt+j", "ctrl+c", "up",
	}
	pauses := []int{0, 0, 1, 20, 33, 100, 199, 200, 201, 300, 449, 450, 451, 460, 700, 2000}
	plain, force := request(nil), request(forced)
	moved, movedForce := request(func(p *state.Plan) { p.Commit = newer }), request(func(p *state.Plan) { forced(p); p.Commit = newer })
	moved.ID, movedForce.ID = "8", "8"
	patches := map[string]state.Patch{}
	for _, r := range []state.Request{plain, force, moved, movedForce} {
		p := patch(r)
		p.Diff = p.Diff[:600]
		patches[r.PlanHash] = p
	}
	allowedCount, deniedCount, n := 0, 0, 0
	for n < events {
		r, r2 := plain, moved
		red := rng.IntN(2) == 0
		if red {
			r, r2 = force, movedForce
		}
		now := t0
		s := New(r, agent(), 1, 2, now)
		log := []event{{at: now, kind: "open"}}
		patched, decided := false, false
		note := func(a Action) {
			d, ok := a.(Decide)
			if !ok {
				return
			}
			v := d.Verdict
			if decided {
				t.Fatalf("decided twice: %+v", log)
			}
			decided = true
			if v.Request != s.Request().ID {
				t.Fatalf("the verdict is about %s, the sheet about %s", v.Request, s.Request().ID)
			}
			if !v.Allow {
				deniedCount++
				return
			}
			allowedCount++
			if why := judge(log, now, red); why != "" {
				t.Fatalf("allowed, but %s: %+v", why, log)
			}
			if !patched || v.Commit != s.Request().Plan.Commit || v.Plan != s.Request().PlanHash || red != (len(v.Accept) == 3) {
				t.Fatalf("patched %v, verdict %+v", patched, v)
			}
		}
		for range 60 {
			n++
			end := now.Add(ms(pauses[rng.IntN(len(pauses))]))
			for at, ok := s.Deadline(); ok && !at.After(end); at, ok = s.Deadline() {
				now = at
				if rng.IntN(10) == 0 { // the program was busy
					now = at.Add(ms(rng.IntN(400)))
				}
				var a Action
				s, a = s.Tick(now)
				note(a)
			}
			if now.Before(end) {
				now = end
			}
			switch k := rng.IntN(100); {
			case k < 4:
				size := [][2]int{{80, 23}, {82, 38}, {60, 19}, {30, 10}}[rng.IntN(4)]
				if size[0] != s.w || size[1] != s.h {
					log = append(log, event{at: now, kind: "resize"})
				}
				s = s.Shown(size[0], size[1], now)
			case k < 8 && !decided:
				s, patched = s.WithPatch(patches[s.Request().PlanHash], nil, now), true
				log = append(log, event{at: now, kind: "patch"})
			case k < 9:
				s, patched = s.WithPatch(state.Patch{}, errGone, now), false
				log = append(log, event{at: now, kind: "patch"})
			case k < 10 && !decided && s.Request().ID == r.ID:
				s, patched = s.Moved(r2, now), false
				log = append(log, event{at: now, kind: "moved"})
			default:
				key := press(names[rng.IntN(len(names))])
				key.Paste, key.Repeat, key.Release = rng.IntN(20) == 0, rng.IntN(20) == 0, rng.IntN(20) == 0
				if !key.Release {
					e := event{at: now, key: key, kind: "key", text: s.TextFocus()}
					if before := lastKey(log); key.Name == "c" && before.moves() && (before.key.Name == "[" || before.key.Name == "]") {
						e.half = true
					}
					log = append(log, e)
				}
				var a Action
				s, a = s.Update(key, now)
				note(a)
			}
		}
	}
	if allowedCount < 100 || deniedCount < 20 {
		t.Errorf("only %d allows and %d denials in %d events: this proves little", allowedCount, deniedCount, n)
	}
	t.Logf("%d events, %d allows, %d denials", n, allowedCount, deniedCount)
}
