package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"fletch/state"
)

// untouched runs do and checks that neither file changed.
func untouched(t *testing.T, f files, do func()) {
	t.Helper()
	look := func() string {
		var all strings.Builder
		for _, path := range []string{f.db, f.head} {
			body, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%s %v %q\n", path, errors.Is(err, os.ErrNotExist), body)
		}
		return all.String()
	}
	before := look()
	do()
	if look() != before {
		t.Fatal("a file was changed or made")
	}
}

// marked makes a store whose event 5 carries a text to be found in the file.
func marked(t *testing.T, f files) {
	t.Helper()
	s := f.open(t)
	for n := range 9 {
		text := "plain"
		if n == 4 {
			text = "the-marked-event"
		}
		add(t, s, notice(text))
	}
	closed(t, s)
}

// flip changes one bit in every copy of the marked event that is in the file:
// bbolt leaves older ones in free pages.
func flip(t *testing.T, path string) {
	t.Helper()
	body := read(t, path)
	changed := bytes.ReplaceAll(body, []byte("the-marked-event"), []byte("the-marked-evenu"))
	if bytes.Equal(changed, body) {
		t.Fatal("the marked event is not in the file")
	}
	write(t, path, changed)
}

func TestFlippedByteIsNamedByOpen(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	flip(t, f.db)
	untouched(t, f, func() {
		if err := f.mustFail(t, ErrDamaged); !strings.Contains(err.Error(), "event 5 is not as it was written") {
			t.Fatal(err)
		}
	})
}

func TestFlippedByteUnderARunningStoreIsNamedByVerify(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	s := f.open(t)
	verified(t, s)
	flip(t, f.db)
	_, err := s.Verify(t.Context())
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "event 5 is not as it was written") {
		t.Fatalf("Verify said %v", err)
	}
	if _, err := s.Events(t.Context(), 0, 0, ""); !errors.Is(err, ErrDamaged) {
		t.Fatalf("Events said %v", err)
	}
}

// TestFlippedByteBehindAStoredFoldIsNamedByVerify: an open does not read that far back;
// Verify does.
func TestFlippedByteBehindAStoredFoldIsNamedByVerify(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	s := f.open(t)
	for range foldEvery {
		add(t, s, notice("x"))
	}
	closed(t, s)
	flip(t, f.db)
	_, err := f.open(t).Verify(t.Context())
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "event 5 is not as it was written") {
		t.Fatalf("Verify said %v", err)
	}
}

func TestReplacedEventIsNamed(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	change(t, f.db, func(tx *bolt.Tx) error {
		events := tx.Bucket(bucketEvents)
		e, prev, _, err := decode(key(5), events.Get(key(5)))
		if err != nil {
			return err
		}
		e.Body = state.Noticed{Kind: "info", Text: "another story"}
		record, _, err := encode(prev, e) // in itself it is right
		if err != nil {
			return err
		}
		return events.Put(key(5), record)
	})
	untouched(t, f, func() {
		if err := f.mustFail(t, ErrDamaged); !strings.Contains(err.Error(), "event 5 was replaced") {
			t.Fatal(err)
		}
	})
}

func TestMissingEventIsNamed(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	change(t, f.db, func(tx *bolt.Tx) error { return tx.Bucket(bucketEvents).Delete(key(5)) })
	if err := f.mustFail(t, ErrDamaged); !strings.Contains(err.Error(), "event 5 is missing") {
		t.Fatal(err)
	}
}

func TestMissingIndexEntryIsNamedByVerify(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	change(t, f.db, func(tx *bolt.Tx) error { return tx.Bucket(bucketAgents).Bucket([]byte("aaaaaaaa")).Delete(key(5)) })
	if _, err := f.open(t).Verify(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "event 5 is missing from the index") {
		t.Fatalf("Verify said %v", err)
	}
}

func TestCutTailIsTold(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	change(t, f.db, func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(bucketEvents).Delete(key(9)), tx.Bucket(bucketEvents).Delete(key(8)))
	})
	var err error
	untouched(t, f, func() { err = f.mustFail(t, ErrDamaged) })
	if !strings.Contains(err.Error(), "the store lost 2 events: it ends with event 7, and there were 9") {
		t.Fatal(err)
	}
	// The hint's way out: the person writes down what is left.
	var told interface{ Hint() string }
	errors.As(err, &told)
	_, line, _ := strings.Cut(told.Hint(), "echo '")
	line, _, _ = strings.Cut(line, "'")
	write(t, f.head, []byte(line+"\n"))
	if got := f.open(t).Head().Seq; got != 7 {
		t.Fatalf("after the loss was accepted: %d events", got)
	}
}

