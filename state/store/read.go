package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	bolt "go.etcd.io/bbolt"

	"fletch/state"
)

// usualLimit is how many events a read returns when it does not say.
const usualLimit = 1000

// Events returns up to limit events (0 means 1,000) whose number is greater
// than after, oldest first; of one agent only unless agent is empty.
func (s *Store) Events(ctx context.Context, after uint64, limit int, agent state.AgentID) ([]state.Event, error) {
	return s.read(ctx, limit, agent, func(c *bolt.Cursor) ([]byte, func() ([]byte, []byte)) {
		if after == ^uint64(0) {
			return nil, c.Next
		}
		k, _ := c.Seek(key(after + 1))
		return k, c.Next
	})
}

// Latest returns the newest events, up to limit (0 means 1,000), newest last;
// of one agent only unless agent is empty.
func (s *Store) Latest(ctx context.Context, agent state.AgentID, limit int) ([]state.Event, error) {
	events, err := s.read(ctx, limit, agent, func(c *bolt.Cursor) ([]byte, func() ([]byte, []byte)) {
		k, _ := c.Last()
		return k, c.Prev
	})
	slices.Reverse(events)
	return events, err
}

// read collects events along a walk over the event numbers: those of one
// agent from its index, else all.
func (s *Store) read(ctx context.Context, limit int, agent state.AgentID,
	from func(*bolt.Cursor) ([]byte, func() ([]byte, []byte)),
) ([]state.Event, error) {
	if limit <= 0 {
		limit = usualLimit
	}
	var found []state.Event
	err := s.view(func(tx *bolt.Tx) error {
		events := tx.Bucket(bucketEvents)
		numbers := events
		if agent != "" {
			if numbers = tx.Bucket(bucketAgents).Bucket([]byte(agent)); numbers == nil {
				return nil
			}
		}
		k, next := from(numbers.Cursor())
		for ; k != nil && len(found) < limit; k, _ = next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, _, _, err := decode(k, events.Get(k))
			if err != nil {
				return damaged(s.path, "%v", err)
			}
			found = append(found, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	return found, nil
}

// Verify reads the whole file: its pages, every event from the first, the
// chain they form, the index and the stored folds, and compares the end with
// the head file. It returns the newest event it saw. An error wraps
// [ErrDamaged] and names the first event that is not as it was written.
// Appends wait only while the pages are checked.
func (s *Store) Verify(ctx context.Context) (Head, error) {
	head, err := s.verify(ctx)
	if err != nil {
		return Head{}, fmt.Errorf("verifying the store: %w", err)
	}
	return head, nil
}

func (s *Store) verify(ctx context.Context) (Head, error) {
	// The head file is read first: events that come later only add to it.
	noted, uuid, err := readHead(s.headPath)
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, damaged(s.headPath, "it is gone")
	}
	if err != nil {
		return Head{}, err
	}
	if uuid != s.uuid {
		return Head{}, damaged(s.headPath, "it belongs to another store, %.40s", uuid)
	}
	if err := s.checkPages(); err != nil {
		return Head{}, err
	}
	var walk chain
	err = s.view(func(tx *bolt.Tx) error {
		walk, err = walkChain(ctx, tx, s.uuid, noted.Seq)
		if err != nil && ctx.Err() == nil {
			return damaged(s.path, "%v", err)
		}
		return err
	})
	if err != nil {
		return Head{}, err
	}
	head := Head{walk.fleet.Seq, walk.end.String()}
	return head, compare(noted, head, walk.noted, s.uuid, s.headPath)
}

// checkPages looks at the file's structure while nothing is written to it.
func (s *Store) checkPages() error {
	s.write.Lock()
	defer s.write.Unlock()
	return checkFile(s.path)
}

// compare tells whether a store that ends with has can be what the head file
// noted: that, or that and more. at is the hash of the store's event number
// noted.Seq.
func compare(noted, has Head, at sum, uuid, headPath string) error {
	switch {
	case noted.Seq > has.Seq:
		return disagree(headPath, has, uuid, "the store lost %s: it ends with event %d, and there were %d",
			count(noted.Seq-has.Seq, "event"), has.Seq, noted.Seq)
	case noted.Hash != at.String():
		return disagree(headPath, has, uuid, "event %d is not the one that was noted", noted.Seq)
	}
	return nil
}

func count(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// chain is what a walk over all events found.
type chain struct {
	fleet state.Fleet
	end   sum // hash of the last event
	noted sum // hash of the event that was asked for
}

// walkChain reads every event from the first and checks all that is derived
// from them.
func walkChain(ctx context.Context, tx *bolt.Tx, uuid string, want uint64) (chain, error) {
	events, agents, folds := tx.Bucket(bucketEvents), tx.Bucket(bucketAgents), tx.Bucket(bucketFolds)
	walk := chain{end: genesis(uuid)}
	if want == 0 {
		walk.noted = walk.end
	}
	indexed := 0
	for c, k, v := begin(events); k != nil; k, v = c.Next() {
		if err := ctx.Err(); err != nil {
			return walk, err
		}
		e, err := walk.follow(k, v)
		if err != nil {
			return walk, err
		}
		if e.Seq == want {
			walk.noted = walk.end
		}
		if e.Agent != "" {
			indexed++
			if index := agents.Bucket([]byte(e.Agent)); index == nil || index.Get(k) == nil {
				return walk, fmt.Errorf("event %d is missing from the index of its agent", e.Seq)
			}
		}
		if record := folds.Get(k); record != nil {
			if err := walk.checkFold(record); err != nil {
				return walk, fmt.Errorf("the fold stored after event %d: %w", e.Seq, err)
			}
		}
	}
	return walk, checkIndex(agents, indexed)
}

func begin(b *bolt.Bucket) (c *bolt.Cursor, k, v []byte) {
	c = b.Cursor()
	k, v = c.First()
	return c, k, v
}

// follow takes the next event into the walk; it must be the one that comes
// after the last.
func (w *chain) follow(k, v []byte) (state.Event, error) {
	want := w.fleet.Seq + 1
	if len(k) == 8 && binary.BigEndian.Uint64(k) != want {
		return state.Event{}, fmt.Errorf("event %d is missing", want)
	}
	e, prev, own, err := decode(k, v)
	if err != nil {
		return e, err
	}
	if prev != w.end {
		return e, fmt.Errorf("event %d was replaced: event %d follows another", want-1, want)
	}
	w.fleet, w.end = w.fleet.Apply(e), own
	return e, nil
}

func (w *chain) checkFold(record []byte) error {
	stored, err := decodeFold(record)
	if err != nil {
		return err
	}
	if stored.Version != foldVersion {
		return nil // not used either
	}
	want, err := json.Marshal(w.fleet)
	if err != nil {
		return err
	}
	got, err := json.Marshal(stored.Fleet)
	if err != nil {
		return err
	}
	if stored.Hash != w.end.String() || !bytes.Equal(got, want) {
		return errors.New("it is not what the events give")
	}
	return nil
}

func checkIndex(agents *bolt.Bucket, want int) error {
	got := 0
	err := agents.ForEachBucket(func(name []byte) error {
		return agents.Bucket(name).ForEach(func([]byte, []byte) error {
			got++
			return nil
		})
	})
	if err == nil && got != want {
		err = fmt.Errorf("the index of agents names %d events instead of %d", got, want)
	}
	return err
}
