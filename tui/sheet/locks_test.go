package sheet

import (
	"strings"
	"testing"
	"time"

	"fletch/state"
)

// allows runs a script of keys and pauses and says whether s allowed in it.
func allows(t *testing.T, s Sheet, now time.Time, script string) bool {
	t.Helper()
	s, _, a := run(s, now, script)
	d, ok := a.(Decide)
	if !ok {
		return false
	}
	if !d.Verdict.Allow {
		return false
	}
	if _, _, again := run(s, now.Add(time.Hour), "1000 ctrl+y 1000 ctrl+y 1000"); !isNone(again) {
		t.Errorf("%q: decided twice: %#v", script, again)
	}
	return true
}

func TestTheChordAllowsExactlyWhatWasShown(t *testing.T) {
	r := request(nil)
	s, now := ready(t, r)
	_, _, a := run(s, now, "ctrl+y 200")
	v := verdict(t, a)
	if !v.Allow || v.Request != "7" || v.Commit != head || v.Plan != r.PlanHash || len(v.Accept) != 0 || v.Reason != "" {
		t.Errorf("got %+v", v)
	}
}

// Lock 1.

func TestASheetIsDeadUntilTheKeyboardHasBeenQuiet(t *testing.T) {
	for script, want := range map[string]bool{
		"ctrl+y 1000":                    false, // the key was meant for something else
		"449 ctrl+y 1000":                false,
		"450 ctrl+y 1000":                true,
		"449 ctrl+y 450 ctrl+y 200":      true,
		"300 a 449 ctrl+y 1000":          false,
		"300 a 450 ctrl+y 200":           true,
		"300 j 300 ctrl+y 1000":          false, // not quiet yet: any key counts
		"300 j 450 ctrl+y 200":           true,
		"y e s ctrl+y 1000":              false,
		"enter enter enter ctrl+y 1000":  false,
		"450 enter ctrl+y 1000":          false,
		"450 space 0 ctrl+y 200":         true,
		"450 j j J K g G h l ctrl+y 200": true, // whoever reads stays armed
		"450 ] c [ c ctrl+y 200":         true,
		"450 c ctrl+y 200":               false,
		"450 ] x esc ctrl+y 200":         false,
		"450 y ctrl+y 200":               false,
		"450 o ctrl+y 200":               false,
		"450 f ctrl+y 200":               false,
	} {
		if got := allows(t, open(request(nil), 80, 23), t0, script); got != want {
			t.Errorf("%q: allowed is %v, want %v", script, got, want)
		}
	}
}

func TestNothingArmsWithoutATick(t *testing.T) {
	s := open(request(nil), 80, 23)
	late := t0.Add(time.Minute)
	s, _ = s.Update(press("ctrl+y"), late)
	if s, a := s.Tick(late.Add(hold)); !isNone(a) || s.Armed() {
		t.Error("a screen that still said “hands off” was answered")
	}
}

func TestASheetThatIsNotOnTheScreenNeverArms(t *testing.T) {
	s := New(request(nil), agent(), 1, 2, t0).WithPatch(patch(request(nil)), nil, t0)
	if _, ok := s.Deadline(); ok || allows(t, s, t0, "5000 ctrl+y 5000") {
		t.Error("nobody has seen it")
	}
}

func TestAnotherSizeDisarms(t *testing.T) {
	s, now := ready(t, request(nil))
	if s = s.Shown(80, 23, now); !s.Armed() {
		t.Error("the same size disarms")
	}
	s = s.Shown(120, 38, now)
	if s.Armed() || allows(t, s, now, "ctrl+y 1000") || allows(t, s, now, "449 ctrl+y 1000") {
		t.Error("armed right after a resize")
	}
	if !allows(t, s, now, "450 ctrl+y 200") {
		t.Error("never arms again")
	}
}

func TestNextRequestDisarmsAgain(t *testing.T) {
	s, now := ready(t, request(nil))
	r := request(func(p *state.Plan) { p.Ref = "refs/heads/fletch/other" })
	r.ID, r.Agent = "8", "bbbbbbbb"
	next := s.Moved(r, now).WithPatch(patch(r), nil, now)
	if next.Armed() || allows(t, next, now, "ctrl+y 1000") {
		t.Error("the next request is armed")
	}
	if strings.Contains(view(next, 80, 23), "moved on") {
		t.Error("another request is said to have moved")
	}
}

