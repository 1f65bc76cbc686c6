package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
)

// The five commands that reach the domain, and the one that waits. Each works
// on values that it closes over and answers with a message; none changes the
// model.

// maxEvents is how many events are folded before the screen is drawn again.
const maxEvents = 256

// watch reads the fleet and opens the stream of what comes after.
func (m Model) watch() tea.Cmd {
	ctx, hub := m.ctx, m.o.Hub
	return func() tea.Msg {
		fleet, events, err := hub.Watch(ctx)
		if err != nil {
			return lostMsg{err}
		}
		return fleetMsg{fleet, events}
	}
}

// next waits for what happens: one event, and whatever else is there by then.
// Exactly one next is on its way per stream.
func (m Model) next() tea.Cmd {
	events := m.events
	return func() tea.Msg {
		e, ok := <-events
		if !ok {
			return lostMsg{}
		}
		all := []state.Event{e}
		for len(all) < maxEvents {
			select {
			case e, ok := <-events:
				if !ok {
					// The next read finds the stream closed, too.
					return eventsMsg{all}
				}
				all = append(all, e)
			default:
				return eventsMsg{all}
			}
		}
		return eventsMsg{all}
	}
}

// frameEvery is the shortest time between two pulls of a screen that changes
// all the time. The first change after a pause is pulled at once.
const frameEvery = 16 * time.Millisecond

// frame pulls the next news of a connected screen.
func (m Model) frame(live *live) tea.Cmd {
	ctx := m.ctx
	wait := frameEvery - m.now.Sub(live.pulled)
	return func() tea.Msg {
		if wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil
			}
		}
		news, err := live.screen.Next(ctx)
		return screenMsg{live: live, news: news, err: err}
	}
}

// do runs a step that may be slow. doing says what it is for the person, if
// it does not work: "stopping fern-lake".
func (m Model) do(doing string, run func(context.Context) (tea.Msg, error)) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		msg, err := run(ctx)
		if err != nil {
			return failedMsg{doing, err}
		}
		return msg
	}
}

// decide gives the hub a verdict. It names the request, the commit and the
// plan that were on the screen.
func (m Model) decide(v state.Verdict) tea.Cmd {
	ctx, hub := m.ctx, m.o.Hub
	return func() tea.Msg { return decidedMsg{v, hub.Decide(ctx, v)} }
}

// wakeMsg says that a moment has come that something waited for.
type wakeMsg struct{ at time.Time }

// arm sees to it that the earliest deadline rings. There is one timer for all
// of them; when nothing waits there is none.
func (m Model) arm() (Model, tea.Cmd) {
	at := m.deadline()
	if at.IsZero() || !m.armed.IsZero() && !at.Before(m.armed) {
		return m, nil
	}
	m.armed = at
	return m, tea.Tick(at.Sub(m.now), func(time.Time) tea.Msg { return wakeMsg{at} })
}

// onWake handles all that is due. A timer that was overtaken by an earlier
// one does nothing.
func (m Model) onWake(msg wakeMsg) (Model, tea.Cmd) {
	if msg.at.Equal(m.armed) {
		m.armed = time.Time{}
	}
	if m.toast.until.Compare(m.now) <= 0 && !m.toast.until.IsZero() {
		m.toast = toast{}
	}
	var cmds []tea.Cmd
	if !m.retry.at.IsZero() && !m.now.Before(m.retry.at) {
		m.retry.at = time.Time{}
		cmds = append(cmds, m.watch())
	}
	var cmd tea.Cmd
	m, cmd = m.tickRequest()
	return m, tea.Batch(append(cmds, cmd)...)
}

