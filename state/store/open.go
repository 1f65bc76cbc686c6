package store

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"fletch/state"
)

var (
	bucketMeta   = []byte("meta")
	bucketEvents = []byte("events") // number → record
	bucketAgents = []byte("agents") // agent → number → nothing
	bucketFolds  = []byte("folds")  // number → fold

	keySchema = []byte("schema")
	keyUUID   = []byte("uuid")
)

// lockWait is how long an open waits for another process to let go.
const lockWait = time.Second

// schema is how the file is laid out: the steps lead from each older layout
// to the next, steps[0] from 1 to 2. The first layout is 1.
type schema struct {
	steps []func(*bolt.Tx) error
}

func (s schema) version() uint64 { return uint64(len(s.steps)) + 1 }

// current has no steps yet: there was never another layout.
func current() schema { return schema{} }

// Open opens the store at path and compares it with its head file; when
// neither exists it makes both, mode 0600. now is the clock for [Store.Append].
//
// Errors wrap [ErrLocked] when another process has it, after a second;
// [ErrNewer]; [ErrDamaged] when either file is not what was written, when the
// head file knows of events that the store has not, or when one of the two is
// gone. In none of these cases is a file changed or made.
func Open(path, head string, now func() time.Time) (*Store, error) {
	return open(path, head, now, current())
}

func open(path, head string, now func() time.Time, layout schema) (*Store, error) {
	if err := ensure(path, head, layout); err != nil {
		return nil, err
	}
	db, err := openFile(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, headPath: head, now: now, foldEvery: usualFoldEvery, db: db, watchers: map[*watcher]struct{}{}}
	if err := s.load(layout); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	removeUnfinished(path)
	return s, nil
}

// ensure makes the store when there is none.
func ensure(path, head string, layout schema) error {
	there, err := exists(path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	if there {
		return nil
	}
	noted, err := exists(head)
	if err != nil {
		return fmt.Errorf("opening %s: %w", head, err)
	}
	if noted {
		return damaged(path, "it is gone, but %s is there", head)
	}
	if err := create(path, layout); err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	return nil
}

// create makes an empty store under another name and links it into place: a
// crash leaves no half-made store, and of two processes one wins.
func create(path string, layout schema) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	unfinished := f.Name()
	defer func() { err = errors.Join(err, remove(unfinished)) }()
	if err := f.Close(); err != nil {
		return err
	}
	db, err := bolt.Open(unfinished, 0o600, &bolt.Options{Timeout: lockWait})
	if err != nil {
		return err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketEvents, bucketAgents, bucketFolds} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		meta, err := tx.CreateBucket(bucketMeta)
		if err != nil {
			return err
		}
		return errors.Join(meta.Put(keySchema, key(layout.version())), meta.Put(keyUUID, []byte(hex.EncodeToString(id))))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Link(unfinished, path); err != nil {
		if there, _ := exists(path); there {
			return nil // another process was faster
		}
		return err
	}
	return syncDir(filepath.Dir(path))
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeUnfinished clears away what a crash in create left. It runs under the
// lock of the finished store; who is in create just then finds that one.
func removeUnfinished(path string) {
	left, _ := filepath.Glob(path + ".new-*")
	for _, name := range left {
		_ = remove(name) // untidy at worst
	}
}

// openFile opens the file for writing after a look at its pages under a
// shared lock: bbolt itself trusts them, and would follow a broken one
// anywhere.
func openFile(path string) (*bolt.DB, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("opening %s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, damaged(path, "it is not a regular file")
	case info.Size() == 0:
		// bbolt would take this for a new store.
		return nil, damaged(path, "it is empty")
	}
	reader, err := openBolt(path, true)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkFile(path), reader.Close()); err != nil {
		return nil, err
	}
	return openBolt(path, false)
}

func openBolt(path string, readOnly bool) (*bolt.DB, error) {
	var file *os.File
	options := &bolt.Options{
		Timeout: lockWait, ReadOnly: readOnly, FreelistType: bolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			if name != path {
				return os.OpenFile(name, flag, mode) // a copy being made
			}
			file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
			return file, err
		},
	}
	var db *bolt.DB
	err := guard(path, func() (err error) {
		db, err = bolt.Open(path, 0o600, options)
		return err
	})
	if err == nil {
		return db, nil
	}
	if file != nil {
		_ = file.Close() // after a panic it is still open, and locked
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, locked(path)
	case errors.Is(err, ErrDamaged):
		return nil, err
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, damaged(path, "%v", err)
	}
	var system *fs.PathError
	if errors.As(err, &system) {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	return nil, damaged(path, "%v", err) // bbolt has words without a type for it
}

