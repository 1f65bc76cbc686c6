package store

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"fletch/state"
)

// foldEvery stands for the usual 1,000, which only cost time here.
const foldEvery = 100

// files is a place for one store.
type files struct{ db, head string }

// newFiles takes memory for a disk where it can: thousands of fsyncs on a
// busy disk are most of what these tests would cost.
func newFiles(t *testing.T) files {
	dir, err := os.MkdirTemp("/dev/shm", "fletch-store-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return files{filepath.Join(dir, "state.db"), filepath.Join(dir, "state.head")}
}

func (f files) open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(f.db, f.head, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.foldEvery = foldEvery
	return s
}

func (f files) mustFail(t *testing.T, want error) error {
	t.Helper()
	s, err := Open(f.db, f.head, newClock().now)
	if err == nil {
		s.Close()
		t.Fatalf("opened, want %v", want)
	}
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	var told interface {
		Code() string
		Hint() string
	}
	if !errors.As(err, &told) || told.Code() == "" || told.Hint() == "" {
		t.Fatalf("%v has no code and hint", err)
	}
	return err
}

func closed(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, s *Store, e state.Event) state.Event {
	t.Helper()
	stored, err := s.Append(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func notice(text string) state.Event {
	return state.Event{Agent: "aaaaaaaa", Body: state.Noticed{Kind: "info", Text: text}}
}

// filled makes a store of n random events and returns them.
func (f files) filled(t *testing.T, n int) []state.Event {
	t.Helper()
	s, g := f.open(t), newGen(uint64(n))
	var all []state.Event
	for range n {
		all = append(all, add(t, s, g.next()))
	}
	closed(t, s)
	return all
}

func foldOf(events []state.Event) state.Fleet {
	var fleet state.Fleet
	for _, e := range events {
		fleet = fleet.Apply(e)
	}
	return fleet
}

func verified(t *testing.T, s *Store) {
	t.Helper()
	head, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if head != s.Head() {
		t.Fatalf("verified up to %v, head is %v", head, s.Head())
	}
}

func TestNewStoreIsEmptyAndVerifies(t *testing.T) {
	f := newFiles(t)
	s := f.open(t)
	if s.Head().Seq != 0 || len(s.UUID()) != 32 {
		t.Fatalf("head %v, uuid %q", s.Head(), s.UUID())
	}
	verified(t, s)
	uuid, head := s.UUID(), s.Head()
	closed(t, s)
	again := f.open(t)
	if again.UUID() != uuid || again.Head() != head {
		t.Fatalf("after an open again: %q %v, was %q %v", again.UUID(), again.Head(), uuid, head)
	}
	if other := newFiles(t).open(t); other.UUID() == uuid || other.Head() == head {
		t.Fatal("two stores share an identity")
	}
}

func TestFilesAdmitNobodyElse(t *testing.T) {
	f := newFiles(t)
	add(t, f.open(t), notice("x"))
	entries, err := os.ReadDir(filepath.Dir(f.db))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
	if !slices.Equal(names, []string{"state.db", "state.head"}) {
		t.Errorf("left behind: %v", names)
	}
}

func TestAppendNumbersAndDatesEvents(t *testing.T) {
	f, c := newFiles(t), newClock()
	s, err := Open(f.db, f.head, c.now)
	if err != nil {
		t.Fatal(err)
	}
	first := add(t, s, state.Event{Seq: 99, At: time.Unix(1, 0), Agent: "aaaaaaaa", Body: state.Seen{}})
	if first.Seq != 1 || !first.At.Equal(c.at) || first.At.Location() != time.UTC {
		t.Fatalf("got %v at %v", first.Seq, first.At)
	}
	c.at = c.at.Add(-time.Hour)
	second := add(t, s, notice("the clock went back"))
	if second.Seq != 2 || second.At != first.At {
		t.Fatalf("after the clock went back: %d at %v, the one before was at %v", second.Seq, second.At, first.At)
	}
	closed(t, s)
	s, err = Open(f.db, f.head, c.now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if third := add(t, s, notice("and is still back")); third.At != first.At {
		t.Fatalf("after an open again: at %v, the one before was at %v", third.At, first.At)
	}
}

func TestEventsReadBackAsAppended(t *testing.T) {
	f := newFiles(t)
	all := f.filled(t, 400)
	s := f.open(t)
	got, err := s.Events(t.Context(), 0, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "the log", got, all)
	got, err = s.Events(t.Context(), 390, 5, "")
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "five after 390", got, all[390:395])
	for _, after := range []uint64{400, 5000, math.MaxUint64} {
		if got, err = s.Events(t.Context(), after, 0, ""); err != nil || len(got) != 0 {
			t.Fatalf("after %d: %v %v", after, got, err)
		}
	}

	var mine []state.Event
	for _, e := range all {
		if e.Agent == "agent001" {
			mine = append(mine, e)
		}
	}
	if len(mine) < 5 {
		t.Fatal("the generator made too few events of one agent")
	}
	if got, err = s.Events(t.Context(), 0, 0, "agent001"); err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "one agent's log", got, mine)
	if got, err = s.Latest(t.Context(), "agent001", 3); err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "one agent's newest", got, mine[len(mine)-3:])
	if got, err = s.Latest(t.Context(), "", 7); err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "the newest of all", got, all[393:])
	if got, err = s.Latest(t.Context(), "nobody", 7); err != nil || len(got) != 0 {
		t.Fatalf("of nobody: %v %v", got, err)
	}
}

