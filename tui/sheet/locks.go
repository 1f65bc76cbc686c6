package sheet

import (
	"time"

	"fletch/state"
	"fletch/tui/diff"
)

const (
	// quiet is how long no key may have come before a chord counts: longer
	// than the pauses within somebody's typing.
	quiet = 450 * time.Millisecond
	// hold is how long after the chord any key still stops it. A key that was
	// meant for something else comes with others behind it.
	hold = 200 * time.Millisecond
	// glance is how long a row must stand to have been on the screen: a few
	// frames, so that queued keys cannot scroll facts past unseen.
	glance = 50 * time.Millisecond
	// queued is how long after the reason line opens enter is swallowed: it
	// was pressed before there was a line.
	queued = 300 * time.Millisecond
	// stalled is how late a tick must be to show that the program was busy.
	// Keys that should have stopped the chord may still be behind it.
	stalled = 250 * time.Millisecond
)

// startOver makes the sheet wait anew; what a chord had begun is off.
func (s Sheet) startOver(now time.Time) Sheet {
	s.armed, s.asked, s.due, s.calm = false, false, time.Time{}, now
	return s
}

// look counts the facts that have stood long enough on the screen.
func (s Sheet) look(now time.Time) Sheet {
	if s.upSince.IsZero() || tooSmall(s.w, s.h) || now.Sub(s.upSince) < glance {
		return s
	}
	if f := s.frame(s.w, s.h); s.top <= s.seen {
		s.seen = max(s.seen, s.top+f.factsH)
	}
	return s
}

// unread is how many rows of the facts have not been on the screen.
func (s Sheet) unread() int { return max(0, len(s.frame(s.w, s.h).facts)-s.seen) }

// armsAt is when the sheet arms if nothing happens; false when it cannot.
func (s Sheet) armsAt() (time.Time, bool) {
	if s.armed || s.typing || s.listing || !s.due.IsZero() || s.barred() != free || s.upSince.IsZero() {
		return time.Time{}, false
	}
	at := s.calm.Add(quiet)
	return at, s.look(at).unread() == 0 // else there is more below
}

// Deadline is when [Sheet.Tick] must be called next; false when only a key or
// an event can change anything.
func (s Sheet) Deadline() (time.Time, bool) {
	if !s.due.IsZero() {
		return s.due, true
	}
	return s.armsAt()
}

// Tick tells the sheet the time. Only a tick arms it and only a tick allows.
// A tick that is early does nothing.
func (s Sheet) Tick(now time.Time) (Sheet, Action) {
	s = s.look(now)
	if at, ok := s.armsAt(); ok && !now.Before(at) {
		s.armed, s.stopped = true, false
		return s, None{}
	}
	switch late := now.Sub(s.due); {
	case s.due.IsZero() || late < 0:
		return s, None{}
	case s.barred() != free || !s.armed || s.isRed() && !s.asked: // what changes these stops the chord already
		return s.startOver(now), None{}
	case late > stalled:
		s.due = now.Add(hold)
		return s, None{}
	}
	s = s.startOver(now)
	s.answered = allowed
	return s, Decide{state.Verdict{
		Request: s.request.ID, Allow: true,
		Commit: s.request.Plan.Commit, Plan: s.hash, Accept: s.red(),
	}}
}

// Update takes one key.
func (s Sheet) Update(k Key, now time.Time) (Sheet, Action) {
	if k.Release {
		return s, None{}
	}
	s = s.look(now)
	if s.typing {
		return s.write(k, now)
	}
	bracket := s.bracket
	s.bracket = 0
	if !s.due.IsZero() {
		s = s.startOver(now)
		s.stopped = true
	}
	switch {
	case k.Paste:
		return s.startOver(now), None{}
	case s.listing:
		return s.list(k.Name, now), None{}
	case k.Name == allowKey:
		return s.chord(k, now), None{}
	case k.Name == "[" || k.Name == "]":
		s.bracket = k.Name[0]
		return s.moved(now), None{}
	case bracket != 0 && k.Name == "c":
		return s.move(map[byte]string{'[': "K", ']': "J"}[bracket], now), None{}
	case diff.Moves(k.Name):
		return s.move(k.Name, now), None{}
	}
	return s.startOver(now).command(k.Name, now)
}

