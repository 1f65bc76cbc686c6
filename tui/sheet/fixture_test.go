package sheet

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fletch/state"
	"fletch/themes"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	head  = state.Commit("9f3c1e74b2d8c6f5e0a9b8c7d6e5f4a3b2c1d0e9")
	newer = state.Commit("77ab90174b2d8c6f5e0a9b8c7d6e5f4a3b2c1d0e")
	base  = state.Commit("1a2b3c4d5e6f708192a3b4c5d6e7f80912a3b4c5")
	old   = state.Commit("0011223344556677889900112233445566778899")
)

// t0 is when a sheet opens in these tests.
var t0 = time.Date(2026, 5, 4, 14, 6, 0, 0, time.UTC)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func agent() state.Agent {
	return state.Agent{
		ID: "abcdefgh", Name: "amber-river", Provider: "claude", Engine: "native",
		Base: state.Base{Ref: "main", Commit: base, At: t0.Add(-125 * time.Minute)},
		Task: "Fix the retry loop in checkout, with a test",
	}
}

func amber() []state.Flag {
	return []state.Flag{{Name: "ci", Text: "1 CI workflow (.github/workflows/ci.yml)"}, {Name: "executable", Text: "1 executable"}}
}

func reds() []state.Flag {
	return []state.Flag{
		{Name: "force", Red: true, Text: "FORCE replaces 2 commits that are already there"},
		{Name: "secret", Red: true, Text: "secret: aws-access-token in deploy/env.sh:12"},
		{Name: "unpushed", Red: true, Text: "publishes 1 commit of yours that you never pushed (77ab901)"},
		{Name: "merge", Text: "merge commit"},
		{Name: "ci", Text: "1 CI workflow"},
		{Name: "executable", Text: "2 executables"},
		{Name: "symlink", Text: "1 symlink"},
	}
}

// request is a plain push; change may make it something else.
func request(change func(*state.Plan)) state.Request {
	p := state.Plan{
		Agent: "abcdefgh", Remote: "https://github.com/acme/shop.git", Ref: "refs/heads/fletch/amber-river",
		Commit: head, Base: base, BaseRef: "refs/heads/main",
		Commits: []state.PlanCommit{{ID: head}, {ID: "b"}, {ID: "c"}},
		Files:   make([]state.PlanFile, 7), Added: 120, Removed: 14, Flags: amber(),
	}
	if change != nil {
		change(&p)
	}
	return state.Request{ID: "7", Agent: p.Agent, Operation: "push", Plan: p, PlanHash: p.Hash(), Asked: t0.Add(-2 * time.Minute), State: state.Pending}
}

func forced(p *state.Plan) {
	p.Old, p.Force, p.Replaces, p.Flags = old, true, 2, reds()
}

func patch(r state.Request) state.Patch {
	var b strings.Builder
	b.WriteString("diff --git a/checkout/retry.go b/checkout/retry.go\nindex 1..2 100644\n--- a/checkout/retry.go\n+++ b/checkout/retry.go\n@@ -41,7 +41,9 @@\n" +
		"-\tfor i := 1; i < max; i++ {\n+\tfor attempt := 0; attempt < max; attempt++ {\n \t\terr := call(ctx)\n \t\tif err == nil {\n \t\t\treturn nil\n \t\t}\n" +
		"-\t\ttime.Sleep(i * base)\n+\t\tif !sleep(ctx, backoff(attempt)) {\n+\t\t\treturn ctx.Err()\n+\t\t}\n \t}\n")
	b.WriteString("diff --git a/checkout/retry_test.go b/checkout/retry_test.go\nindex 1..2 100644\n--- a/checkout/retry_test.go\n+++ b/checkout/retry_test.go\n@@ -11,0 +12,5 @@\n" +
		"+func TestThirdFailureIsRetried(t *testing.T) {\n+\tcalls := 0\n+\terr := retry(context.Background(), 3, func() error {\n+\t\tcalls++; return errFlaky\n+\t})\n")
	for f := range 5 {
		fmt.Fprintf(&b, "diff --git a/docs/%d.md b/docs/%d.md\n--- a/docs/%d.md\n+++ b/docs/%d.md\n@@ -1,30 +1,30 @@\n", f, f, f, f)
		for i := range 30 {
			fmt.Fprintf(&b, " line %d\n", i)
		}
	}
	return state.Patch{
		Head: r.Plan.Commit, Base: r.Plan.Base, Diff: b.String(),
		Commits: []state.PlanCommit{{ID: r.Plan.Commit, Subject: "Retry counts the first attempt once"}},
	}
}

// open is a sheet at t0 with its patch, on a screen of w by h.
func open(r state.Request, w, h int) Sheet {
	return New(r, agent(), 1, 2, t0).WithPatch(patch(r), nil, t0).Shown(w, h, t0)
}

// ready is an armed sheet, at the time that is returned.
func ready(t *testing.T, r state.Request) (Sheet, time.Time) {
	t.Helper()
	now := t0.Add(quiet)
	s, _ := open(r, 80, 23).Tick(now)
	if !s.Armed() {
		t.Fatal("the sheet does not arm")
	}
	return s, now
}

// run plays a script of keys and pauses: "ctrl+y 200 j enter". It gives the
// last action that is not None. Ticks come when they are due.
func run(s Sheet, now time.Time, script string) (Sheet, time.Time, Action) {
	var last Action = None{}
	note := func(a Action) {
		if _, none := a.(None); !none {
			last = a
		}
	}
	for _, word := range strings.Fields(script) {
		var pause int
		if n, _ := fmt.Sscanf(word, "%d", &pause); n == 0 {
			var a Action
			s, a = s.Update(press(word), now)
			note(a)
			continue
		}
		end := now.Add(ms(pause))
		for at, ok := s.Deadline(); ok && !at.After(end); at, ok = s.Deadline() {
			var a Action
			s, a = s.Tick(at)
			note(a)
		}
		now = end
	}
	return s, now, last
}

func press(name string) Key {
	k := Key{Name: name}
	if len(name) == 1 {
		k.Text = name
	}
	return k
}

func isNone(a Action) bool {
	_, none := a.(None)
	return none
}

func verdict(t *testing.T, a Action) state.Verdict {
	t.Helper()
	d, ok := a.(Decide)
	if !ok {
		t.Fatalf("got %#v, want a decision", a)
	}
	return d.Verdict
}

func view(s Sheet, w, h int) string {
	return ansi.Strip(s.View(themes.New(true, themes.Full), themes.Marks{}, w, h))
}

func lastLine(s Sheet) string {
	lines := strings.Split(view(s, s.w, s.h), "\n")
	return lines[len(lines)-1]
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got = strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", name, got, want)
	}
}

var errGone = errors.New("asking the hub: \x1b[31mno such\u202e quarantine")