func TestEveryFactMustHaveBeenOnTheScreen(t *testing.T) {
	r := request(forced) // 11 rows of facts in a compact sheet, 5 in sight
	for script, want := range map[string]bool{
		"5000 ctrl+y 450 ctrl+y 200":                                        false,
		"100 j 500 ctrl+y 450 ctrl+y 200":                                   false,
		"100 G 500 ctrl+y 450 ctrl+y 200":                                   false, // 5 rows at a time
		"100 space space space space 500 ctrl+y 450 ctrl+y 200":             false, // queued keys show nothing
		"100 j j j j j j j j j j j j 500 ctrl+y 450 ctrl+y 200":             false,
		"100 space 100 space 100 450 ctrl+y 450 ctrl+y 200":                 true,
		"100 j 60 j 60 j 60 j 60 j 60 j 450 ctrl+y 450 ctrl+y 200":          true,
		"100 space 100 space 100 g 450 ctrl+y 450 ctrl+y 200":               true,
		"100 G 100 G 450 ctrl+y 450 ctrl+y 200":                             true,
		"100 space 100 space 10 k 450 ctrl+y 450 ctrl+y 200":                false, // the last row was there for 10 ms
		"100 J J J 500 ctrl+y 450 ctrl+y 200":                               false,
		"100 space 100 space 100 x 400 esc 450 ctrl+y 450 ctrl+y 200":       true,
		"100 space 100 space 100 450 ctrl+y 440 ctrl+y 200 450 ctrl+y 1000": true,
	} {
		if got := allows(t, open(r, 40, 10), t0, script); got != want {
			t.Errorf("%q: allowed is %v, want %v", script, got, want)
		}
	}
}

func TestFactsMustBeSeenAgainAtAnotherSize(t *testing.T) {
	s, now := ready(t, request(forced))
	s = s.Shown(40, 10, now)
	if allows(t, s, now, "1000 ctrl+y 450 ctrl+y 200") {
		t.Error("seen at 80×23 counts for 40×10, where they are not in sight")
	}
	if !strings.Contains(view(s, 40, 10), "facts 1–5 of 11") || !strings.Contains(view(s, 40, 10), "rest of the facts") {
		t.Errorf("does not say that there is more:\n%s", view(s, 40, 10))
	}
}

func TestFactsThatWereReadAreNotInSightAfterAResize(t *testing.T) {
	s, now, _ := run(open(request(forced), 40, 10), t0, "100 space 100 space 500")
	if allows(t, s.Shown(41, 10, now), now, "1000 ctrl+y 450 ctrl+y 200") {
		t.Error("rows that were read at another width count for this one")
	}
}

func TestReadingOnShowsTheFactsAndThenTheDiff(t *testing.T) {
	s, now, _ := run(open(request(forced), 40, 10), t0, "100 j 100 j 100 j 100 j 100 j 100 j 100")
	if !strings.Contains(view(s, 40, 10), "facts 7–11 of 11") || !strings.Contains(view(s, 40, 10), "1–2 of") {
		t.Fatalf("got\n%s", view(s, 40, 10))
	}
	s, now, _ = run(s, now, "j j")
	if !strings.Contains(view(s, 40, 10), "3–4 of") {
		t.Errorf("j does not go on into the diff:\n%s", view(s, 40, 10))
	}
	s, now, _ = run(s, now, "k k k")
	if !strings.Contains(view(s, 40, 10), "facts 6–10 of 11") {
		t.Errorf("k does not come back into the facts:\n%s", view(s, 40, 10))
	}
	if s, _, _ = run(s, now, "G g"); !strings.Contains(view(s, 40, 10), "facts 1–5 of 11") {
		t.Errorf("g does not go to the top:\n%s", view(s, 40, 10))
	}
}

// Lock 2.

func TestOnlyTheExactChordAllows(t *testing.T) {
	for _, name := range []string{
		"y", "Y", "ctrl+Y", "ctrl+shift+y", "alt+ctrl+y", "ctrl+alt+y", "alt+y", "super+y", "meta+ctrl+y", "shift+ctrl+y",
		"enter", "space", "ctrl+j", "ctrl+m", "ctrl+n", "ctrl+z", "a", "1", "tab", "", "ctrl+y ", "CTRL+Y", "f1", "return",
	} {
		s, now := ready(t, request(nil))
		s, a := s.Update(Key{Name: name}, now)
		if d, ok := a.(Decide); ok {
			t.Errorf("%q decides %+v", name, d)
		}
		if _, a := s.Tick(now.Add(hold)); !isNone(a) {
			t.Errorf("%q allows", name)
		}
	}
}

