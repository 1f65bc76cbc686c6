// Package store keeps what happened: an append-only chain of state.Events in
// one bbolt file, and the Fleet they fold to. An event is durable before
// anyone hears of it. It knows no agent, no git and no gate.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"fletch/state"
)

// Store is an open store. It is safe for use by many goroutines, and one
// process has it at a time.
type Store struct {
	path, headPath string
	uuid           string
	now            func() time.Time
	foldEvery      uint64 // usualFoldEvery, except in tests

	// write is held for a whole Append, so that events are published in the
	// order of their numbers. It guards db, last and headStale; mu is only
	// taken under it or alone.
	write     sync.Mutex
	db        *bolt.DB
	last      time.Time // the newest event's At
	headStale bool      // the head file is one behind: its last write failed

	mu       sync.Mutex
	fleet    state.Fleet
	head     sum
	watchers map[*watcher]struct{}
	closed   bool
}

// UUID is the store's identity, 32 hex digits made when it was created. It
// labels everything that belongs to this store.
func (s *Store) UUID() string { return s.uuid }

// Fleet is what all events so far fold to.
func (s *Store) Fleet() state.Fleet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet
}

// Head names the newest event.
func (s *Store) Head() Head {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Head{s.fleet.Seq, s.head.String()}
}

// Append makes e durable and then publishes it to every watcher. It assigns
// Seq (one more than the newest) and At (now in UTC; never earlier than the
// newest event's, whatever the clock does), and returns the event exactly as
// a later read will. On an error the fleet is as before and nothing was
// published; errors wrap [ErrClosed], [ErrTooLarge], [ErrDamaged], ctx's own
// or the file system's.
func (s *Store) Append(ctx context.Context, e state.Event) (state.Event, error) {
	stored, err := s.append(ctx, e)
	if err != nil {
		return state.Event{}, fmt.Errorf("storing an event (%s): %w", e.Kind(), err)
	}
	return stored, nil
}

func (s *Store) append(ctx context.Context, e state.Event) (state.Event, error) {
	s.write.Lock()
	defer s.write.Unlock()
	fleet, prev, closed := s.end()
	if closed {
		return state.Event{}, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return state.Event{}, err
	}
	// The head file may be one event behind, never two: else a cut tail of
	// that length would not show.
	if s.headStale {
		if err := writeHead(s.headPath, Head{fleet.Seq, prev.String()}, s.uuid); err != nil {
			return state.Event{}, err
		}
		s.headStale = false
	}

	e.Seq, e.At = fleet.Seq+1, s.now().UTC().Round(0)
	if e.At.Before(s.last) {
		e.At = s.last
	}
	record, own, err := encode(prev, e)
	if err != nil {
		return state.Event{}, err
	}
	// Memory holds what a later open would read, not what the caller gave:
	// JSON does not keep everything (invalid UTF-8, zones), and the caller
	// may change what its slices point to.
	e, _, _, err = decode(key(e.Seq), record)
	if err != nil {
		return state.Event{}, err
	}
	fleet = fleet.Apply(e)
	if err := s.commit(e, record, prev, own, fleet); err != nil {
		return state.Event{}, err
	}

	// From here on the event has happened, whatever becomes of the head file.
	s.last = e.At
	s.headStale = writeHead(s.headPath, Head{e.Seq, own.String()}, s.uuid) != nil
	s.publish(e, fleet, own)
	return e, nil
}

func (s *Store) end() (state.Fleet, sum, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet, s.head, s.closed
}

// commit writes one event, its index entry and, now and then, the fold.
func (s *Store) commit(e state.Event, record []byte, prev, own sum, fleet state.Fleet) error {
	return guard(s.path, func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			events := tx.Bucket(bucketEvents)
			// After a commit that failed half-way the file may hold more
			// than is known here. Its end is read again by an open.
			if at := endOf(events); at != e.Seq-1 {
				return unsure(s.path, at, e.Seq-1)
			}
			if e.Seq > 1 && !bytes.Equal(events.Get(key(e.Seq - 1))[hashSize:prefix], prev[:]) {
				return damaged(s.path, "event %d changed under the running hub", e.Seq-1)
			}
			if err := events.Put(key(e.Seq), record); err != nil {
				return err
			}
			if e.Agent != "" {
				index, err := tx.Bucket(bucketAgents).CreateBucketIfNotExists([]byte(e.Agent))
				if err != nil {
					return err
				}
				if err := index.Put(key(e.Seq), nil); err != nil {
					return err
				}
			}
			if e.Seq%s.foldEvery != 0 {
				return nil
			}
			return putFold(tx.Bucket(bucketFolds), fleet, own)
		})
	})
}

func putFold(folds *bolt.Bucket, fleet state.Fleet, at sum) error {
	body, err := encodeFold(fleet, at)
	if err != nil {
		return err
	}
	if err := folds.Put(key(fleet.Seq), body); err != nil {
		return err
	}
	var old [][]byte
	kept, c := 0, folds.Cursor()
	for k, _ := c.Last(); k != nil; k, _ = c.Prev() {
		if kept++; kept > keptFolds {
			old = append(old, bytes.Clone(k))
		}
	}
	for _, k := range old {
		if err := folds.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// Close ends every watch and gives the file free. It waits for an Append and
// for reads that are under way; later calls of any method return [ErrClosed]
// or what was last known.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for w := range s.watchers {
		s.drop(w)
	}
	s.mu.Unlock()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", s.path, err)
	}
	return nil
}

// guard runs what reads the mapped file. bbolt panics on pages that cannot
// be, and a page that the disk does not give faults: both are damage to be
// told, not the end of the process.
func guard(path string, do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damaged(path, "%v", r)
		}
	}()
	return do()
}

// view runs do in a read transaction.
func (s *Store) view(do func(*bolt.Tx) error) error {
	err := guard(s.path, func() error { return s.db.View(do) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}
