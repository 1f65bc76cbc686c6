package sheet

import (
	"strings"
	"testing"
	"time"

	"fletch/state"
	"fletch/tui/diff"
)

// factText is all facts of s at a width, joined without the breaks.
func factText(s Sheet, w, h int) string {
	var out strings.Builder
	for _, r := range s.frame(w, h).facts {
		line := ""
		for _, s := range r {
			line += s.text
		}
		out.WriteString(strings.TrimPrefix(line, strings.Repeat(" ", labelled)))
	}
	return out.String()
}

func TestRemoteBranchAndCommitStandInFullAtEverySize(t *testing.T) {
	r := request(func(p *state.Plan) {
		p.Remote = "ssh://git.example.org:2222/" + strings.Repeat("very/long/", 20) + "shop.git"
		p.Ref = "refs/heads/fletch/" + strings.Repeat("日本-e\u0301-", 30)
		p.Commit = state.Commit(strings.Repeat("0123456789abcdef", 4))
	})
	for w := leastW; w < 200; w++ {
		for _, h := range []int{10, 11, 12, 23, 40} {
			got := factText(open(r, w, h), w, h)
			for _, want := range []string{r.Plan.Remote, strings.TrimPrefix(r.Plan.Ref, "refs/heads/"), string(r.Plan.Commit)} {
				if !strings.Contains(got, want) {
					t.Fatalf("%d×%d: %q is not whole in %q", w, h, want, got)
				}
			}
			for _, r := range open(r, w, h).frame(w, h).facts {
				if r.width() > w-2 {
					t.Fatalf("%d×%d: a fact is %d wide", w, h, r.width())
				}
			}
		}
	}
}

func TestTheBranchLineSaysWhatBecomesOfIt(t *testing.T) {
	for want, change := range map[string]func(*state.Plan){
		"fletch/amber-river  new branch   from main@1a2b3c4 of 12:01":        func(*state.Plan) {},
		"fletch/amber-river  adds 3 commits to it":                           func(p *state.Plan) { p.Old = old },
		"fletch/amber-river  adds 1 commit to it":                            func(p *state.Plan) { p.Old, p.Commits[1].ID, p.Commits[1].Parents = old, old, []state.Commit{"c"} },
		"FORCE  fletch/amber-river  replaces 1 commit that is already there": func(p *state.Plan) { p.Old, p.Force, p.Replaces = old, true, 1 },
		"FORCE  fletch/amber-river  replaces commits that are already there": func(p *state.Plan) { p.Old, p.Force = old, true },
		"refs/tags/v1  new branch":                                           func(p *state.Plan) { p.Ref = "refs/tags/v1" },
	} {
		if got := factText(open(request(change), 120, 30), 120, 30); !strings.Contains(got, want) {
			t.Errorf("not said: %q in %q", want, got)
		}
	}
	other := request(func(p *state.Plan) { p.Base = newer })
	if got := factText(open(other, 120, 30), 120, 30); !strings.Contains(got, "from main@77ab901commit") {
		t.Errorf("the time of another base is shown: %q", got)
	}
}

func TestEachRedFactHasALineAndTheOthersShareOne(t *testing.T) {
	got := view(open(request(forced), 80, 23), 80, 23)
	for _, want := range []string{
		"┃ ⚠ secret: aws-access-token in deploy/env.sh:12\n",
		"┃ ⚠ publishes 1 commit of yours that you never pushed (77ab901)\n",
		"┃ ⚠ also: merge commit, 1 CI workflow, 2 executables, 1 symlink\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not shown: %q in\n%s", want, got)
		}
	}
	unflagged := request(func(p *state.Plan) {
		p.Flags = []state.Flag{{Name: "force", Red: true, Text: "FORCE replaces 9 commits"}}
	})
	if got := view(open(unflagged, 80, 23), 80, 23); !strings.Contains(got, "⚠ FORCE replaces 9 commits") {
		t.Errorf("a red fact that the branch line does not tell is dropped:\n%s", got)
	}
}

func TestAHugeWarningSaysWhatItLeavesOut(t *testing.T) {
	r := request(func(p *state.Plan) { p.Flags = []state.Flag{{Name: "x", Text: strings.Repeat("w ", 5000)}} })
	if got := factText(open(r, 120, 30), 120, 30); !strings.Contains(got, "(and 6000 bytes more)") {
		t.Errorf("got %q", got[len(got)-100:])
	}
}

func TestTimesOfAnotherDayCarryTheDay(t *testing.T) {
	now := time.Date(2026, 5, 4, 0, 10, 0, 0, time.UTC)
	if got := clock(now.Add(-time.Minute), now); got != "00:09" {
		t.Error(got)
	}
	if got := clock(now.Add(-time.Hour), now); got != "3 May 23:10" {
		t.Error(got)
	}
}

func FuzzFacts(f *testing.F) {
	f.Add("refs/heads/fletch/x\u202e", "https://h/x.git", "task", "flag", 80)
	f.Add("\x1b[2J", "\xff://\n", "\t\t\t", strings.Repeat("日", 50), 41)
	f.Fuzz(func(t *testing.T, ref, remote, task, flag string, w int) {
		w = leastW + (w%160+160)%160
		a := agent()
		a.Task = task
		r := request(func(p *state.Plan) {
			p.Ref, p.Remote, p.Flags = ref, remote, []state.Flag{{Name: "a", Red: true, Text: flag}, {Name: "b", Text: flag}}
		})
		s := New(r, a, 1, 1, t0).Shown(w, 24, t0)
		for _, row := range s.frame(w, 24).facts {
			if row.width() > w-2 {
				t.Errorf("%d cells in %d: %q", row.width(), w, row)
			}
		}
		for _, l := range strings.Split(view(s, w, 24), "\n") {
			if diff.Width(l) > w || l != diff.Visible(l) {
				t.Errorf("unsafe or too wide in %d: %q", w, l)
			}
		}
	})
}