func TestCutTailUnderARunningStoreIsToldByVerifyAndAppend(t *testing.T) {
	f := newFiles(t)
	s := f.open(t)
	for range 3 {
		add(t, s, notice("x"))
	}
	if err := s.db.Update(func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(bucketEvents).Delete(key(3)), tx.Bucket(bucketAgents).Bucket([]byte("aaaaaaaa")).Delete(key(3)))
	}); err != nil {
		t.Fatal(err)
	}
	before := s.Fleet()
	if _, err := s.Verify(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "the store lost 1 event:") {
		t.Fatalf("Verify said %v", err)
	}
	if _, err := s.Append(t.Context(), notice("y")); !errors.Is(err, ErrDamaged) {
		t.Fatalf("Append said %v", err)
	}
	sameJSON(t, "the fleet", s.Fleet(), before)
}

// TestEventOfAHalfFailedWriteIsKeptAndFoundByTheNextOpen: the file holds an event that Append reported as
// not stored. It is not written over; the next open finds it.
func TestEventOfAHalfFailedWriteIsKeptAndFoundByTheNextOpen(t *testing.T) {
	f := newFiles(t)
	s := f.open(t)
	add(t, s, notice("x"))
	e := state.Event{Seq: 2, At: newClock().at, Agent: "aaaaaaaa", Body: state.Seen{}}
	record, _, err := encode(s.head, e)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.Update(func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(bucketEvents).Put(key(2), record), tx.Bucket(bucketAgents).Bucket([]byte("aaaaaaaa")).Put(key(2), nil))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), notice("y")); !errors.Is(err, ErrDamaged) {
		t.Fatalf("Append said %v", err)
	}
	closed(t, s)
	s = f.open(t)
	if got, err := s.Latest(t.Context(), "", 1); err != nil || got[0].Kind() != "seen" || s.Head().Seq != 2 {
		t.Fatalf("%v %v, head %v", got, err, s.Head())
	}
	verified(t, s)
}

func TestHeadFileThatDoesNotFitIsTold(t *testing.T) {
	f, other := newFiles(t), newFiles(t)
	marked(t, f)
	marked(t, other)
	right := string(read(t, f.head))
	for name, test := range map[string]struct{ body, want string }{
		"gone":          {"", "the head file is gone"},
		"another store": {string(read(t, other.head)), "belongs to another store"},
		"another hash":  {strings.Replace(right, strings.Fields(right)[1], strings.Repeat("ab", 32), 1), "event 9 is not the one that was noted"},
		"no number":     {"x y z", "not a number"},
		"no hash":       {"9 zz " + strings.Repeat("0", 32), "not a sha256"},
		"one word":      {"9", "three words"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.Remove(f.head); err != nil {
				t.Fatal(err)
			}
			if test.body != "" {
				write(t, f.head, []byte(test.body))
			}
			untouched(t, f, func() {
				if err := f.mustFail(t, ErrDamaged); !strings.Contains(err.Error(), test.want) {
					t.Fatal(err)
				}
			})
			write(t, f.head, []byte(right))
		})
	}
	closed(t, f.open(t))
}

func TestMissingStoreWithAHeadFileIsNotMadeAnew(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	if err := os.Remove(f.db); err != nil {
		t.Fatal(err)
	}
	untouched(t, f, func() { f.mustFail(t, ErrDamaged) })
}

func TestFileThatIsNoStoreIsRefusedAsItIs(t *testing.T) {
	for name, body := range map[string][]byte{
		"empty":       {},
		"one byte":    {0},
		"text":        []byte("not a store\n"),
		"zeros":       make([]byte, 64<<10),
		"random":      randomBytes(64 << 10),
		"half a page": randomBytes(2048),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(t)
			write(t, f.db, body)
			untouched(t, f, func() { f.mustFail(t, ErrDamaged) })
		})
	}
	t.Run("a directory", func(t *testing.T) {
		f := newFiles(t)
		if err := os.Mkdir(f.db, 0o700); err != nil {
			t.Fatal(err)
		}
		f.mustFail(t, ErrDamaged)
	})
	t.Run("another bbolt file", func(t *testing.T) {
		f := newFiles(t)
		change(t, f.db, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("mine")); return err })
		untouched(t, f, func() { f.mustFail(t, ErrDamaged) })
	})
}

func randomBytes(n int) []byte {
	g, body := newGen(9), make([]byte, n)
	for i := range body {
		body[i] = byte(g.Uint32())
	}
	return body
}

// TestTruncatedStoreIsReportedAndNeverRemade cuts the file at many places. bbolt keeps
// room at the end that holds nothing; a cut there loses nothing.
func TestTruncatedStoreIsReportedAndNeverRemade(t *testing.T) {
	whole := newFiles(t)
	all := whole.filled(t, 120)
	body, head := read(t, whole.db), read(t, whole.head)
	cuts := []int{0, 1, 15, 16, 79, 80, 4095, 4096, 4097, 8191, 8192, 12288}
	for at := 100; at < len(body); at += len(body)/97 + 13 {
		cuts = append(cuts, at)
	}
	reported := 0
	for _, at := range cuts {
		f := newFiles(t)
		write(t, f.db, body[:at])
		write(t, f.head, head)
		s, err := Open(f.db, f.head, newClock().now)
		if err == nil {
			sameJSON(t, fmt.Sprintf("the fleet after a cut at %d", at), s.Fleet(), foldOf(all))
			verified(t, s)
			closed(t, s)
			continue
		}
		reported++
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), f.db) {
			t.Fatalf("a cut at %d: %v", at, err)
		}
		if !bytes.Equal(read(t, f.db), body[:at]) || !bytes.Equal(read(t, f.head), head) {
			t.Fatalf("a cut at %d: a file was changed", at)
		}
	}
	if reported < len(cuts)/3 {
		t.Fatalf("only %d of %d cuts were reported", reported, len(cuts))
	}
}

