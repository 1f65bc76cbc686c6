package sheet

import (
	"testing"

	"fletch/themes"
)

func BenchmarkView(b *testing.B) {
	s := open(request(forced), 120, 40)
	st := themes.New(true, themes.Full)
	for b.Loop() {
		s.View(st, themes.Marks{}, 120, 40)
	}
}

func BenchmarkTick(b *testing.B) {
	s := open(request(forced), 120, 40)
	for b.Loop() {
		s.Tick(t0)
	}
}