func TestReadsEndWithTheirContext(t *testing.T) {
	f := newFiles(t)
	f.filled(t, 10)
	s := f.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Events(ctx, 0, 0, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Events: %v", err)
	}
	if _, err := s.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify: %v", err)
	}
	if _, err := s.Append(ctx, notice("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Append: %v", err)
	}
	if _, _, err := s.Watch(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch: %v", err)
	}
	if s.Head().Seq != 10 {
		t.Errorf("a cancelled append left %v", s.Head())
	}
}

func TestMemoryHoldsWhatAReopenReads(t *testing.T) {
	f := newFiles(t)
	all := f.filled(t, 300)
	s := f.open(t)
	sameJSON(t, "the fleet", s.Fleet(), foldOf(all))
	command := []string{"sh", "bad \xff byte"}
	agent := state.Agent{ID: "zzzzzzzz", Command: command, Created: time.Now()}
	stored := add(t, s, state.Event{Agent: "zzzzzzzz", Body: state.Created{Agent: agent}})
	command[0] = "changed by the caller"
	before := s.Fleet()
	closed(t, s)
	s = f.open(t)
	sameJSON(t, "the fleet after an open again", before, s.Fleet())
	got, err := s.Latest(t.Context(), "zzzzzzzz", 1)
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "the event", stored, got[0])
}

func TestStoredFoldAndLaterEventsGiveTheFoldOfAll(t *testing.T) {
	f := newFiles(t)
	s, g := f.open(t), newGen(1)
	var all []state.Event
	for n := range 3*foldEvery + 20 {
		all = append(all, add(t, s, g.next()))
		// Around a stored fold and at some places between.
		if at := n + 1; at%foldEvery <= 1 || at%foldEvery == foldEvery-1 || at%77 == 0 {
			closed(t, s)
			s = f.open(t)
			sameJSON(t, "the fleet after an open", s.Fleet(), foldOf(all))
			if s.Head().Seq != uint64(at) {
				t.Fatalf("head %v after %d events", s.Head(), at)
			}
		}
	}
	verified(t, s)
	var folds []uint64
	err := s.view(func(tx *bolt.Tx) error {
		start, from := startingPoint(tx, s.uuid)
		if start.fleet.Seq != 3*foldEvery || from != 3*foldEvery+1 {
			t.Errorf("an open begins after event %d", start.fleet.Seq)
		}
		return tx.Bucket(bucketFolds).ForEach(func(_, v []byte) error {
			stored, err := decodeFold(v)
			folds = append(folds, stored.Fleet.Seq)
			return err
		})
	})
	if err != nil || !slices.Equal(folds, []uint64{2 * foldEvery, 3 * foldEvery}) {
		t.Fatalf("stored folds: %v %v", folds, err)
	}
}

