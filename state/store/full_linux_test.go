package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFullDiskRefusesTheEventAndKeepsTheFleet(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: mounting a small tmpfs needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Skip("SKIPPED: cannot mount a tmpfs here: " + err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	f := files{filepath.Join(dir, "state.db"), filepath.Join(dir, "state.head")}
	s := f.open(t)
	_, events, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	large := notice(strings.Repeat("x", 20<<10))
	kept := 0
	for {
		if _, err = s.Append(t.Context(), large); err != nil {
			break
		}
		kept++
	}
	if !errors.Is(err, syscall.ENOSPC) || kept < 5 {
		t.Fatalf("after %d events: %v", kept, err)
	}
	before := s.Fleet()
	if before.Seq != uint64(kept) {
		t.Fatalf("the fleet is at %d after %d events", before.Seq, kept)
	}
	for range kept {
		<-events
	}
	select {
	case e := <-events:
		t.Fatalf("event %d was published and not stored", e.Seq)
	default:
	}
	verified(t, s)

	closed(t, s)
	s = f.open(t)
	sameJSON(t, "the fleet after an open on the full disk", s.Fleet(), before)

	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	add(t, s, large)
	verified(t, s)
}
