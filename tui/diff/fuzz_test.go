package diff

import (
	"testing"

	"github.com/charmbracelet/x/ansi"

	"fletch/state"
	"fletch/themes"
)

func FuzzView(f *testing.F) {
	f.Add(read(f, "everything.diff"), "subject", "message\n\nbody", 80)
	f.Add("diff --git \"a/\\033\\n\" b/x\n@@ -1,2 +1,2 @@\n-\u202ex\n+\x1b[2J\n \\\n", "\u202e", "\x9b", 40)
	f.Add("diff --cc f\n@@@ -1,1 -1,1 +1,2 @@@\n++x\n", "", "", 1)
	f.Add("@@ -1 +1 @@\n-x\n+y\nGIT binary patch\nliteral 3\n", "\ud7a4", "e\u0301\u0301", 7)
	f.Fuzz(func(t *testing.T, diff, subject, message string, w int) {
		w = 1 + (w%200+200)%200
		v := New(state.Patch{Diff: diff, Commits: []state.PlanCommit{{Subject: subject, Message: message}}})
		total := v.Position(w, 1).Total
		h := min(total, 200)
		lines := v.View(styles(), themes.Marks{}, w, h)
		if len(lines) != h {
			t.Fatalf("%d lines instead of %d", len(lines), h)
		}
		for i, l := range lines {
			text := ansi.Strip(l)
			if Width(text) > w {
				t.Errorf("line %d is %d cells in %d: %q", i, Width(text), w, text)
			}
			for _, r := range text {
				if hidden(r) && r != ' ' {
					t.Errorf("line %d lets %U through: %q", i, r, text)
				}
			}
		}
		for _, key := range []string{"G", "K", "b", "h", "J", "l", "k", "j", "ctrl+d", "g"} {
			v = v.Update(key, w, 5)
			if p := v.Position(w, 5); total > 0 && (p.From < 1 || p.From > total || p.To > total) {
				t.Errorf("after %q: %+v", key, p)
			}
		}
	})
}