const allowKey = "ctrl+y"

// chord takes a ctrl+y. One that comes too early only makes the sheet wait
// longer: a key that is held down never gets through, and a question that was
// asked stays asked.
func (s Sheet) chord(k Key, now time.Time) Sheet {
	ready := s.armed && !k.Repeat && k.Text == "" && s.barred() == free
	switch {
	case ready && (s.asked || !s.isRed()):
		s.due = now.Add(hold)
		return s
	case ready:
		s = s.startOver(now)
		s.asked = true
		return s
	}
	s.armed, s.calm = false, now
	return s
}

// command does what a key stands for that neither allows nor moves.
func (s Sheet) command(name string, now time.Time) (Sheet, Action) {
	switch name {
	case "esc", "q":
		return s, Later{}
	case "tab":
		return s, Next{}
	case "shift+tab":
		return s, Prev{}
	case "o":
		return s, Pager{}
	case "z":
		return s, Wide{}
	case "y":
		return s, CopyCommit{s.request.Plan.Commit}
	case "f":
		s.listing = len(s.viewer.Files()) > 0
	case "x", "ctrl+n":
		if s.answered == unanswered {
			s.typing, s.since = true, now
		}
	}
	return s, None{}
}

// list takes a key while the list of files is open. The diff is out of sight
// then, so nothing arms; the list closes without an answer.
func (s Sheet) list(name string, now time.Time) Sheet {
	s = s.startOver(now)
	f := s.frame(s.w, s.h)
	at := max(s.viewer.Position(f.diffW, f.diffH).File, 1) - 1
	switch name {
	case "f", "esc", "q":
		s.listing = false
	case "enter":
		s.viewer, s.listing = s.viewer.JumpTo(at), false
	case "j", "down", "J":
		s.viewer = s.viewer.JumpTo(at + 1)
	case "k", "up", "K":
		s.viewer = s.viewer.JumpTo(max(at-1, 0))
	case "g", "home":
		s.viewer = s.viewer.JumpTo(0)
	case "G", "end":
		s.viewer = s.viewer.JumpTo(len(s.viewer.Files()) - 1)
	}
	return s
}

// moved notes a key that moves: an armed sheet stays armed, any other waits
// longer.
func (s Sheet) moved(now time.Time) Sheet {
	s.calm = now
	return s
}

// move scrolls. Facts that do not fit come first, row by row, and the diff
// behind them; so whoever just reads on has seen them.
func (s Sheet) move(key string, now time.Time) Sheet {
	s = s.moved(now)
	if tooSmall(s.w, s.h) {
		return s
	}
	f := s.frame(s.w, s.h)
	last := max(0, len(f.facts)-f.factsH)
	step := map[string]int{
		"j": 1, "down": 1, "space": f.factsH, " ": f.factsH, "pgdown": f.factsH, "ctrl+d": max(1, f.factsH/2), "G": last, "end": last,
		"k": -1, "up": -1, "b": -f.factsH, "pgup": -f.factsH, "ctrl+u": -max(1, f.factsH/2), "g": -last, "home": -last,
	}[key]
	unread := s.seen < len(f.facts)
	switch {
	case step > 0 && s.top < last, step < 0 && s.top > 0 && (unread || s.atTop(f)):
		s = s.scrollFacts(s.top+step, last, now)
		if unread || key != "G" && key != "end" {
			return s
		}
	case step < 0 && s.top > 0 && (key == "g" || key == "home"):
		s = s.scrollFacts(0, last, now)
	}
	s.viewer = s.viewer.Update(key, f.diffW, f.diffH)
	return s
}

// scrollFacts never goes past rows that have not been on the screen.
func (s Sheet) scrollFacts(to, last int, now time.Time) Sheet {
	if to = max(0, min(to, last, s.seen)); to != s.top {
		s.top, s.upSince = to, now
	}
	return s
}

func (s Sheet) atTop(f frame) bool { return s.viewer.Position(f.diffW, f.diffH).From <= 1 }
