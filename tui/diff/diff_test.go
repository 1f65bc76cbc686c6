package diff

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"fletch/state"
	"fletch/themes"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	head  = state.Commit("9f3c1e74b2d8c6f5e0a9b8c7d6e5f4a3b2c1d0e9")
	older = state.Commit("77ab90174b2d8c6f5e0a9b8c7d6e5f4a3b2c1d0e")
)

func styles() themes.Styles { return themes.New(true, themes.Full) }

func read(t testing.TB, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, name+".golden"); got != want {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", name, got, want)
	}
}

// screen is what a view of v shows, without colours.
func screen(v Viewer, w, h int) []string {
	lines := v.View(styles(), themes.Marks{}, w, h)
	for i := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(lines[i]), " ")
	}
	return lines
}

// all is the whole of v at width w.
func all(v Viewer, w int) []string { return screen(v, w, v.Position(w, 1).Total) }

func everything(t testing.TB) state.Patch {
	return state.Patch{
		Head: head,
		Commits: []state.PlanCommit{
			{ID: head, Author: "Ada", Email: "ada@example.org", Subject: "Retry counts the first attempt once", Message: "Retry counts the first attempt once\n\nThe loop began at one.\n\tindented\n"},
			{ID: older, Author: "Ada", Email: "ada@example.org", Subject: "Second \u202ekcolb", Message: "Second \u202ekcolb\n"},
		},
		Diff:    read(t, "everything.diff"),
		Omitted: []string{"big.bin: 2.0 GiB, too large to show"},
	}
}

func TestEveryKindOfChangeIsShown(t *testing.T) {
	for _, w := range []int{80, 40} {
		golden(t, fmt.Sprintf("everything-%d", w), strings.Join(all(New(everything(t)), w), "\n")+"\n")
	}
}

