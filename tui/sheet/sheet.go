// Package sheet is the request in front of a person: what exactly would
// leave, and the locks that stand before the answer. It is a state machine
// of values: keys and the time go in, a decision comes out, and a sheet that
// is unsure does not allow. It knows no terminal, no hub and no clock.
//
// An allow comes out of a sheet only when all of this holds:
//
//  1. Every line of the facts has been on the screen at its present size, the
//     diff has arrived, belongs to the commit, and is whole, and then there
//     were 450 ms without a key. Keys that move keep it so, any other key
//     starts it over, and so does a resize.
//  2. The key is ctrl+y and nothing else: no paste, no repeat, no release, and
//     not while the reason line has the cursor.
//  3. Nothing else was pressed for 200 ms after it.
//  4. When a fact is red, all of this happened twice.
package sheet

import (
	"time"

	"fletch/state"
	"fletch/tui/diff"
)

// Key is one key or one paste.
type Key struct {
	// Name is the key with its exact modifiers: "ctrl+y", "x", "shift+tab",
	// "esc", "space", "pgdown".
	Name string
	// Text is what it types, or the whole of what was pasted.
	Text string
	// Paste, Repeat and Release say that Name was not pressed just now by a
	// finger. Terminals that cannot tell leave Repeat and Release unset.
	Paste, Repeat, Release bool
}

// Action is what the dashboard is to do after a key or a tick.
//
//sumtype:decl
type Action interface{ action() }

type (
	// None asks for nothing.
	None struct{}
	// Later closes the sheet and leaves the request as it is.
	Later struct{}
	// Next shows the next request.
	Next struct{}
	// Prev shows the one before.
	Prev struct{}
	// Decide answers the request. A sheet gives it once.
	Decide struct{ Verdict state.Verdict }
	// CopyCommit puts the full id into the clipboard.
	CopyCommit struct{ Commit state.Commit }
	// Pager shows the whole patch in the person's $PAGER.
	Pager struct{}
	// Wide makes the sheet as wide as the screen, or undoes that.
	Wide struct{}
)

func (None) action()       {}
func (Later) action()      {}
func (Next) action()       {}
func (Prev) action()       {}
func (Decide) action()     {}
func (CopyCommit) action() {}
func (Pager) action()      {}
func (Wide) action()       {}

// Sheet is one request as it is being read. It is a value: every method gives
// a new one. The zero Sheet allows nothing.
type Sheet struct {
	request      state.Request
	agent        state.Agent
	hash         string // of the plan that is shown, worked out here
	index, total int
	opened       time.Time
	notice       string // a fact about the request itself: it moved

	patch    patchState
	trouble  string // why there is no patch
	viewer   diff.Viewer
	w, h     int // as Shown last said
	top      int // first row of the facts in sight
	seen     int // rows of the facts that have been on the screen, from the first
	upSince  time.Time
	calm     time.Time // the last time something made the sheet wait anew
	armed    bool
	asked    bool // the first chord on red facts is given
	due      time.Time
	stopped  bool // a key stopped what the chord had begun
	answered answer
	bracket  byte // "[" or "]" was pressed; c may follow
	listing  bool // the list of files stands where the diff was

	typing bool // the reason line has the cursor
	since  time.Time
	reason field
}

type patchState uint8

const (
	patchAwaited patchState = iota
	patchShown
	patchFailed
)

type answer uint8

const (
	unanswered answer = iota
	allowed
	denied
)

// New opens a sheet for r, which agent a asks for; it is number index, from 1,
// of total requests. It is dead until [Sheet.WithPatch] and [Sheet.Shown] have
// been called.
func New(r state.Request, a state.Agent, index, total int, now time.Time) Sheet {
	return Sheet{request: r, agent: a, hash: r.Plan.Hash(), index: index, total: total, opened: now, calm: now}
}

