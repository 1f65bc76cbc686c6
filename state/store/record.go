package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"fletch/state"
)

// A record is prev ‖ own ‖ event: the hash of the record before, the sha256
// over prev and event, and the event as JSON. With its own hash in it, a
// record that changed on disk is named exactly; with prev, one that was
// replaced whole shows at the next.
const (
	hashSize  = sha256.Size
	prefix    = 2 * hashSize
	maxEvent  = 16 << 20
	keptFolds = 2
	// usualFoldEvery is how many events there are between two stored folds:
	// what an open has to apply at most.
	usualFoldEvery = 1000
	// foldVersion is raised when Fleet.Apply gives another result for the
	// same events: a fold stored by an older one is then not used.
	foldVersion = 1
)

type sum [hashSize]byte

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// genesis is what the first record of a store follows: another for each
// store, so that events of one do not continue another.
func genesis(uuid string) sum { return sha256.Sum256([]byte("fletch store " + uuid)) }

func encode(prev sum, e state.Event) ([]byte, sum, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, sum{}, err
	}
	if len(body) > maxEvent {
		return nil, sum{}, fmt.Errorf("%w: %d bytes, %d at most", ErrTooLarge, len(body), maxEvent)
	}
	own := link(prev, body)
	record := make([]byte, 0, prefix+len(body))
	record = append(record, prev[:]...)
	record = append(record, own[:]...)
	return append(record, body...), own, nil
}

func link(prev sum, body []byte) sum {
	h := sha256.New()
	h.Write(prev[:])
	h.Write(body)
	return sum(h.Sum(nil))
}

// decode checks a record against itself and its key. What it returns does not
// share memory with record.
func decode(key, record []byte) (e state.Event, prev, own sum, err error) {
	if len(key) != 8 {
		return e, prev, own, fmt.Errorf("a key of %d bytes is no event number", len(key))
	}
	seq := binary.BigEndian.Uint64(key)
	if len(record) < prefix {
		return e, prev, own, fmt.Errorf("event %d is cut short", seq)
	}
	prev, own = sum(record[:hashSize]), sum(record[hashSize:prefix])
	if link(prev, record[prefix:]) != own {
		return e, prev, own, fmt.Errorf("event %d is not as it was written", seq)
	}
	if err := json.Unmarshal(record[prefix:], &e); err != nil {
		return e, prev, own, err
	}
	if e.Seq != seq {
		return e, prev, own, fmt.Errorf("event %d stands where event %d belongs", e.Seq, seq)
	}
	return e, prev, own, nil
}

func key(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// fold is a fleet as it was after one event, stored so that an open need not
// apply every event again. It can always be made anew from the events.
type fold struct {
	Version int         `json:"version"`
	Hash    string      `json:"hash"` // of the event it was made after
	Fleet   state.Fleet `json:"fleet"`
}

func encodeFold(fleet state.Fleet, at sum) ([]byte, error) {
	body, err := json.Marshal(fold{foldVersion, at.String(), fleet})
	if err != nil {
		return nil, err
	}
	own := sha256.Sum256(body)
	return append(own[:], body...), nil
}

func decodeFold(record []byte) (fold, error) {
	var f fold
	if len(record) < hashSize {
		return f, errors.New("it is cut short")
	}
	if own := sha256.Sum256(record[hashSize:]); !bytes.Equal(own[:], record[:hashSize]) {
		return f, errors.New("it is not as it was written")
	}
	return f, json.Unmarshal(record[hashSize:], &f)
}
