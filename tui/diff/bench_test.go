package diff

import (
	"fmt"
	"strings"
	"testing"

	"fletch/state"
	"fletch/themes"
)

// big is a diff of n lines in a hundred files.
func big(n int) state.Patch {
	var b strings.Builder
	for f := range 100 {
		fmt.Fprintf(&b, "diff --git a/dir/f%d.go b/dir/f%d.go\n--- a/dir/f%d.go\n+++ b/dir/f%d.go\n@@ -1,%d +1,%d @@\n", f, f, f, f, n/200, n/200)
		for i := range n / 200 {
			fmt.Fprintf(&b, "-\tfor i := %d; i < max; i++ { // a line of the usual length, or so\n+\tfor attempt := %d; attempt < max; attempt++ { // – and ünicode\n", i, i)
		}
	}
	return state.Patch{Diff: b.String()}
}

func BenchmarkNew100k(b *testing.B) {
	p := big(100_000)
	for b.Loop() {
		New(p)
	}
}

func BenchmarkFirstView100k(b *testing.B) {
	p := big(100_000)
	for b.Loop() {
		b.StopTimer()
		v := New(p)
		b.StartTimer()
		v.View(styles(), themes.Marks{}, 80, 60)
	}
}

func BenchmarkView100k(b *testing.B) {
	v := New(big(100_000)).Update("G", 118, 60).Update("b", 118, 60)
	s := styles()
	for b.Loop() {
		v.View(s, themes.Marks{}, 118, 60)
	}
}

func BenchmarkMove100k(b *testing.B) {
	v := New(big(100_000))
	for b.Loop() {
		v = v.Update("J", 118, 60)
		v.Position(118, 60)
	}
}