func TestFoldOfAnotherVersionIsNotUsed(t *testing.T) {
	f := newFiles(t)
	all := f.filled(t, foldEvery+5)
	change(t, f.db, func(tx *bolt.Tx) error {
		folds := tx.Bucket(bucketFolds)
		_, v := folds.Cursor().First()
		stored, err := decodeFold(v)
		if err != nil {
			return err
		}
		stored.Fleet.Agents = nil
		body, err := encodeFold(stored.Fleet, sum{}) // names no event of this chain
		if err != nil {
			return err
		}
		return folds.Put(key(foldEvery), body)
	})
	s := f.open(t)
	sameJSON(t, "the fleet", s.Fleet(), foldOf(all))
	if _, err := s.Verify(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "fold stored after event 100") {
		t.Fatalf("Verify said %v", err)
	}
}

func TestAppendsFromManyGoroutinesGetOneOrder(t *testing.T) {
	s := newFiles(t).open(t)
	snapshot, events, err := s.Watch(t.Context())
	if err != nil || snapshot.Seq != 0 {
		t.Fatal(snapshot.Seq, err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 20 {
				if _, err := s.Append(t.Context(), notice("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for want := uint64(1); want <= 200; want++ {
		if e := <-events; e.Seq != want {
			t.Fatalf("published %d where %d belongs", e.Seq, want)
		}
	}
	verified(t, s)
}

func TestWatcherSeesSnapshotAndEveryLaterEvent(t *testing.T) {
	s, g := newFiles(t).open(t), newGen(3)
	appended := make(chan struct{})
	go func() {
		defer close(appended)
		for range 700 {
			if _, err := s.Append(t.Context(), g.next()); err != nil {
				t.Error(err)
			}
		}
	}()
	// A reader that now and then begins anew, while events come.
	var fleet state.Fleet
	for fleet.Seq < 700 {
		ctx, cancel := context.WithCancel(t.Context())
		seen, events, err := s.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if seen.Seq < fleet.Seq {
			t.Fatalf("a snapshot of %d after event %d", seen.Seq, fleet.Seq)
		}
		fleet = seen
		for n := 0; n < 100 && fleet.Seq < 700; n++ {
			e, ok := <-events
			if !ok {
				break // fell behind
			}
			if e.Seq != fleet.Seq+1 {
				t.Fatalf("event %d after %d", e.Seq, fleet.Seq)
			}
			fleet = fleet.Apply(e)
		}
		cancel()
	}
	<-appended
	sameJSON(t, "what the watcher shows", fleet, s.Fleet())
}

func TestWatcherThatFallsBehindIsClosedAndComesBackWithoutLoss(t *testing.T) {
	s := newFiles(t).open(t)
	_, slow, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range watchBuffer + 1 {
		add(t, s, notice("x"))
	}
	got := 0
	for range slow { // ends only because it was closed
		got++
	}
	if got != watchBuffer {
		t.Fatalf("%d events before the end, want %d", got, watchBuffer)
	}
	fleet, again, err := s.Watch(t.Context())
	if err != nil || fleet.Seq != watchBuffer+1 {
		t.Fatalf("a new snapshot of %d, %v", fleet.Seq, err)
	}
	add(t, s, notice("y"))
	if e := <-again; e.Seq != watchBuffer+2 {
		t.Fatalf("then event %d", e.Seq)
	}
}

func TestWatchEndsWithItsContextAndWithTheStore(t *testing.T) {
	s := newFiles(t).open(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, one, err := s.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, open := <-one; open {
		t.Fatal("an event after the context ended")
	}
	add(t, s, notice("x")) // publishes to who is left
	if e := <-other; e.Seq != 1 {
		t.Fatal(e.Seq)
	}
	closed(t, s)
	if _, open := <-other; open {
		t.Fatal("an event after the store closed")
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	s := newFiles(t).open(t)
	closed(t, s)
	closed(t, s)
	_, _, watch := s.Watch(t.Context())
	_, add := s.Append(t.Context(), notice("x"))
	_, read := s.Events(t.Context(), 0, 0, "")
	_, check := s.Verify(t.Context())
	for what, err := range map[string]error{"Watch": watch, "Append": add, "Events": read, "Verify": check} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSecondOpenIsToldThatAnotherHasIt(t *testing.T) {
	f := newFiles(t)
	s := f.open(t)
	f.mustFail(t, ErrLocked)
	add(t, s, notice("the first one goes on"))
	closed(t, s)
	if got := f.open(t).Head().Seq; got != 1 {
		t.Fatalf("after the first let go: %d events", got)
	}
}

func TestOfManyFirstOpensOneWins(t *testing.T) {
	f := newFiles(t)
	var all sync.WaitGroup
	won := make(chan *Store, 8)
	for range cap(won) {
		all.Go(func() {
			s, err := Open(f.db, f.head, newClock().now)
			if err == nil {
				won <- s
			} else if !errors.Is(err, ErrLocked) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d have it open", len(won))
	}
	s := <-won
	add(t, s, notice("x"))
	verified(t, s)
	closed(t, s)
}

func TestTooLargeEventIsRefusedAndChangesNothing(t *testing.T) {
	s := newFiles(t).open(t)
	before := s.Head()
	if _, err := s.Append(t.Context(), notice(strings.Repeat("x", maxEvent))); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Append(t.Context(), state.Event{}); err == nil {
		t.Fatal("an event without a body was stored")
	}
	if s.Head() != before {
		t.Fatalf("head moved to %v", s.Head())
	}
	add(t, s, notice("and then it goes on"))
	verified(t, s)
}

// TestReopenAfterAKillKeepsEveryAppendedEvent stands in for a kill: it opens what was on
// disk when Append returned, and, worse, with the head file of one event ago.
func TestReopenAfterAKillKeepsEveryAppendedEvent(t *testing.T) {
	f := newFiles(t)
	s, g := f.open(t), newGen(5)
	var all []state.Event
	earlier := read(t, f.head)
	for range 60 {
		all = append(all, add(t, s, g.next()))
		for _, head := range [][]byte{read(t, f.head), earlier} {
			left := newFiles(t)
			write(t, left.db, read(t, f.db))
			write(t, left.head, head)
			after := left.open(t)
			sameJSON(t, "the fleet after a kill", after.Fleet(), foldOf(all))
			verified(t, after)
			closed(t, after)
			if got := string(read(t, left.head)); got != string(read(t, f.head)) {
				t.Fatalf("the head file was not brought up to date: %q", got)
			}
		}
		earlier = read(t, f.head)
	}
}

func TestCrashWhileCreatingLeavesNothingInTheWay(t *testing.T) {
	f := newFiles(t)
	write(t, f.db+".new-123", []byte("half a store"))
	s := f.open(t)
	closed(t, s)
	if _, err := os.Stat(f.db + ".new-123"); err == nil {
		t.Error("what the crash left is still there")
	}
	if err := os.Remove(f.head); err != nil { // a crash between store and head
		t.Fatal(err)
	}
	verified(t, f.open(t))
}

func TestHeadFileThatCannotBeWrittenStopsTheNextAppend(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: needs a directory in the way of a rename")
	}
	f := newFiles(t)
	s := f.open(t)
	if err := os.Mkdir(f.head+".next", 0o700); err != nil { // not to be opened for writing
		t.Fatal(err)
	}
	add(t, s, notice("durable, though its head is not noted"))
	before := s.Head()
	if _, err := s.Append(t.Context(), notice("two behind")); err == nil {
		t.Fatal("appended with a head file that is one behind already")
	}
	if s.Head() != before {
		t.Fatalf("head moved to %v", s.Head())
	}
	if err := os.Remove(f.head + ".next"); err != nil {
		t.Fatal(err)
	}
	add(t, s, notice("and then it goes on"))
	verified(t, s)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func write(t *testing.T, path string, body []byte) {
	t.Helper()
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

// change edits a closed store with bbolt's own hands.
func change(t *testing.T, path string, do func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(do), db.Close()); err != nil {
		t.Fatal(err)
	}
}
