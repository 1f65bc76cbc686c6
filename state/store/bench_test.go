package store

import (
	"path/filepath"
	"testing"
)

// BenchmarkAppend is one event, durable, on the disk of TMPDIR.
func BenchmarkAppend(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "state.db"), filepath.Join(b.TempDir(), "state.head"), newClock().now)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, err := s.Append(b.Context(), notice("x")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen and BenchmarkVerify read a store of 5,500 random events.
func BenchmarkOpen(b *testing.B) {
	path, head := large(b)
	for b.Loop() {
		s, err := Open(path, head, newClock().now)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkVerify(b *testing.B) {
	path, head := large(b)
	s, err := Open(path, head, newClock().now)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, err := s.Verify(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func large(b *testing.B) (path, head string) {
	b.Helper()
	path, head = filepath.Join(b.TempDir(), "state.db"), filepath.Join(b.TempDir(), "state.head")
	s, err := Open(path, head, newClock().now)
	if err != nil {
		b.Fatal(err)
	}
	s.db.NoSync = true // a store to read, not to keep
	g := newGen(1)
	for range 5500 {
		e := g.next()
		if e.Kind() == "created" && g.agents > 100 {
			g.agents = 100
			continue
		}
		if _, err := s.Append(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return path, head
}
