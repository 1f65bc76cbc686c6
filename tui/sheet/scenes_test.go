package sheet

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// hostile is a request in which the agent chose everything it can choose.
func hostile(p *state.Plan) {
	p.Ref = "refs/heads/fletch/\u202egnp.\x1b[2J" + strings.Repeat("long-name/", 30) + "end"
	p.Old = old
	p.Commits[1].ID = old
	p.Flags = []state.Flag{
		{Name: "names", Red: true, Text: "control or bidi characters in 3 names"},
		{Name: "executable", Text: "1 executable “evil\u200b\x07" + strings.Repeat("x", 300) + "”"},
	}
}

type scene struct {
	name string
	make func(w, h int) (Sheet, time.Time)
}

func scenes() []scene {
	after := func(r state.Request, script string) func(w, h int) (Sheet, time.Time) {
		return func(w, h int) (Sheet, time.Time) {
			s, now, _ := run(open(r, w, h), t0, script)
			return s, now
		}
	}
	hostilePatch := func(r state.Request) state.Patch {
		p := patch(r)
		p.Commits[0].Subject = "ok\x1b]0;x\x07 \u202e" + strings.Repeat("subject ", 40)
		p.Commits[0].Message = p.Commits[0].Subject + "\n\n▾ not/a/file.go\n\x1b[Hbody"
		p.Diff = strings.ReplaceAll(p.Diff, "+++ b/checkout/retry.go", "+++ \"b/che\\033[31mck\\342\\200\\256"+strings.Repeat("dir/", 75)+"end.go\"")
		return p
	}
	return []scene{
		{"not-armed", after(request(nil), "")},
		{"armed", after(request(nil), "450")},
		{"adds", after(request(func(p *state.Plan) { p.Old = old; p.Commits[2].ID = old; p.Flags = nil }), "450")},
		{"red", after(request(forced), "450")},
		{"red-asked", after(request(forced), "450 ctrl+y 450")},
		{"holding", after(request(nil), "450 ctrl+y 100")},
		{"stopped", after(request(nil), "450 ctrl+y 100 j 10")},
		{"deny", func(w, h int) (Sheet, time.Time) {
			s, now, _ := run(open(request(nil), w, h), t0, "450 x 400")
			s, _ = s.Update(Key{Text: "the test must not sleep; use a fake clock", Paste: true}, now)
			return s, now
		}},
		{"files", after(request(nil), "450 f J")},
		{"moved", func(w, h int) (Sheet, time.Time) {
			r := request(func(p *state.Plan) { p.Commit = newer })
			r.ID = "8"
			return open(request(nil), w, h).Moved(r, t0).WithPatch(patch(r), nil, t0), t0
		}},
		{"waiting", func(w, h int) (Sheet, time.Time) {
			return New(request(nil), agent(), 1, 2, t0).Shown(w, h, t0), t0
		}},
		{"failed", func(w, h int) (Sheet, time.Time) {
			return New(request(nil), agent(), 1, 2, t0).WithPatch(state.Patch{}, errGone, t0).Shown(w, h, t0), t0
		}},
		{"hostile", func(w, h int) (Sheet, time.Time) {
			r := request(hostile)
			return New(r, agent(), 1, 2, t0).WithPatch(hostilePatch(r), nil, t0).Shown(w, h, t0), t0
		}},
	}
}

var sizes = []struct {
	name string
	w, h int
}{{"80x23", 80, 23}, {"82x38", 82, 38}, {"60x19", 60, 19}, {"40x10", 40, 10}}

func TestEverySceneLooksAsDrawn(t *testing.T) {
	for _, scene := range scenes() {
		for _, size := range sizes {
			s, _ := scene.make(size.w, size.h)
			golden(t, scene.name+"-"+size.name, view(s, size.w, size.h))
		}
	}
}

func TestEverySceneFitsEveryScreenAndSendsNoControl(t *testing.T) {
	for _, scene := range scenes() {
		for w := 0; w < 130; w += 6 {
			for h := 0; h < 45; h += 4 {
				s, _ := scene.make(w, h)
				for _, marks := range []themes.Marks{{}, {Plain: true}} {
					out := s.View(themes.New(true, themes.Full), marks, w, h)
					lines := strings.Split(out, "\n")
					if len(lines) != max(h, 1) {
						t.Fatalf("%s %d×%d: %d lines", scene.name, w, h, len(lines))
					}
					for _, l := range lines {
						text := ansi.Strip(l)
						if ansi.StringWidth(l) > max(w, 1) {
							t.Errorf("%s %d×%d: %d cells: %q", scene.name, w, h, ansi.StringWidth(l), text)
						}
						if text != diff.Visible(text) {
							t.Errorf("%s %d×%d: unsafe: %q", scene.name, w, h, text)
						}
					}
				}
			}
		}
	}
}
