package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/tui/tuitest"
)

func TestAConfirmationOpensDisarmed(t *testing.T) {
	atDesk(t, scene{w: 80, h: 24, options: bar}, func(d *desk) {
		d.does("stop")
		d.press("enter")
		d.wantsNot("stop")
		for range 30 { // a key that is held
			d.wait(ms(30))
			d.press("enter")
		}
		d.wantsNot("stop")
		d.wait(ms(350))
		d.press("enter")
		d.wants("stop aaaaaaaa")
		d.sees("stopped  amber-river; enter continues it")
	})
}

func TestAConfirmationCanBeLeft(t *testing.T) {
	for _, key := range []string{"esc", "q", "alt+z"} {
		atDesk(t, scene{w: 80, h: 24, options: bar}, func(d *desk) {
			d.does("remove")
			d.sees("It is still running and ends now.")
			d.wait(time.Second)
			d.press(key)
			d.seesNot("It is still running")
			d.wantsNot("remove")
			if d.quit {
				t.Errorf("%s left the dashboard", key)
			}
		})
	}
}

func TestAConfirmationIsAboutTheAgentItNamed(t *testing.T) {
	atDesk(t, scene{w: 80, h: 24, options: bar}, func(d *desk) {
		d.press("j")
		d.does("stop")
		d.wait(time.Second)
		d.happen(tuitest.CalmCedar, state.StatusChanged{Status: state.Working})
		d.happen(tuitest.GoldFinch, state.StatusChanged{Status: state.Waiting})
		d.wait(time.Second)
		d.press("enter")
		d.wants("stop bbbbbbbb")
	})
}

func TestRemovedComesBackWithU(t *testing.T) {
	atDesk(t, scene{w: 80, h: 24, options: bar}, func(d *desk) {
		d.does("undo")
		d.sees("there is nothing to bring back")
		d.press("j")
		d.does("remove")
		d.wait(time.Second)
		d.press("enter")
		d.wants("remove bbbbbbbb true")
		d.sees("u brings it back (7 days)")
		d.does("undo")
		d.sees("brought  back calm-cedar")
	})
}

func TestWhatDoesNotWorkSaysSo(t *testing.T) {
	atDesk(t, scene{w: 80, h: 24, options: bar}, func(d *desk) {
		d.hub.Fail(hinted{})
		d.does("stop")
		d.wait(time.Second)
		d.press("enter")
		d.sees("stopping amber-river: the keeper is gone  hint: fletch doctor")
	})
}

type hinted struct{}

func (hinted) Error() string { return "the keeper is gone" }
func (hinted) Hint() string  { return "fletch doctor" }

func TestANewAgentIsStartedAsChosen(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.does("new")
		for _, r := range "Fix it" {
			d.press(strings.ReplaceAll(string(r), " ", "space"))
		}
		d.press("ctrl+j")
		d.send(tea.PasteMsg{Content: "and test it\x1b[2J"})
		d.press("tab", "tab", "right", "tab", "right", "tab", "3", "enter")
		d.wants(`launch codex native next 3 "Fix it\nand test it[2J" 80x36`)
		d.sees("started  pine-1, pine-2, pine-3")
		if d.m.list.cursor != "new00001" {
			t.Errorf("the cursor is on %s", d.m.list.cursor)
		}
		d.does("new")
		d.seesNot("Fix it")    // the draft is used up
		d.sees("▸ codex")      // the choice is remembered
		d.press("esc", "down") // and the list has the keyboard again
	})
}

func TestAClosedFormKeepsItsDraft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "draft.json")
	remember := func(o *Options) { o.Open, o.StatePath = OpenBar, path }
	atDesk(t, scene{w: 80, h: 24, options: remember}, func(d *desk) {
		d.does("new")
		d.press("h", "i")
		d.press("esc")
		d.does("new")
		d.sees("task       hi")
		d.press("esc")
	})
	atDesk(t, scene{w: 80, h: 24, options: remember}, func(d *desk) {
		d.does("new")
		d.sees("task       hi")
	})
	if err := os.WriteFile(path, []byte("{nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	atDesk(t, scene{w: 80, h: 24, options: remember}, func(d *desk) {
		d.does("new")
		d.seesNot("hi")
	})
}

func TestOutsideARepositoryTheFormAsksWhichOne(t *testing.T) {
	machine := tuitest.Machine()
	machine.Here = state.Here{Why: "not a git repository"}
	atDesk(t, scene{w: 80, h: 24, machine: &machine, options: bar}, func(d *desk) {
		d.does("new")
		d.press("enter")
		d.wantsNot("launch")
		d.sees("which repository?")
		d.send(tea.PasteMsg{Content: "~/nowhere"})
		d.press("tab", "enter")
		d.wantsNot("launch")
		d.sees("not a git repository")
	})
}

