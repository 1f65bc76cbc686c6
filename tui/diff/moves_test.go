package diff

import (
	"fmt"
	"strings"
	"testing"

	"fletch/state"
	"fletch/themes"

	"github.com/charmbracelet/x/ansi"
)

// three files of three hunks each, behind two commits.
func hunks() state.Patch {
	p := state.Patch{Commits: []state.PlanCommit{{ID: head, Subject: "two"}, {ID: older, Subject: "one"}}}
	var b strings.Builder
	for f := range 3 {
		fmt.Fprintf(&b, "diff --git a/d/f%d b/d/f%d\n--- a/d/f%d\n+++ b/d/f%d\n", f, f, f, f)
		for h := range 3 {
			fmt.Fprintf(&b, "@@ -%d,4 +%d,4 @@\n one\n two\n-three\n+drei\n four\n", h*100+1, h*100+1)
		}
	}
	p.Diff = b.String()
	return p
}

func press(v Viewer, w, h int, keys ...string) Viewer {
	for _, k := range keys {
		v = v.Update(k, w, h)
	}
	return v
}

func TestMovingByLinePageAndEnd(t *testing.T) {
	const w, h = 80, 10
	v := New(hunks()) // 2 + 3×(1 + 3×5 + 2) = 56 rows
	for _, step := range []struct {
		keys string
		from int
	}{
		{"", 1},
		{"j", 2},
		{"j j", 3},
		{"k", 1},
		{"j k", 1},
		{"down up down", 2},
		{"space", 10},
		{"space b", 1},
		{"pgdown pgdown pgup", 10},
		{"ctrl+d", 6},
		{"ctrl+d ctrl+u", 1},
		{"G", 47},
		{"G j", 47},
		{"G k", 46},
		{"G g", 1},
		{"end home", 1},
		{"q", 1},
		{"enter", 1},
	} {
		got := press(v, w, h, strings.Fields(step.keys)...).Position(w, h)
		if got.From != step.from || got.Total != 56 || got.To != step.from+h-1 {
			t.Errorf("%q: lines %d–%d of %d, want from %d of 56", step.keys, got.From, got.To, got.Total, step.from)
		}
	}
}

func TestMovingByFileAndHunk(t *testing.T) {
	const w, h = 80, 10
	v := New(hunks())
	for _, step := range []struct {
		keys       string
		file, hunk int
	}{
		{"", 1, 1},
		{"J", 1, 1},
		{"J J", 2, 1},
		{"J J J", 3, 1},
		{"J J J J", 3, 1},
		{"J J K", 1, 1},
		{"l", 1, 1},
		{"l l", 1, 2},
		{"l l l", 1, 3},
		{"l l l l", 2, 1},
		{"l l h", 1, 1},
		{"l l l j h", 1, 3},
		{"J j K", 1, 1},
	} {
		got := press(v, w, h, strings.Fields(step.keys)...).Position(w, h)
		if got.File != step.file || got.Hunk != step.hunk || got.Files != 3 || got.Hunks != 3 {
			t.Errorf("%q: file %d of %d, hunk %d of %d; want %d, %d", step.keys, got.File, got.Files, got.Hunk, got.Hunks, step.file, step.hunk)
		}
	}
	if got := screen(press(v, w, h, "J", "J"), w, h)[0]; got != "▾ d/f1" {
		t.Errorf("J puts %q on top", got)
	}
	if got := screen(press(v, w, h, "J", "J", "J"), w, h)[0]; got != "▾ d/f2" {
		t.Errorf("the last file does not come to the top: %q", got)
	}
	if got := screen(v.JumpTo(2), w, h)[0]; got != "▾ d/f2" {
		t.Errorf("JumpTo puts %q on top", got)
	}
}

func TestPositionCountsCommitsWhileNothingElseIsInView(t *testing.T) {
	p := hunks()
	p.Commits[0].Message = "two\n\n" + strings.Repeat("words\n", 30)
	v := New(p)
	if got := v.Position(80, 10); got.Commit != 1 || got.Commits != 2 || got.File != 0 {
		t.Errorf("got %+v", got)
	}
	if got := v.Update("J", 80, 10).Position(80, 10); got.Commit != 0 || got.File != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestThePlaceIsKeptWhenTheWidthChanges(t *testing.T) {
	p := one(strings.Repeat("x", 500), "needle", strings.Repeat("y", 500))
	v := press(New(p), 80, 1, "G", "k", "k", "k", "k", "k", "k", "k")
	for i := 0; i < 20 && !strings.Contains(screen(v, 80, 1)[0], "needle"); i++ {
		v = v.Update("k", 80, 1)
	}
	for _, w := range []int{40, 120, 80, 200} {
		if got := screen(v, w, 1)[0]; !strings.Contains(got, "needle") {
			t.Errorf("at %d the top is %q", w, got)
		}
	}
}

func TestAnEmptyPatchStandsStill(t *testing.T) {
	for _, v := range []Viewer{{}, New(state.Patch{})} {
		v = press(v, 80, 10, "j", "G", "J", "l", "h", "K", "space", "g")
		if p := v.Position(80, 10); p != (Position{}) {
			t.Errorf("got %+v", p)
		}
	}
}

func TestTheFileListKeepsTheCurrentFileInSight(t *testing.T) {
	var b strings.Builder
	for f := range 40 {
		fmt.Fprintf(&b, "diff --git a/dir%d/f%d b/dir%d/f%d\n--- a/x\n+++ b/dir%d/f%d\n@@ -1 +1 @@\n-x\n+y\n", f/10, f, f/10, f, f/10, f)
	}
	v := New(state.Patch{Diff: b.String()})
	for i := range 40 {
		lines := v.JumpTo(i).FileList(styles(), themes.Marks{}, 38, 12)
		if len(lines) != 12 {
			t.Fatalf("%d lines", len(lines))
		}
		found := false
		for _, l := range lines {
			text := ansi.Strip(l)
			if ansi.StringWidth(text) > 38 {
				t.Errorf("%q is %d wide", text, ansi.StringWidth(text))
			}
			found = found || strings.HasPrefix(text, themes.MarkBar) && strings.Contains(text, fmt.Sprintf("f%d ", i))
		}
		if !found {
			t.Errorf("file %d is not marked in\n%s", i, ansi.Strip(strings.Join(lines, "\n")))
		}
	}
}

func TestTheFileListLooksAsDrawn(t *testing.T) {
	lines := New(everything(t)).JumpTo(5).FileList(styles(), themes.Marks{}, 38, 16)
	golden(t, "list-38", ansi.Strip(strings.Join(lines, "\n"))+"\n")
}
