package state

import (
	"maps"
	"slices"
	"time"
)

// keptSettled is how many settled requests a fleet remembers. Older ones stay
// in the log.
const keptSettled = 200

// keptNews is how many headline events since the person left are remembered.
const keptNews = 100

// Fleet is all that is on the dashboard. It is a value: Apply returns a new
// one and never changes what an earlier one shows.
type Fleet struct {
	Seq    uint64  `json:"seq"`
	Agents []Agent `json:"agents"` // in creation order
	// Requests holds every pending request and the newest settled ones, in
	// the order they were asked.
	Requests []Request `json:"requests"`
	// Trash lists removed agents that undo can bring back, oldest first.
	Trash []Trashed `json:"trash,omitempty"`
	// Left is when the last dashboard was closed; zero if none ever was.
	Left time.Time `json:"left,omitzero"`
	// News is what happened since Left that a person would want to hear.
	News []Event `json:"news,omitempty"`
	// Attested is what the sandbox of each agent really was at its last start.
	Attested map[AgentID]Attestation `json:"attested,omitempty"`
}

// Trashed is a removed agent that can still be brought back.
type Trashed struct {
	Agent Agent     `json:"agent"`
	Entry string    `json:"entry"`
	At    time.Time `json:"at"`
}

// Apply is the one fold: what the fleet is after e. An event about an agent
// or request that is not there changes nothing but Seq.
func (f Fleet) Apply(e Event) Fleet {
	f.Seq = e.Seq
	f = f.remember(e)
	switch body := e.Body.(type) {
	case Created:
		f.Agents = append(slices.Clone(f.Agents), body.Agent)
	case StatusChanged:
		return f.withAgent(e.Agent, func(a *Agent) {
			if a.Status != body.Status {
				a.Since = e.At
			}
			a.Status, a.Reason, a.Note = body.Status, body.Reason, body.Note
			a.Exit = body.Exit
		})
	case Prepared:
		return f.withAgent(e.Agent, func(a *Agent) {
			a.Base, a.Remote, a.NotIncluded = body.Base, body.Remote, body.NotIncluded
		})
	case Sealed:
		f.Attested = maps.Clone(f.Attested)
		if f.Attested == nil {
			f.Attested = map[AgentID]Attestation{}
		}
		f.Attested[e.Agent] = body.Attestation
	case Measured:
		return f.withAgent(e.Agent, func(a *Agent) { a.Work = body.Work })
	case Removed:
		return f.remove(e, body)
	case Restored:
		f.Agents = append(slices.Clone(f.Agents), body.Agent)
		f.Trash = slices.DeleteFunc(slices.Clone(f.Trash), func(t Trashed) bool { return t.Agent.ID == body.Agent.ID })
	case Asked:
		f.Requests = trimSettled(append(slices.Clone(f.Requests), body.Request))
	case Joined:
		return f.withRequest(body.Request, func(r *Request) {
			r.Mail = append(slices.Clone(r.Mail), body.Mail)
		})
	case Decided:
		return f.withRequest(body.Verdict.Request, func(r *Request) {
			verdict := body.Verdict
			r.Verdict, r.State = &verdict, Denied
			if verdict.Allow {
				r.State = Allowed
				return
			}
			r.Settled = e.At
		})
	case Withdrawn:
		return f.settle(e, body.Request, Superseded, body.Why)
	case Published:
		return f.settle(e, body.Request, Pushed, body.Outcome)
	case PublishFailed:
		return f.settle(e, body.Request, Errored, body.Outcome)
	case Seen:
		return f.withAgent(e.Agent, func(a *Agent) {
			if a.Status == Done {
				a.Status, a.Since = Idle, e.At
			}
		})
	case Left:
		f.Left, f.News = e.At, nil
	case Noticed:
	}
	return f
}

// Agent finds an agent by id.
func (f Fleet) Agent(id AgentID) (Agent, bool) {
	i := slices.IndexFunc(f.Agents, func(a Agent) bool { return a.ID == id })
	if i < 0 {
		return Agent{}, false
	}
	return f.Agents[i], true
}