// load reads what an open file holds and brings the head file up to date.
func (s *Store) load(layout schema) error {
	if err := s.identify(layout); err != nil {
		return err
	}
	noted, uuid, err := readHead(s.headPath)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	var at sum // of the event that the head file names
	err = s.view(func(tx *bolt.Tx) error {
		if err := s.loadFleet(tx); err != nil {
			return damaged(s.path, "%v", err)
		}
		at = hashAt(tx, s.uuid, noted.Seq)
		return nil
	})
	if err != nil {
		return err
	}
	has := s.Head()
	switch {
	case missing && has.Seq > 0:
		return disagree(s.headPath, has, s.uuid, "the head file is gone, so a loss would not show")
	case missing: // a crash in the middle of creating
	case uuid != s.uuid:
		return disagree(s.headPath, has, s.uuid, "the head file belongs to another store, %.40s", uuid)
	default:
		if err := compare(noted, has, at, s.uuid, s.headPath); err != nil {
			return err
		}
		if noted == has {
			return nil
		}
	}
	// A crash between commit and head file: nothing is lost.
	return writeHead(s.headPath, has, s.uuid)
}

// identify reads whose store this is and brings an older layout forward.
func (s *Store) identify(layout schema) error {
	var version uint64
	err := s.view(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return damaged(s.path, "it is not a fletch store")
		}
		number, id := meta.Get(keySchema), meta.Get(keyUUID)
		if len(number) != 8 || len(id) != 32 {
			return damaged(s.path, "its identity is not readable")
		}
		version, s.uuid = binary.BigEndian.Uint64(number), string(id)
		return nil
	})
	switch {
	case err != nil:
		return err
	case version > layout.version():
		return newer(s.path, version, layout.version())
	case version == 0:
		return damaged(s.path, "its schema number is 0")
	case version < layout.version():
		if err := s.migrate(version, layout); err != nil {
			return fmt.Errorf("upgrading %s from schema %d: %w", s.path, version, err)
		}
	}
	return s.view(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketEvents, bucketAgents, bucketFolds} {
			if tx.Bucket(name) == nil {
				return damaged(s.path, "its part %q is missing", name)
			}
		}
		return nil
	})
}

// migrate copies the file to <path>.schema-<version> and then takes every
// step in one transaction.
func (s *Store) migrate(version uint64, layout schema) error {
	backup := fmt.Sprintf("%s.schema-%d", s.path, version)
	if err := remove(backup); err != nil {
		return err
	}
	if err := s.view(func(tx *bolt.Tx) error { return tx.CopyFile(backup, 0o600) }); err != nil {
		return fmt.Errorf("making a copy: %w", err)
	}
	if err := syncDir(filepath.Dir(backup)); err != nil {
		return err
	}
	return guard(s.path, func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			for _, step := range layout.steps[version-1:] {
				if err := step(tx); err != nil {
					return err
				}
			}
			return tx.Bucket(bucketMeta).Put(keySchema, key(layout.version()))
		})
	})
}

// loadFleet begins with the newest stored fold that can be used and applies
// the events after it.
func (s *Store) loadFleet(tx *bolt.Tx) error {
	events := tx.Bucket(bucketEvents)
	walk, seek := startingPoint(tx, s.uuid)
	c := events.Cursor()
	for k, v := c.Seek(key(seek)); k != nil; k, v = c.Next() {
		e, err := walk.follow(k, v)
		if err != nil {
			return err
		}
		s.last = e.At
	}
	if s.last.IsZero() && walk.fleet.Seq > 0 {
		e, _, _, err := decode(key(walk.fleet.Seq), events.Get(key(walk.fleet.Seq)))
		if err != nil {
			return err
		}
		s.last = e.At
	}
	s.fleet, s.head = walk.fleet, walk.end
	return nil
}

// startingPoint is the newest fold that matches its event, and the number of
// the first event to apply to it. A fold that does not match is passed over:
// the events say the same, only slower, and Verify names it.
func startingPoint(tx *bolt.Tx, uuid string) (chain, uint64) {
	c := tx.Bucket(bucketFolds).Cursor()
	for k, record := c.Last(); k != nil; k, record = c.Prev() {
		stored, err := decodeFold(record)
		if err != nil || stored.Version != foldVersion || !bytes.Equal(k, key(stored.Fleet.Seq)) {
			continue
		}
		at := hashAt(tx, uuid, stored.Fleet.Seq)
		if stored.Hash != at.String() {
			continue
		}
		return chain{fleet: stored.Fleet, end: at}, stored.Fleet.Seq + 1
	}
	return chain{fleet: state.Fleet{}, end: genesis(uuid)}, 1
}

// hashAt is the hash of event seq, zero when there is none.
func hashAt(tx *bolt.Tx, uuid string, seq uint64) sum {
	if seq == 0 {
		return genesis(uuid)
	}
	record := tx.Bucket(bucketEvents).Get(key(seq))
	if len(record) < prefix {
		return sum{}
	}
	return sum(record[hashSize:prefix])
}

func endOf(events *bolt.Bucket) uint64 {
	k, _ := events.Cursor().Last()
	if len(k) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k)
}