func TestPasteNeverAllows(t *testing.T) {
	for _, text := range []string{"\x19", "ctrl+y", "y\n", ""} {
		s, now := ready(t, request(nil))
		s, _ = s.Update(Key{Name: "ctrl+y", Text: text, Paste: true}, now)
		if _, a := s.Tick(now.Add(hold)); !isNone(a) || s.Armed() {
			t.Errorf("pasting %q: %#v, armed %v", text, a, s.Armed())
		}
	}
	s, now := ready(t, request(nil))
	s, _ = s.Update(Key{Name: "ctrl+y", Text: "y"}, now)
	if _, a := s.Tick(now.Add(hold)); !isNone(a) {
		t.Error("a ctrl+y that types something allows")
	}
}

func TestAKeyThatIsHeldDownNeverAllows(t *testing.T) {
	// Held down from before: the terminal repeats it after a pause that may
	// be longer than the quiet time, then fast.
	for _, delay := range []int{200, 449, 450, 660, 1000} {
		for _, every := range []int{10, 33, 100, 199} {
			s, now, a := run(open(request(nil), 80, 23), t0, itoa(delay)+" ctrl+y")
			for range 50 {
				var b Action
				if s, now, b = run(s, now, itoa(every)+" ctrl+y"); !isNone(b) {
					a = b
				}
			}
			if !isNone(a) {
				t.Errorf("after %d ms, every %d ms: %#v", delay, every, a)
			}
		}
	}
	s, now := ready(t, request(nil))
	s, _ = s.Update(Key{Name: "ctrl+y", Repeat: true}, now)
	if _, a := s.Tick(now.Add(hold)); !isNone(a) || s.Armed() {
		t.Error("a repeat that the terminal names as one allows")
	}
}

func TestReleasesAreNoKeys(t *testing.T) {
	s, now := ready(t, request(nil))
	s, a := s.Update(Key{Name: "ctrl+y", Release: true}, now)
	if !isNone(a) || !s.Armed() || !s.due.IsZero() {
		t.Error("a release did something")
	}
	s, _ = s.Update(press("ctrl+y"), now)
	s, _ = s.Update(Key{Name: "ctrl+y", Release: true}, now.Add(ms(80)))
	if _, a = s.Tick(now.Add(hold)); isNone(a) {
		t.Error("letting the chord go stops it")
	}
}

func TestTheChordIsDeadWhileTheReasonHasTheCursor(t *testing.T) {
	for _, script := range []string{"450 x ctrl+y 5000 ctrl+y 5000", "450 x 5000 ctrl+y 5000", "450 ctrl+n 5000 ctrl+y 5000 ctrl+y 5000", "450 x 1000 esc ctrl+y 1000", "450 x 1000 alt+j ctrl+y 1000"} {
		if allows(t, open(request(nil), 80, 23), t0, script) {
			t.Errorf("%q allows", script)
		}
	}
	if !allows(t, open(request(nil), 80, 23), t0, "450 x 1000 esc 450 ctrl+y 200") {
		t.Error("going back does not bring the chord back")
	}
}

// Lock 3.

func TestAnyKeyWithin200MillisecondsStopsTheChord(t *testing.T) {
	for _, name := range []string{"j", "k", "a", "enter", "space", "ctrl+y", "ctrl+c", "up", "esc", "tab", "x", "G", "]"} {
		s, now := ready(t, request(nil))
		s, _ = s.Update(press("ctrl+y"), now)
		if _, a := s.Tick(now.Add(ms(199))); !isNone(a) {
			t.Fatal("allowed before the time was up")
		}
		s, _ = s.Update(press(name), now.Add(ms(199)))
		for _, later := range []int{200, 449, 1000} {
			if _, a := s.Tick(now.Add(ms(later))); !isNone(a) {
				t.Errorf("%q does not stop it: %#v", name, a)
			}
		}
		if s.Armed() {
			t.Errorf("after %q the sheet is still armed", name)
		}
	}
	s, now := ready(t, request(nil))
	s, _ = s.Update(press("ctrl+y"), now)
	s, _ = s.Update(Key{Text: "hello", Paste: true}, now.Add(ms(10)))
	if _, a := s.Tick(now.Add(hold)); !isNone(a) {
		t.Error("a paste does not stop it")
	}
}