// TestChangedByteAnywhereNeverGivesAnotherFleet changes single bytes all over the file. Each is
// told, or it lies where nothing is stored; none ends the process, hangs, or
// gives another fleet.
func TestChangedByteAnywhereNeverGivesAnotherFleet(t *testing.T) {
	whole := newFiles(t)
	all := whole.filled(t, 60)
	body, head := read(t, whole.db), read(t, whole.head)
	want := foldOf(all)
	g, told := newGen(11), 0
	f := newFiles(t)
	write(t, f.head, head)
	for range 300 {
		broken := bytes.Clone(body)
		at := g.IntN(len(broken))
		if g.IntN(3) == 0 {
			at = at / 4096 * 4096 // the heads of pages deserve more
			at += g.IntN(64)
		}
		broken[at] ^= byte(1 << g.IntN(8))
		write(t, f.db, broken)
		s, err := Open(f.db, f.head, newClock().now)
		if err != nil {
			told++
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("byte %d: %v", at, err)
			}
			if !bytes.Equal(read(t, f.db), broken) {
				t.Fatalf("byte %d: the file was changed", at)
			}
			continue
		}
		sameJSON(t, fmt.Sprintf("the fleet with byte %d changed", at), s.Fleet(), want)
		_, _ = s.Verify(t.Context()) // may tell; must come back
		closed(t, s)
		write(t, f.head, head)
	}
	if told == 0 {
		t.Fatal("no change was told")
	}
}

// TestPageThatIsFreeAndInUseIsTold: bbolt would write over it.
func TestPageThatIsFreeAndInUseIsTold(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	body := read(t, f.db)
	m, err := newestMeta(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	list := body[int64(m.freelist)*m.pageSize:]
	count := binary.NativeEndian.Uint16(list[10:])
	for name, id := range map[string]uint64{"in use": m.root, "beyond the end": m.end, "a meta page": 1, "named twice": binary.NativeEndian.Uint64(list[pageHeader:])} {
		binary.NativeEndian.PutUint16(list[10:], count+1)
		binary.NativeEndian.PutUint64(list[pageHeader+8*int(count):], id)
		write(t, f.db, body)
		untouched(t, f, func() {
			if err := f.mustFail(t, ErrDamaged); !strings.Contains(err.Error(), fmt.Sprintf("page %d is on the list of free pages", id)) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestNewerStoreIsRefusedAsItIs(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	change(t, f.db, func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keySchema, key(2)) })
	untouched(t, f, func() { f.mustFail(t, ErrNewer) })
}

func TestOlderStoreIsUpgradedWithACopyOfItself(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	next := schema{steps: []func(*bolt.Tx) error{func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("new in 2"))
		return err
	}}}
	s, err := open(f.db, f.head, newClock().now, next)
	if err != nil {
		t.Fatal(err)
	}
	verified(t, s)
	closed(t, s)
	f.mustFail(t, ErrNewer) // this build knows 1 only

	backup := f.db + ".schema-1"
	info, err := os.Stat(backup)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the copy: %v %v", info, err)
	}
	old, err := Open(backup, f.head, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	verified(t, old)
	closed(t, old)
}

func TestUpgradeThatFailsChangesNothing(t *testing.T) {
	f := newFiles(t)
	marked(t, f)
	broken := schema{steps: []func(*bolt.Tx) error{func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket(bucketEvents), errors.New("no room"))
	}}}
	if _, err := open(f.db, f.head, newClock().now, broken); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Fatalf("got %v", err)
	}
	verified(t, f.open(t))
}

// FuzzCheckPages: whatever the file holds, the check comes to an end without
// a panic.
func FuzzCheckPages(f *testing.F) {
	f.Add(randomBytes(100), uint16(0), byte(1))
	f.Add([]byte{}, uint16(3*4096+9), byte(0x80))
	dir := f.TempDir()
	if err := create(dir+"/db", current()); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(dir + "/db")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, patch []byte, at uint16, flip byte) {
		body := bytes.Clone(whole)
		copy(body[2*4096:], patch)
		body[int(at)%len(body)] ^= flip
		_ = checkPages(bytes.NewReader(body), int64(len(body)))
		_ = checkPages(bytes.NewReader(patch), int64(len(patch)))
	})
}
