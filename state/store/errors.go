package store

import (
	"errors"
	"fmt"
)

// What can be wrong with a store as a whole. Errors of this package wrap one
// of these, and carry a stable word (Code) and the way out (Hint).
var (
	// ErrLocked: another process has the store open.
	ErrLocked = errors.New("the store is in use by another process")
	// ErrNewer: a newer fletch wrote it; this one would misread it.
	ErrNewer = errors.New("the store was written by a newer fletch")
	// ErrDamaged: the store is not what was written. Nothing in it was
	// changed, and nothing is made in its place.
	ErrDamaged = errors.New("the store is damaged")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the store is closed")
	// ErrTooLarge: an event's encoded form is over 16 MiB.
	ErrTooLarge = errors.New("the event is too large")
)

// fault is one of the errors above with its place, cause and way out.
type fault struct {
	doing string // "opening /home/x/.fletch/state.db"
	kind  error
	cause string // may be empty
	code  string
	hint  string
}

func (f *fault) Error() string {
	if f.cause == "" {
		return fmt.Sprintf("%s: %v", f.doing, f.kind)
	}
	return fmt.Sprintf("%s: %v: %s", f.doing, f.kind, f.cause)
}

func (f *fault) Unwrap() error { return f.kind }

// Code is the stable word for scripts.
func (f *fault) Code() string { return f.code }

// Hint is the way out, one line.
func (f *fault) Hint() string { return f.hint }

func locked(path string) error {
	return &fault{
		doing: "opening " + path, kind: ErrLocked, code: "store-locked",
		hint: "a fletch hub is running on it: fletch hub status names it, fletch hub stop ends it (agents go on)",
	}
}

func newer(path string, found, known uint64) error {
	return &fault{
		doing: "opening " + path, kind: ErrNewer, code: "store-newer",
		cause: fmt.Sprintf("its schema is %d, this build knows %d", found, known),
		hint:  "run the newer fletch; it keeps a copy of the store as it was before the upgrade",
	}
}

func damaged(path, cause string, args ...any) error {
	return &fault{
		doing: "reading " + path, kind: ErrDamaged, code: "store-damaged",
		cause: fmt.Sprintf(cause, args...),
		hint:  "nothing was changed; put state.db and state.head back from one backup, or move both away to begin with an empty fleet",
	}
}

// unsure is the state after a commit that failed half-way.
func unsure(path string, has, want uint64) error {
	return &fault{
		doing: "writing " + path, kind: ErrDamaged, code: "store-damaged",
		cause: fmt.Sprintf("it ends with event %d instead of %d", has, want),
		hint:  "a write failed half-way (see the disk): fletch hub stop, then fletch reads the store anew; agents go on",
	}
}

// disagree is damage that shows only beside the head file. The way out for a
// person who accepts the loss is to write down by hand what the store has.
func disagree(headPath string, has Head, uuid, cause string, args ...any) error {
	return &fault{
		doing: "comparing the store with " + headPath, kind: ErrDamaged, code: "store-damaged",
		cause: fmt.Sprintf(cause, args...),
		hint: fmt.Sprintf("nothing was changed; put state.db and state.head back from one backup, or go on without what is lost: echo '%s' > '%s'",
			formatHead(has, uuid), headPath),
	}
}