// deadline is the next moment at which something changes by itself.
func (m Model) deadline() time.Time {
	var next time.Time
	sooner := func(at time.Time) {
		if at.After(m.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	sooner(m.toast.until)
	sooner(m.retry.at)
	sooner(m.needs.at)
	if l := m.screens.live; l != nil {
		sooner(l.retry.at)
	}
	if !m.look.probed && !m.look.marks.Plain {
		sooner(m.started.Add(probeAfter))
	}
	if m.list.stale {
		sooner(m.lastKey.Add(sortQuiet))
	}
	if _, waits := m.wouldOpen(); waits {
		sooner(m.quietSince().Add(openQuiet))
	}
	if at, ok := m.requestDeadline(); ok {
		sooner(at)
	}
	if n := len(m.dialogs); n > 0 {
		sooner(m.dialogs[n-1].armsAt())
	}
	if !m.resized.IsZero() {
		sooner(m.resized.Add(resizeQuiet))
	}
	if m.unseen() {
		sooner(m.lastKey.Add(seenAfter))
	}
	return next
}

// The answers of the hub.
type (
	fleetMsg struct {
		fleet  state.Fleet
		events <-chan state.Event
	}
	eventsMsg struct{ events []state.Event }
	// lostMsg says that the stream ended, or could not be opened.
	lostMsg   struct{ err error }
	failedMsg struct {
		doing string
		err   error
	}
	doneMsg    struct{ toast toast }
	decidedMsg struct {
		verdict state.Verdict
		err     error
	}
	surveyMsg struct{ survey state.Survey }
)

func (msg fleetMsg) fold(m Model) (Model, tea.Cmd) {
	first := !m.watching
	m.fleet, m.events, m.watching = msg.fleet, msg.events, true
	if m.retry.wait > 0 && m.toast.kind == toastBad {
		m.toast = toast{}
	}
	m.retry = retry{}
	if first {
		m.needs = m.needs.start(m.fleet)
		m.list = m.list.sorted(m.fleet).toTop()
		if line := sinceLeft(m.fleet, m.now); line != "" && m.toast.text == "" {
			m.toast = toast{kind: toastInfo, text: line}
		}
		if a, ok := m.fleet.Agent(m.o.Agent); ok && a.Status.Live() {
			m.list.cursor, m.whole = a.ID, true
			m = m.typeTo(a.ID)
		}
	} else {
		m.list.stale = true
	}
	return m, m.next()
}

func (msg eventsMsg) fold(m Model) (Model, tea.Cmd) {
	for _, e := range msg.events {
		before := m.fleet
		m.fleet = m.fleet.Apply(e)
		m.list.stale = true
		m.activity = m.activity.add(e)
		m.toast = m.toast.after(m, before, e)
		if _, ok := e.Body.(state.Measured); ok && e.Agent == m.changes.agent {
			m.changes.stale = true
		}
	}
	return m, m.next()
}

func (msg lostMsg) fold(m Model) (Model, tea.Cmd) {
	if m.ctx.Err() != nil {
		return m, nil
	}
	if msg.err == nil {
		return m, m.watch() // fell behind: read it all again
	}
	m.retry = m.retry.next(m.now)
	m.toast = failure("the hub does not answer", msg.err)
	return m, nil
}

func (msg failedMsg) take(m Model) Model {
	if m.ctx.Err() == nil {
		m.toast = failure(msg.doing, msg.err)
	}
	return m
}

func (msg doneMsg) take(m Model) Model {
	if msg.toast.text != "" {
		m.toast = msg.toast.from(m.now)
	}
	return m
}

func (msg surveyMsg) take(m Model) Model {
	m.survey = &msg.survey
	for i, d := range m.dialogs {
		m.dialogs[i] = d.surveyed(msg.survey)
	}
	return m
}

// askSurvey asks what works on this machine.
func (m Model) askSurvey() tea.Cmd {
	hub, dir := m.o.Hub, m.o.Dir
	return m.do("looking at this machine", func(ctx context.Context) (tea.Msg, error) {
		s, err := hub.Survey(ctx, dir)
		return surveyMsg{s}, err
	})
}

// hint is the way out that an error names, if it does.
func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
