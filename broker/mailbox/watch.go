package mailbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

const (
	// batch is how many names are listed at once, and how many files are
	// looked at in one second.
	batch = 256 // a listing counts as 32 files
	// pollEvery is how often a directory is looked at where the kernel
	// does not tell.
	pollEvery = 500 * time.Millisecond
)

// errUnfit marks a file that can never be a message.
var errUnfit = errors.New("not a plain file of at most 1 MiB")

// folder is one directory, held open. Names have no slash.
type folder interface {
	// read returns a whole regular file and when it was last changed.
	// fs.ErrNotExist: gone. errUnfit: never a message. Other errors may
	// pass.
	read(name string) ([]byte, time.Time, error)
	// write makes name appear with body as a whole or not at all.
	write(name string, body []byte) error
	// remove takes name away; one that is not there is no error.
	remove(name string) error
	has(name string) bool
	// list gives at most limit names that keep wants, oldest first, and
	// whether there are more.
	list(keep func(string) bool, limit int) (names []string, more bool, err error)
	// changed is when a name last came or went.
	changed() (time.Time, error)
	io.Closer
}

// notices tells which names may be worth a look.
type notices interface {
	// next blocks until there is news, ctx ends or until has come (zero:
	// never). rescan means that any name may be new.
	next(ctx context.Context, until time.Time) (names []string, rescan bool, err error)
	io.Closer
}

// watch is the state of one Watch.
type watch struct {
	box    *Box
	handle func(Message)
	late   map[string]time.Time // names that could not be read yet, since when
	looked int                  // files looked at since window
	window time.Time
}

// run returns when ctx ends or the directory cannot be read any more, with an
// error in either case.
func (w *watch) run(ctx context.Context, news notices) error {
	rescan := true
	for {
		cost := 1
		if rescan {
			cost = batch / 8
		}
		if err := w.pace(ctx, cost); err != nil {
			return err
		}
		var names []string
		var err error
		if rescan {
			names, rescan, err = w.box.requests.list(w.fresh, batch)
		} else {
			names, rescan, err = news.next(ctx, w.due())
		}
		if err != nil {
			return err
		}
		for name := range w.late {
			names = append(names, name)
		}
		for _, name := range names {
			if _, ok := letterID(name); !ok {
				continue
			}
			if err := w.pace(ctx, 1); err != nil {
				return err
			}
			w.take(name)
		}
	}
}

// fresh keeps files out of a listing that were dealt with and could not be
// removed, so that they do not hide what came later.
func (w *watch) fresh(name string) bool {
	id, ok := letterID(name)
	if !ok {
		return false
	}
	if _, late := w.late[name]; late {
		return false
	}
	w.box.mu.Lock()
	defer w.box.mu.Unlock()
	_, seen := w.box.seen[w.box.hash(id)]
	return !seen
}

// due is when the oldest unreadable file has had its grace.
func (w *watch) due() time.Time {
	var first time.Time
	for _, since := range w.late {
		if end := since.Add(grace); first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}

// pace lets an agent have a bounded part of the hub's time.
func (w *watch) pace(ctx context.Context, cost int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	if now.Sub(w.window) >= time.Second {
		w.window, w.looked = now, 0
	}
	if w.looked += cost; w.looked <= batch {
		return nil
	}
	wait := time.NewTimer(time.Second - now.Sub(w.window))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take deals with one file: dispatches it, answers it, leaves it for later,
// or forgets it.
func (w *watch) take(name string) {
	b := w.box
	id, _ := letterID(name)
	if !b.isNew(id) {
		delete(w.late, name)
		return
	}
	body, changed, err := b.requests.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		delete(w.late, name)
		return
	}
	var m Message
	if err == nil {
		m, err = parse(id, body)
	}
	if err == nil {
		delete(w.late, name)
		if why := b.admit(id); why != "" {
			b.refuse(id, why)
			return
		}
		w.handle(m)
		return
	}
	if !errors.Is(err, errUnfit) && w.wait(name, changed) {
		return
	}
	delete(w.late, name)
	b.refuse(id, "this request cannot be read: "+words(err))
}

// words leaves the path out of a file's error.
func words(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// wait puts a file off until it is older than grace: it may be half written.
func (w *watch) wait(name string, changed time.Time) bool {
	now := time.Now()
	since, known := w.late[name]
	if !known {
		since = now
	}
	// The agent can set the file's time, but only to be answered earlier.
	if !changed.IsZero() && changed.Before(since) {
		since = changed
	}
	if now.Sub(since) >= grace || (!known && len(w.late) >= maxOpen) {
		return false
	}
	w.late[name] = since
	return true
}

// isNew reports whether id was never dispatched or answered. A file of an id
// that had its answer is taken away.
func (b *Box) isNew(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, open := b.open[id]; open {
		return false
	}
	if !b.answered(id) {
		return true
	}
	b.remember(id)
	// One that cannot be removed (a directory with something in it) is
	// kept out of every later listing.
	_ = b.requests.remove(id + ".json")
	return false
}

// admit takes id into the open ones, or says why there is no room.
func (b *Box) admit(id string) (why string) {
	stale, why := b.enter(id, time.Now())
	if stale != "" {
		_ = b.Reply(stale, Reply{Code: CodeWaiting, Lines: []string{"not answered yet"}})
	}
	return why
}

func (b *Box) enter(id string, now time.Time) (stale, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) >= maxSeen {
		return "", "this agent has asked too often; stop and resume it"
	}
	if len(b.open) >= maxOpen {
		since := now.Add(-staleAfter)
		for other, at := range b.open {
			if at.Before(since) {
				stale, since = other, at
			}
		}
		if stale == "" {
			return "", fmt.Sprintf("too many requests wait for an answer (%d)", maxOpen)
		}
	}
	b.seen[b.hash(id)] = struct{}{}
	b.open[id] = now
	return stale, ""
}

// refuse answers a file that is no message. That a reply could not be
// written leaves nothing to do: the file is gone and will not be read again.
func (b *Box) refuse(id, line string) {
	_ = b.Reply(id, Refuse(line))
}

// poll is the notices of a directory that the kernel says nothing about: it
// looks at one time stamp.
type poll struct {
	folder folder
	last   time.Time
}

func (p *poll) next(ctx context.Context, until time.Time) ([]string, bool, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case now := <-tick.C:
			at, err := p.folder.changed()
			if err != nil {
				return nil, false, err
			}
			// A change within the clock's grain of the last look
			// would not show: look once more while it is recent.
			if !at.Equal(p.last) || now.Sub(at) < 2*time.Second {
				p.last = at
				return nil, true, nil
			}
			if !until.IsZero() && !now.Before(until) {
				return nil, false, nil
			}
		}
	}
}

// Close does nothing: the folder is not poll's.
func (p *poll) Close() error { return nil }

// tmpName is where a response is written before it gets its name.
func tmpName(name string) string { return "." + name + ".tmp" }

// unfit wraps what makes a file no message.
func unfit(err error) error {
	if err == nil {
		return errUnfit
	}
	return errors.Join(errUnfit, err)
}

// plainFile reports whether info is of a regular file of bearable size.
func plainFile(info os.FileInfo) bool {
	return info.Mode().IsRegular() && info.Size() <= maxLetter
}