func TestDirectIsAskedForOnceMore(t *testing.T) {
	machine := tuitest.Machine()
	machine.Engines = append(machine.Engines, state.EngineSurvey{Name: "direct", Tier: "direct", Usable: true})
	atDesk(t, scene{w: 120, h: 40, machine: &machine, options: bar}, func(d *desk) {
		d.does("new")
		d.press("tab", "tab", "tab", "tab", "tab", "right", "enter", "enter")
		d.wantsNot("launch")
		d.sees("direct is no sandbox")
		d.wait(ms(400))
		d.press("enter")
		d.wants("launch claude direct")
	})
}

func TestDirectIsNeverChosenByItself(t *testing.T) {
	machine := tuitest.Machine()
	machine.Engines = []state.EngineSurvey{
		{Name: "native", Cause: "bubblewrap is missing"}, {Name: "direct", Tier: "direct", Usable: true},
	}
	atDesk(t, scene{w: 120, h: 40, machine: &machine, options: bar}, func(d *desk) {
		d.does("new")
		d.press("enter")
		d.sees("no sandbox works here")
		d.wantsNot("launch")
	})
}

func TestNewLikeThisTakesItsChoices(t *testing.T) {
	atDesk(t, scene{w: 120, h: 40, options: bar}, func(d *desk) {
		d.does("new-like")
		d.sees("task       Fix the retry loop in checkout, with a test")
	})
}

func TestWithoutASandboxNothingStarts(t *testing.T) {
	machine := tuitest.BareMachine()
	atDesk(t, scene{w: 80, h: 24, machine: &machine, options: bar}, func(d *desk) {
		d.does("new")
		d.sees("fletch starts no agent without a sandbox")
		d.wantsNot("launch")
	})
}

func TestTheFirstScreenChecksAgain(t *testing.T) {
	machine, first := tuitest.BareMachine(), state.Fleet{}
	atDesk(t, scene{w: 80, h: 24, machine: &machine, fleet: &first}, func(d *desk) {
		d.press("enter") // no demo without a sandbox
		d.sees("bubblewrap is missing")
		d.hub.SetSurvey(tuitest.Machine())
		d.press("R")
		d.sees("✓ native")
		d.press("n")
		d.sees("new agent")
	})
}

func TestReadlineInTheTask(t *testing.T) {
	f := newField("one two three", true, 100)
	for _, step := range []struct{ key, want string }{
		{"ctrl+w", "one two |"},
		{"ctrl+a", "|one two "},
		{"alt+f", "one| two "},
		{"ctrl+k", "one|"},
		{"ctrl+y", "one two |"},
		{"backspace", "one two|"},
		{"alt+b", "one |two"},
		{"alt+d", "one |"},
		{"left", "one| "},
		{"delete", "one|"},
		{"ctrl+u", "|"},
	} {
		f, _ = f.edit(step.key)
		if got := f.text[:f.at] + "|" + f.text[f.at:]; got != step.want {
			t.Errorf("after %s: %q, want %q", step.key, got, step.want)
		}
	}
	if f = newField("é👩‍👩‍👧x", true, 100); f.before() != len("é👩‍👩‍👧") {
		t.Error("a grapheme is taken apart")
	}
	f, _ = f.edit("backspace")
	if f, _ = f.edit("backspace"); f.text != "é" {
		t.Errorf("a family is deleted in pieces: %q", f.text)
	}
	if f = newField("", false, 4).insert("a\nb\tc\x1bd"); f.text != "a b " {
		t.Errorf("inserted %q", f.text)
	}
}

func FuzzFieldStaysWhole(f *testing.F) {
	f.Add("héllo 👩‍👩‍👧", "ctrl+w left x backspace alt+f delete ctrl+k ctrl+y", 10)
	f.Fuzz(func(t *testing.T, text, keys string, w int) {
		field := newField(text, true, 200)
		for _, k := range strings.Fields(keys) {
			var ok bool
			if field, ok = field.edit(k); !ok {
				field = field.insert(k)
			}
			if field.at < 0 || field.at > len(field.text) || len(field.text) > 200+len(field.cut) {
				t.Fatalf("the cursor is at %d of %d", field.at, len(field.text))
			}
			rows, x, y := field.view(min(max(w, 0), 100), 5)
			if y < 0 || y >= len(rows) || x < 0 {
				t.Fatalf("the cursor is at %d,%d of %q", x, y, rows)
			}
		}
	})
}
