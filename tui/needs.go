package tui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
)

// need is why an agent wants the person. The higher, the more it matters.
type need uint8

const (
	noNeed need = iota
	needDone
	needAnswer
	needRequest
)

func needOf(f state.Fleet, a state.Agent) need {
	if _, asks := f.PendingOf(a.ID); asks {
		return needRequest
	}
	switch a.Status {
	case state.Waiting:
		return needAnswer
	case state.Done, state.Failed:
		return needDone
	case state.Starting, state.Working, state.Idle, state.Stopped, state.Exited:
	}
	return noNeed
}

// needs remembers what the person has been called for, so that the bell rings
// once for each new need, and not at all for what is under their eyes.
type needs struct {
	told map[state.AgentID]need
	at   time.Time // when a need that came up is old enough to ring for
}

func newNeeds() needs { return needs{told: map[state.AgentID]need{}} }

// start takes what is there when the dashboard opens as told: it is on the
// screen.
func (n needs) start(f state.Fleet) needs {
	n = newNeeds()
	for _, a := range f.Agents {
		n.told[a.ID] = needOf(f, a)
	}
	return n
}

// settleNeeds rings the terminal's bell once when agents have come to need
// the person. It waits a little, so that a burst of news rings once, and what
// is over by then not at all.
func (m Model) settleNeeds() (Model, tea.Cmd) {
	if !m.watching {
		return m, nil
	}
	ring, fresh := false, false
	told := make(map[state.AgentID]need, len(m.fleet.Agents))
	for _, a := range m.fleet.Agents {
		now, was := needOf(m.fleet, a), m.needs.told[a.ID]
		told[a.ID] = now
		if now <= was || m.inView(a.ID) {
			continue
		}
		fresh = true
		if m.needs.at.IsZero() || m.now.Before(m.needs.at) {
			told[a.ID] = was // not yet
			continue
		}
		ring = true
	}
	m.needs.told = told
	switch {
	case ring, !fresh:
		m.needs.at = time.Time{}
	case m.needs.at.IsZero():
		m.needs.at = m.now.Add(newsQuiet)
	}
	if ring {
		return m, tea.Raw("\a")
	}
	return m, nil
}

// inView reports whether an agent is under the person's eyes.
func (m Model) inView(id state.AgentID) bool {
	if m.blurred {
		return false
	}
	if m.request != nil {
		return m.request.sheet.Request().Agent == id
	}
	return m.typing.on && m.typing.agent == id || (m.right || m.whole) && m.list.cursor == id
}

// title is the terminal's title: how many need the person, then the name.
func (m Model) title() string {
	c := count(m.fleet)
	if n := c.requests + c.asks; n > 0 {
		return fmt.Sprintf("(%d) fletch", n)
	}
	return "fletch"
}

// unseen reports whether the person is looking at an agent that is done and
// was not looked at before: its screen is shown, and a key came after.
func (m Model) unseen() bool {
	a, ok := m.fleet.Agent(m.watched())
	return ok && a.Status == state.Done && m.tab == tabScreen && !m.blurred && m.rightShown() && len(m.dialogs) == 0 &&
		m.lastKey.After(a.Since) && m.seen != a.Since
}

// settleSeen tells the hub that a finished turn has been looked at.
func (m Model) settleSeen() (Model, tea.Cmd) {
	if !m.unseen() || m.now.Sub(m.lastKey) < seenAfter {
		return m, nil
	}
	a, _ := m.fleet.Agent(m.watched())
	m.seen = a.Since
	ctx, hub := m.ctx, m.o.Hub
	return m, func() tea.Msg {
		// A look that is not recorded only leaves a mark standing.
		_ = hub.Seen(ctx, a.ID)
		return nil
	}
}