func TestEveryLineOfAFileIsShownWithItsNumber(t *testing.T) {
	got := strings.Join(all(New(everything(t)), 80), "\n")
	for _, want := range []string{
		"   2  -b\n   2  +B\n   3   c",
		"  13  -m\n  13  +M\n  14  +    x\n  15   n",
		"    renamed from from.txt",
		"    was file (100644), is now executable (100755)",
		"    symlink → /etc/passwd",
		"    new symlink → ../../secret",
		"    binary: not shown",
		"⚠ left out: big.bin: 2.0 GiB, too large to show",
		"▾ evil<U+001B>[31m<U+000A><U+202E>name",
		"commit 1 of 2  9f3c1e7  “Retry counts the first attempt once”",
		"  │ The loop began at one.",
		"commit 2 of 2  77ab901  “Second <U+202E>kcolb”",
		"  by “Ada” <ada@example.org>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not shown: %q", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestFilesAreCounted(t *testing.T) {
	var got []string
	for _, f := range New(everything(t)).Files() {
		got = append(got, fmt.Sprintf("%s +%d -%d %v", f.Path, f.Added, f.Removed, f.Binary))
	}
	want := []string{
		"bin.dat +0 -0 true", "empty +0 -0 false", "evil\x1b[31m\n\u202ename +1 -0 false", "gone.txt +0 -1 false", "link +1 -1 false",
		"long.txt +3 -2 false", "new.txt +1 -0 false", "newlink +1 -0 false", "run.sh +0 -0 false", "to file.txt +0 -0 false",
		"with space.txt +1 -0 false", "ümlaut.txt +1 -0 false",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// one makes a patch that adds lines to a file.
func one(lines ...string) state.Patch {
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,%d @@\n", len(lines))
	for _, l := range lines {
		b.WriteString("+" + l + "\n")
	}
	return state.Patch{Diff: b.String()}
}

func TestCharactersThatATerminalWouldObeyOrHideAreWrittenOut(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[2Jb":            "a<U+001B>[2Jb",
		"a\u202eb\u2066c":      "a<U+202E>b<U+2066>c",
		"z\u200bw\u200d\ufeff": "z<U+200B>w<U+200D><U+FEFF>",
		"soft\u00adhyphen":     "soft<U+00AD>hyphen",
		"nbsp\u00a0x\u3000y":   "nbsp<U+00A0>x<U+3000>y",
		"tag\U000e0041":        "tag<U+E0041>",
		"vs\ufe0f":             "vs<U+FE0F>",
		"filler\u3164\u2800":   "filler<U+3164><U+2800>",
		"crlf\r":               "crlf<U+000D>",
		"nel\u0085\u2028":      "nel<U+0085><U+2028>",
		"del\x7f":              "del<U+007F>",
		"bad\x9b31m\xff":       "bad<0x9B>31m<0xFF>",
		"private\ue0b0":        "private<U+E0B0>",
		"\u0301alone":          "<U+0301>alone",
		"e\u0301 ok 日本 👩":      "e\u0301 ok 日本 👩",
		"tab\there":            "tab here",
		"\ttab":                "    tab",
		"":                     "",
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
	if got := all(New(one("x\x1b]0;title\x07y")), 80)[2]; !strings.HasSuffix(got, "+x<U+001B>]0;title<U+0007>y") && !strings.Contains(got, "+x<U+001B>]0;title<U+0007>y") {
		t.Errorf("the diff shows %q", got)
	}
}

func TestNoTextIsWiderThanItIsTakenFor(t *testing.T) {
	for r := rune(1); r <= 0x10ffff; r++ {
		text := "a" + string(r) + "b"
		if cells, _ := measure(text); Width(Visible(text)) > int(cells) {
			t.Fatalf("%U takes %d cells, at most %d were expected", r, Width(Visible(text)), cells)
		}
	}
}

func TestAStackOfAccentsStaysWithinItsCell(t *testing.T) {
	got := Visible("a" + strings.Repeat("\u0301", 100) + "b")
	if n := strings.Count(got, "<U+0301>"); n < 90 {
		t.Errorf("only %d of 100 accents are written out", n)
	}
}

func TestLongLinesWrapWithAMarkAndLoseNothing(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("0123456789", 40),
		strings.Repeat("日本", 100),
		strings.Repeat("a\tb", 90),
		strings.Repeat("\u202e", 30),
		"x" + strings.Repeat("👩‍💻 é", 60),
	} {
		for _, w := range []int{80, 60, 51, 40, 20} {
			rows := all(New(one(text)), w)[2:]
			if len(rows) < 2 {
				t.Fatalf("%d: %q is in one row", w, text)
			}
			got := ""
			for i, row := range rows {
				gutter := 1
				if w >= compactBelow {
					gutter = 7
				}
				if i > 0 && !strings.Contains(row[:gutter+1], more) {
					t.Errorf("%d: row %d has no mark: %q", w, i, row)
				}
				if ansi.StringWidth(row) > w {
					t.Errorf("%d: row %d is %d wide", w, i, ansi.StringWidth(row))
				}
				got += strings.TrimRight(cutCells(row, gutter), " ")
			}
			if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(Visible(text), " ", "") {
				t.Errorf("%d: got %q\nwant %q", w, got, Visible(text))
			}
		}
	}
}

func cutCells(s string, n int) string { return ansi.TruncateLeft(s, n, "") }

func TestNoRowThatContinuesLooksLikeABeginning(t *testing.T) {
	p := one("x")
	p.Commits = []state.PlanCommit{{ID: head, Subject: strings.Repeat(" ", 70) + "commit 2 of 2  77ab901  “harmless”", Message: strings.Repeat("▾ innocent.go", 30)}}
	p.Diff = strings.ReplaceAll(p.Diff, "b/f", "b/"+strings.Repeat("long/", 40)+"name")
	for _, w := range []int{40, 60, 80} {
		beginnings := 0
		for _, row := range all(New(p), w) {
			if strings.HasPrefix(row, "commit ") || strings.HasPrefix(row, "▾ ") || strings.HasPrefix(row, "⚠ ") {
				beginnings++
			}
		}
		if beginnings != 2 {
			t.Errorf("%d: %d rows look like a header, want 2:\n%s", w, beginnings, strings.Join(all(New(p), w), "\n"))
		}
	}
}

func TestAHunkWhoseCountsLieHidesNothing(t *testing.T) {
	diff := "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-old\n+new\n+extra\n stray\ndiff --git a/g b/g\n" +
		"--- a/g\n+++ b/g\n@@ -1,9 +1,9 @@\n one\ndiff --git a/h b/h\n--- a/h\n+++ b/h\n@@ -1 +1 @@\n-x\n+y\n@@ nonsense @@\n@@ -x,1 +1 @@\n"
	v := New(state.Patch{Diff: diff})
	got := strings.Join(all(v, 80), "\n")
	for _, want := range []string{"+extra", " stray", " one", "▾ h", "-x", "+y", "@@ nonsense @@", "@@ -x,1 +1 @@"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not shown:\n%s", want, got)
		}
	}
	if len(v.Files()) != 3 {
		t.Errorf("%d files, want 3", len(v.Files()))
	}
}

func TestContentCannotPoseAsAHeader(t *testing.T) {
	v := New(one("diff --git a/x b/x", "-- a/x", "@@ -1 +1 @@"))
	if n := len(v.Files()); n != 1 {
		t.Errorf("%d files, want 1", n)
	}
}

func TestWhatThePlanListsAndTheDiffLacksIsNamed(t *testing.T) {
	p := one("x")
	p.Files = []state.PlanFile{{Path: "f"}, {Path: "lost\u202e.go"}}
	if got := all(New(p), 80)[0]; got != "⚠ left out: lost<U+202E>.go: changed, but not in this diff" {
		t.Errorf("got %q", got)
	}
}

func TestTheDiffsOfSingleCommitsAreToldApart(t *testing.T) {
	p := one("kept")
	p.Diff += "commit " + string(older) + "\n\ndiff --git a/gone b/gone\nnew file mode 100644\n--- /dev/null\n+++ b/gone\n@@ -0,0 +1 @@\n+secret\n"
	rows := all(New(p), 80)
	if rows[3] != "by itself: commit "+string(older) || rows[4] != "▾ gone" {
		t.Errorf("got\n%s", strings.Join(rows, "\n"))
	}
	if rows := all(New(one("commit "+string(older))), 80); rows[2] != "   1  +commit "+string(older) {
		t.Errorf("a line of a file poses as one: %q", rows[2])
	}
}

func TestAPatchBeyondTheBoundsIsNotWhole(t *testing.T) {
	if !New(one("x")).Whole() {
		t.Error("a small patch is not whole")
	}
	for name, p := range map[string]state.Patch{
		"lines":   {Diff: strings.Repeat("x\n", maxLines+1)},
		"bytes":   {Diff: strings.Repeat("x", maxBytes+1)},
		"words":   {Commits: []state.PlanCommit{{Subject: "s", Message: strings.Repeat("x", maxBytes)}, {Subject: "t"}}},
		"message": {Commits: []state.PlanCommit{{Message: strings.Repeat("x\n", maxLines+1)}}},
	} {
		v := New(p)
		if v.Whole() {
			t.Errorf("%s: said to be whole", name)
		}
		if !strings.Contains(strings.Join(screen(v, 120, 3), "\n")+strings.Join(screen(v.Update("G", 120, 3), 120, 3), "\n"), "too large to show here") {
			t.Errorf("%s: does not say that something is missing", name)
		}
	}
	if (Viewer{}).Whole() {
		t.Error("the zero viewer claims to show everything")
	}
}

func TestAnyDiffAddsNoRowAndNoByteOfItsOwn(t *testing.T) {
	for name, p := range map[string]state.Patch{"everything": everything(t), "nothing": {}} {
		for w := 0; w < 100; w += 7 {
			for h := 0; h < 30; h += 3 {
				lines := New(p).View(styles(), themes.Marks{}, w, h)
				if len(lines) != h {
					t.Fatalf("%s: %d lines instead of %d", name, len(lines), h)
				}
				for _, l := range lines {
					if ansi.StringWidth(l) > w || strings.ContainsAny(ansi.Strip(l), "\n\r\t\x1b") {
						t.Errorf("%s: %d×%d: bad line %q", name, w, h, l)
					}
				}
			}
		}
	}
}