// Named finds an agent by id or by its unique name.
func (f Fleet) Named(word string) (Agent, bool) {
	i := slices.IndexFunc(f.Agents, func(a Agent) bool { return string(a.ID) == word || a.Name == word })
	if i < 0 {
		return Agent{}, false
	}
	return f.Agents[i], true
}

// Request finds a request by id.
func (f Fleet) Request(id RequestID) (Request, bool) {
	i := slices.IndexFunc(f.Requests, func(r Request) bool { return r.ID == id })
	if i < 0 {
		return Request{}, false
	}
	return f.Requests[i], true
}

// Pending lists what waits for a person, oldest first.
func (f Fleet) Pending() []Request {
	var open []Request
	for _, r := range f.Requests {
		if r.State == Pending {
			open = append(open, r)
		}
	}
	return open
}

// PendingOf returns the open request of one agent, if there is one.
func (f Fleet) PendingOf(id AgentID) (Request, bool) {
	for _, r := range f.Requests {
		if r.Agent == id && r.State == Pending {
			return r, true
		}
	}
	return Request{}, false
}

// NeedsPerson reports whether an agent waits for a human: a request, its own
// question, or a failure.
func (f Fleet) NeedsPerson(a Agent) bool {
	if _, asks := f.PendingOf(a.ID); asks {
		return true
	}
	return a.Status == Waiting || a.Status == Failed
}

func (f Fleet) withAgent(id AgentID, change func(*Agent)) Fleet {
	i := slices.IndexFunc(f.Agents, func(a Agent) bool { return a.ID == id })
	if i < 0 {
		return f
	}
	f.Agents = slices.Clone(f.Agents)
	change(&f.Agents[i])
	return f
}

func (f Fleet) withRequest(id RequestID, change func(*Request)) Fleet {
	i := slices.IndexFunc(f.Requests, func(r Request) bool { return r.ID == id })
	if i < 0 {
		return f
	}
	f.Requests = slices.Clone(f.Requests)
	change(&f.Requests[i])
	return f
}

func (f Fleet) settle(e Event, id RequestID, to RequestState, outcome string) Fleet {
	return f.withRequest(id, func(r *Request) {
		r.State, r.Outcome, r.Settled = to, outcome, e.At
	})
}

// remove drops the agent, and with it every request that nobody answered.
func (f Fleet) remove(e Event, body Removed) Fleet {
	f.Agents = slices.DeleteFunc(slices.Clone(f.Agents), func(a Agent) bool { return a.ID == e.Agent })
	f.Requests = slices.Clone(f.Requests)
	for i := range f.Requests {
		r := &f.Requests[i]
		if r.Agent == e.Agent && r.State == Pending {
			r.State, r.Outcome, r.Settled = Superseded, "its agent was removed", e.At
		}
	}
	f.Attested = maps.Clone(f.Attested)
	delete(f.Attested, e.Agent)
	f.Trash = append(slices.Clone(f.Trash), Trashed{body.Agent, body.Trash, e.At})
	return f
}

// remember keeps the events that answer "what happened while I was away".
func (f Fleet) remember(e Event) Fleet {
	if f.Left.IsZero() || !headline(e.Body) {
		return f
	}
	news := append(slices.Clone(f.News), e)
	f.News = news[max(0, len(news)-keptNews):]
	return f
}

func headline(body Body) bool {
	switch body := body.(type) {
	case StatusChanged:
		return body.Status == Done || body.Status == Failed || body.Status == Exited || body.Status == Waiting
	case Asked, Published, PublishFailed:
		return true
	default:
		return false
	}
}

// trimSettled drops the oldest settled requests beyond keptSettled; what is
// pending, or allowed without an outcome, always stays.
func trimSettled(all []Request) []Request {
	settled := 0
	for _, r := range all {
		if r.State != Pending && r.State != Allowed {
			settled++
		}
	}
	return slices.DeleteFunc(all, func(r Request) bool {
		if settled <= keptSettled || r.State == Pending || r.State == Allowed {
			return false
		}
		settled--
		return true
	})
}
