package sheet

import (
	"strings"
	"testing"

	"fletch/state"
)

// Lock 5.

func TestDenyTakesAReasonAndEnter(t *testing.T) {
	for _, key := range []string{"x", "ctrl+n"} {
		s := open(request(nil), 80, 23) // no need to be armed: a denial lets nothing out
		s, now, a := run(s, t0, key)
		if !isNone(a) || !s.TextFocus() {
			t.Fatalf("%s: %#v, text focus %v", key, a, s.TextFocus())
		}
		for _, r := range "no sleep" {
			s, _ = s.Update(Key{Name: string(r), Text: string(r)}, now)
		}
		s, _, a = run(s, now, "300 enter")
		if v := verdict(t, a); v.Allow || v.Request != "7" || v.Reason != "no sleep" || len(v.Accept) > 0 {
			t.Errorf("got %+v", v)
		}
		if _, _, a = run(s, now, "1000 enter x 1000 enter ctrl+y 1000"); !isNone(a) {
			t.Errorf("a denied request is decided again: %#v", a)
		}
	}
}

func TestAnEnterThatWasQueuedDoesNotDeny(t *testing.T) {
	for script, want := range map[string]bool{
		"450 x enter 1000": false, "450 x 299 enter 1000": false, "450 x 300 enter": true, "450 x 100 enter 200 enter": true, "450 enter x 1000": false,
		"450 x 1000 esc enter 1000": false, "450 x 1000 esc x enter 299 enter": false,
	} {
		_, _, a := run(open(request(nil), 80, 23), t0, script)
		if _, got := a.(Decide); got != want {
			t.Errorf("%q: decided is %v, want %v", script, got, want)
		}
	}
	s, now, _ := run(open(request(nil), 80, 23), t0, "450 x 1000")
	if s, a := s.Update(Key{Name: "enter", Text: "yes\n", Paste: true}, now); !isNone(a) || s.reason.text != "yes " {
		t.Errorf("a pasted line sends: %#v, text %q", a, s.reason.text)
	}
	if _, a := s.Update(Key{Name: "enter", Repeat: true}, now); !isNone(a) {
		t.Error("an enter that is held down sends")
	}
}

func TestKeysOfTheReasonLineDoNothingElse(t *testing.T) {
	s, _, a := run(open(request(nil), 80, 23), t0, "450 x 1000 q o z y tab x j esc")
	if !isNone(a) || s.reason.text != "qozyxj" || s.TextFocus() {
		t.Errorf("got %#v, text %q", a, s.reason.text)
	}
}

// Lock 6.

func TestAHeadThatMovedStartsOver(t *testing.T) {
	s, now := ready(t, request(nil))
	s, _ = s.Update(press("ctrl+y"), now)
	r := request(func(p *state.Plan) { p.Commit = newer })
	r.ID = "8"
	moved := s.Moved(r, now.Add(ms(100)))
	if _, a := moved.Tick(now.Add(hold)); !isNone(a) {
		t.Error("the chord for the old commit is carried out")
	}
	if moved.Armed() || moved.Request().ID != "8" || allows(t, moved, now, "1000 ctrl+y 1000") {
		t.Error("allowed without the new diff")
	}
	moved = moved.WithPatch(patch(r), nil, now.Add(ms(150)))
	joined := strings.Join(strings.Fields(strings.ReplaceAll(view(moved, 80, 23), "┃", "")), " ")
	if want := "amber-river moved on while you read: 9f3c1e7 is now 77ab901. Nothing was pushed. Read again."; !strings.Contains(joined, want) {
		t.Errorf("does not say %q:\n%s", want, view(moved, 80, 23))
	}
	if allows(t, moved, now.Add(ms(150)), "449 ctrl+y 1000") {
		t.Error("does not wait anew")
	}
	_, _, a := run(moved, now.Add(ms(150)), "450 ctrl+y 200")
	if v := verdict(t, a); v.Commit != newer || v.Request != "8" || v.Plan != r.PlanHash {
		t.Errorf("got %+v", v)
	}
}

func TestTheSameRequestAgainKeepsArmingAndPlace(t *testing.T) {
	s, now := ready(t, request(nil))
	s, _, _ = run(s, now, "j j j")
	again := s.Moved(request(nil), now)
	if !again.Armed() || view(again, 80, 23) != view(s, 80, 23) {
		t.Error("hearing of the same request again moves or disarms it")
	}
}

func TestAReasonBeingTypedOutlivesAMove(t *testing.T) {
	s, now, _ := run(open(request(nil), 80, 23), t0, "450 x 1000 n o")
	r := request(func(p *state.Plan) { p.Commit = newer })
	r.ID = "8"
	s = s.Moved(r, now)
	if s, a := s.Update(press("enter"), now.Add(ms(10))); !isNone(a) || !s.TextFocus() || s.reason.text != "no" {
		t.Errorf("an enter in flight answers another request: %#v", a)
	}
	_, _, a := run(s, now, "300 enter")
	if v := verdict(t, a); v.Request != "8" || v.Allow {
		t.Errorf("got %+v", v)
	}
}

func TestTheFileListGoesToAFileAndNeverAllows(t *testing.T) {
	for _, script := range []string{"450 f ctrl+y 1000 ctrl+y 1000", "450 f 1000 ctrl+y 1000", "450 f 1000 enter ctrl+y 1000", "450 ctrl+y 100 f 1000"} {
		if allows(t, open(request(nil), 80, 23), t0, script) {
			t.Errorf("%q allows", script)
		}
	}
	s, now, a := run(open(request(nil), 80, 23), t0, "450 f j")
	if !isNone(a) || !strings.Contains(view(s, 80, 23), "\n┃ ▌  retry_test.go") {
		t.Errorf("%#v\n%s", a, view(s, 80, 23))
	}
	s, now, a = run(s, now, "enter")
	if !isNone(a) || !strings.Contains(view(s, 80, 23), "what leaves  file 2 of 7") {
		t.Errorf("%#v\n%s", a, view(s, 80, 23))
	}
	if s, _, a = run(s, now, "f q"); !isNone(a) || strings.Contains(lastLine(s), "show it") {
		t.Errorf("q leaves the sheet instead of the list: %#v", a)
	}
	if !allows(t, s, now, "450 ctrl+y 200") {
		t.Error("never arms again")
	}
}