func TestAStalledProgramWaitsForTheKeysBehindTheTick(t *testing.T) {
	s, now := ready(t, request(nil))
	s, _ = s.Update(press("ctrl+y"), now)
	late := now.Add(2 * time.Second)
	s, a := s.Tick(late)
	if !isNone(a) {
		t.Fatal("allowed by a tick that came two seconds late")
	}
	stopped, _ := s.Update(press("esc"), late.Add(ms(1)))
	if _, a := stopped.Tick(late.Add(hold)); !isNone(a) {
		t.Error("the key that was waiting did not stop it")
	}
	if _, a := s.Tick(late.Add(hold)); isNone(a) {
		t.Error("with no such key it is never carried out")
	}
}

func TestAPatchThatGoesAwayStopsTheChord(t *testing.T) {
	s, now := ready(t, request(nil))
	s, _ = s.Update(press("ctrl+y"), now)
	s = s.WithPatch(state.Patch{}, errGone, now.Add(ms(100)))
	if _, a := s.Tick(now.Add(hold)); !isNone(a) {
		t.Errorf("got %#v", a)
	}
}

// Lock 4.

func TestRedFactsNeedTheChordTwice(t *testing.T) {
	for script, want := range map[string]bool{
		"450 ctrl+y 10000":                               false,
		"450 ctrl+y 449 ctrl+y 1000":                     false,
		"450 ctrl+y 450 ctrl+y 200":                      true,
		"450 ctrl+y 450 ctrl+y 100 j 1000":               false,
		"450 ctrl+y 450 j ctrl+y 200":                    true,
		"450 ctrl+y 200 j 449 ctrl+y 1000":               false,
		"450 ctrl+y 200 j 450 ctrl+y 200":                true,
		"450 ctrl+y 200 a 450 ctrl+y 1000":               false, // the question is withdrawn, this asks it anew
		"450 ctrl+y 200 a 450 ctrl+y 450 ctrl+y 200":     true,
		"450 ctrl+y 500 x 400 esc 450 ctrl+y 1000":       false,
		"450 ctrl+y 100 ctrl+y 1000":                     false,
		"450 ctrl+y 100 ctrl+y 450 ctrl+y 200":           true, // still asked; the early one only made it wait
		"450 ctrl+y 450 ctrl+y 33 ctrl+y 33 ctrl+y 1000": false,
	} {
		if got := allows(t, open(request(forced), 80, 23), t0, script); got != want {
			t.Errorf("%q: allowed is %v, want %v", script, got, want)
		}
	}
	s, now := ready(t, request(forced))
	_, _, a := run(s, now, "ctrl+y 450 ctrl+y 200")
	if got := strings.Join(verdict(t, a).Accept, " "); got != "force secret unpushed" {
		t.Errorf("accepts %q", got)
	}
}

func TestTheSecondChordIsAskedForByName(t *testing.T) {
	named := func(flags ...string) state.Request {
		return request(func(p *state.Plan) {
			p.Flags = nil
			for _, f := range flags {
				p.Flags = append(p.Flags, state.Flag{Name: f, Red: true, Text: f})
			}
		})
	}
	for want, r := range map[string]state.Request{
		"publish the secret?   ctrl+y again   x deny   esc later":             named("secret", "secret"),
		"publish the secret, and 1 more?   ctrl+y again   x deny   esc later": named("unpushed", "secret"),
		"publish your own commits?   ctrl+y again":                            named("unpushed"),
		"publish unchecked bytes?   ctrl+y again":                             named("unchecked"),
		"publish in spite of “licence”?   ctrl+y again":                       named("licence"),
		"replace what is there?   ctrl+y again":                               request(func(p *state.Plan) { p.Force, p.Old = true, old }),
	} {
		s, now := ready(t, r)
		if strings.Contains(lastLine(s), "again") {
			t.Errorf("asked before the first chord: %q", lastLine(s))
		}
		s, _, _ = run(s, now, "ctrl+y")
		if got := lastLine(s); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