// WithPatch gives the sheet what would leave, or why that cannot be had. A
// patch of another commit than the request's is refused. The sheet waits anew.
func (s Sheet) WithPatch(p state.Patch, err error, now time.Time) Sheet {
	s = s.startOver(now)
	s.patch, s.trouble, s.viewer, s.listing = patchFailed, "", diff.Viewer{}, false
	switch {
	case err != nil:
		s.trouble = err.Error()
	case p.Head != s.request.Plan.Commit:
		s.trouble = "the diff is of another commit, " + p.Head.Short()
	case p.Base != s.request.Plan.Base:
		s.trouble = "the diff is against another base, " + p.Base.Short()
	default:
		s.patch, s.viewer = patchShown, diff.New(p)
		if !s.viewer.Whole() {
			s.trouble = "the diff is too large to show here"
		}
	}
	return s
}

// Shown tells the sheet that it is on the screen in w by h cells. It must be
// called when the sheet opens and after every resize; calling it more often
// changes nothing. At a new size the facts have to be seen anew.
func (s Sheet) Shown(w, h int, now time.Time) Sheet {
	if w == s.w && h == s.h {
		return s
	}
	s = s.startOver(now)
	s.w, s.h, s.top, s.seen, s.upSince = w, h, 0, 0, now
	return s
}

// Moved is the sheet when the same agent asks for the same branch again with
// another plan: it says so and starts over. A reason line that is open stays
// open. Any other request just opens a new sheet; the same one changes
// nothing.
func (s Sheet) Moved(r state.Request, now time.Time) Sheet {
	if r.ID == s.request.ID {
		return s
	}
	fresh := New(r, s.agent, s.index, s.total, now).Shown(s.w, s.h, now)
	if r.Agent != s.request.Agent || r.Plan.Ref != s.request.Plan.Ref {
		return fresh
	}
	fresh.notice = s.agent.Name + " asked again while you read. Nothing was pushed. Read again."
	if was, is := s.request.Plan.Commit, r.Plan.Commit; was != is {
		fresh.notice = s.agent.Name + " moved on while you read: " + was.Short() + " is now " + is.Short() + ". Nothing was pushed. Read again."
	}
	if s.answered == allowed {
		fresh.notice = "" // the one before was allowed, and may have been pushed
	}
	if s.typing {
		fresh.typing, fresh.since, fresh.reason = true, now, s.reason
	}
	return fresh
}

// Position changes which of how many requests the sheet says it is.
func (s Sheet) Position(index, total int) Sheet {
	s.index, s.total = index, total
	return s
}

// Request is the request that the sheet shows.
func (s Sheet) Request() state.Request { return s.request }

// TextFocus reports whether keys go into the reason line.
func (s Sheet) TextFocus() bool { return s.typing }

// Armed reports whether ctrl+y would be taken now.
func (s Sheet) Armed() bool { return s.armed && s.barred() == free }

// bar is what keeps a sheet from ever allowing as it is.
type bar uint8

const (
	free bar = iota
	barSettled
	barKind     // not a push
	barUnequal  // the plan is not the one the gate recorded
	barAwaited  // no patch yet
	barFailed   // no patch
	barTooLarge // the patch is not whole
	barSmall    // the screen is too small, or not known
)

// barred says why the sheet cannot allow, most lasting reason first.
func (s Sheet) barred() bar {
	switch r := s.request; {
	case s.answered != unanswered, r.State != state.Pending:
		return barSettled
	case r.Operation != "push":
		return barKind
	case s.hash == "" || s.hash != r.PlanHash || !r.Plan.Commit.Valid():
		return barUnequal
	case s.patch == patchAwaited:
		return barAwaited
	case s.patch == patchFailed:
		return barFailed
	case !s.viewer.Whole():
		return barTooLarge
	case tooSmall(s.w, s.h):
		return barSmall
	}
	return free
}

// red lists the names of the facts that need a second chord, each once.
func (s Sheet) red() []string {
	var names []string
	seen := map[string]bool{}
	for _, f := range s.request.Plan.Red() {
		if !seen[f.Name] {
			seen[f.Name] = true
			names = append(names, f.Name)
		}
	}
	return names
}

// isRed reports whether one chord is not enough. A forced push is red even if
// the plan forgot to flag it.
func (s Sheet) isRed() bool { return s.request.Plan.Force || len(s.request.Plan.Red()) > 0 }
