package sheet

import (
	"encoding/json"
	"strings"
	"testing"

	"fletch/state"
)

// What cannot be shown, or is not what was asked, cannot be allowed.

func TestNoAllowWithoutWhatLeaves(t *testing.T) {
	r := request(nil)
	elsewhere, otherBase, endless := patch(r), patch(r), patch(r)
	elsewhere.Head = newer
	otherBase.Base = newer
	endless.Diff = strings.Repeat("x\n", 600_000)
	unequal := r
	unequal.Plan.Remote = "https://github.com/evil/shop.git"
	settled := r
	settled.State = state.Superseded
	other := r
	other.Operation = "reach-host"
	odd := request(func(p *state.Plan) { p.Commit = "9f3c1e7" })
	fresh := func(r state.Request) Sheet { return New(r, agent(), 1, 2, t0) }
	for name, s := range map[string]Sheet{
		"not arrived":     fresh(r),
		"failed":          fresh(r).WithPatch(state.Patch{}, errGone, t0),
		"failed later":    fresh(r).WithPatch(patch(r), nil, t0).WithPatch(state.Patch{}, errGone, t0),
		"another commit":  fresh(r).WithPatch(elsewhere, nil, t0),
		"another base":    fresh(r).WithPatch(otherBase, nil, t0),
		"too large":       fresh(r).WithPatch(endless, nil, t0),
		"another plan":    fresh(unequal).WithPatch(patch(unequal), nil, t0),
		"settled":         fresh(settled).WithPatch(patch(settled), nil, t0),
		"not a push":      fresh(other).WithPatch(patch(other), nil, t0),
		"not a commit id": fresh(odd).WithPatch(patch(odd), nil, t0),
	} {
		s = s.Shown(80, 23, t0)
		if allows(t, s, t0, "1000 ctrl+y 1000 ctrl+y 1000") {
			t.Errorf("%s: allowed", name)
		}
		if strings.Contains(lastLine(s), "ctrl+y") {
			t.Errorf("%s: offers the chord: %q", name, lastLine(s))
		}
		if _, _, a := run(s, t0, "1000 x 300 enter"); isNone(a) {
			t.Errorf("%s: cannot be denied", name)
		}
		if _, _, a := run(s, t0, "1000 q"); a != (Later{}) {
			t.Errorf("%s: cannot be left: %#v", name, a)
		}
	}
	if allows(t, Sheet{}, t0, "1000 ctrl+y 1000 ctrl+y 1000") || allows(t, Sheet{}.Shown(80, 23, t0), t0, "1000 ctrl+y 1000") {
		t.Error("the zero sheet allows")
	}
}

func TestARequestThatCameOverTheWireIsStillTheSame(t *testing.T) {
	for name, change := range map[string]func(*state.Plan){
		"plain": nil, "red": forced, "hostile": hostile,
		"no lists": func(p *state.Plan) { p.Commits, p.Files, p.Flags = nil, nil, nil },
		"empty lists": func(p *state.Plan) {
			p.Commits, p.Files, p.Flags = []state.PlanCommit{}, []state.PlanFile{}, []state.Flag{}
		},
	} {
		body, err := json.Marshal(request(change))
		if err != nil {
			t.Fatal(err)
		}
		var r state.Request
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatal(err)
		}
		if s := open(r, 200, 60); s.barred() != free {
			t.Errorf("%s: barred by %d", name, s.barred())
		}
	}
}

func TestAScreenThatIsTooSmallOffersTheCommandInstead(t *testing.T) {
	for _, size := range [][2]int{{39, 24}, {80, 9}, {1, 1}, {0, 0}} {
		s := open(request(nil), size[0], size[1])
		if allows(t, s, t0, "1000 ctrl+y 1000 ctrl+y 1000") {
			t.Errorf("%v: allowed", size)
		}
	}
	got := strings.Join(strings.Fields(view(open(request(nil), 39, 20), 39, 20)), " ")
	if want := "too small to show everything: make it 60×20, or fletch allow 7 --commit 9f3c1e7…"; !strings.Contains(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestOtherKeysDoWhatTheyStandFor(t *testing.T) {
	for key, want := range map[string]Action{
		"esc": Later{}, "q": Later{}, "tab": Next{}, "shift+tab": Prev{}, "o": Pager{}, "z": Wide{}, "y": CopyCommit{head},
		"enter": None{}, "alt+x": None{}, "ctrl+x": None{}, "X": None{},
	} {
		s, now := ready(t, request(nil))
		if _, a := s.Update(press(key), now); a != want {
			t.Errorf("%s: %#v, want %#v", key, a, want)
		}
	}
}

func TestTheFooterSaysWhatItWaitsFor(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"", "hands off for a moment …   ctrl+y allow   x deny   esc later   j k scroll"},
		{"450", "ctrl+y allow   x deny   esc later   tab next   j k scroll   J K file"},
		{"450 ctrl+y", "pushing 9f3c1e7 … any key stops it"},
		{"450 ctrl+y 100 a", "stopped; nothing was pushed. hands off for a moment …"},
		{"450 ctrl+y 100 a 450", "ctrl+y allow   x deny"},
		{"450 ctrl+y 200", "pushing 9f3c1e7 …"},
		{"450 x", "enter deny   esc back to the request   ctrl+y does nothing here"},
		{"450 x 300 enter", "denied"},
	} {
		s, _, _ := run(open(request(nil), 80, 23), t0, c.script)
		if got := lastLine(s); !strings.Contains(got, "┗━ "+c.want) {
			t.Errorf("%q: got %q, want %q", c.script, got, c.want)
		}
	}
}
