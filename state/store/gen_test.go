package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fletch/state"
)

// clock is a time that moves only when told.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.UTC)} }

func (c *clock) now() time.Time {
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

// gen makes random events that a fleet could really see: most are about
// agents and requests that exist, some about ones that do not.
type gen struct {
	*rand.Rand
	agents, requests int
}

func newGen(seed uint64) *gen { return &gen{Rand: rand.New(rand.NewPCG(seed, 7))} }

func (g *gen) agent() state.AgentID {
	return state.AgentID(fmt.Sprintf("agent%03d", g.IntN(g.agents+1)))
}

func (g *gen) request() state.RequestID {
	return state.RequestID(fmt.Sprint(g.IntN(g.requests + 1)))
}

// text is what a hostile agent would send: any length, any bytes.
func (g *gen) text() string {
	parts := []string{"push", " ", "ü", "\x1b[2J", "\x00", "\xff\xfe", "\u202e", "\"", "<&>", "\n", strings.Repeat("x", 300)}
	var b strings.Builder
	for range g.IntN(6) {
		b.WriteString(parts[g.IntN(len(parts))])
	}
	return b.String()
}

func (g *gen) when() time.Time {
	zone := time.FixedZone("", g.IntN(24)*3600-12*3600)
	return time.Date(2026, 3, 4, g.IntN(24), g.IntN(60), g.IntN(60), g.IntN(1e9), zone)
}

func (g *gen) commit() state.Commit { return state.Commit(fmt.Sprintf("%040x", g.Uint64())) }

func (g *gen) noun(id state.AgentID) state.Agent {
	return state.Agent{
		ID: id, Name: "name-" + string(id), Provider: "claude", Engine: "native", Status: state.Starting,
		Base: state.Base{Ref: "main", Commit: g.commit(), At: g.when()}, Task: g.text(), Created: g.when(), Since: g.when(),
		Command: [][]string{nil, {}, {"sh", "-c", g.text()}}[g.IntN(3)],
	}
}

func (g *gen) plan(id state.AgentID) state.Plan {
	p := state.Plan{Agent: id, Remote: "https://example.org/a.git", Ref: "refs/heads/fletch/x", Commit: g.commit(), Base: g.commit()}
	for range g.IntN(4) {
		p.Commits = append(p.Commits, state.PlanCommit{ID: g.commit(), Subject: g.text(), Parents: []state.Commit{g.commit()}})
		p.Files = append(p.Files, state.PlanFile{Path: g.text(), Change: "M", Mode: "100644", Added: g.IntN(100)})
		p.Flags = append(p.Flags, state.Flag{Name: "force", Red: g.IntN(2) == 0, Text: g.text()})
	}
	return p
}

func (g *gen) next() state.Event {
	id := g.agent()
	e := state.Event{Agent: id}
	switch g.IntN(16) {
	case 0, 1:
		g.agents++
		e.Agent = state.AgentID(fmt.Sprintf("agent%03d", g.agents))
		e.Body = state.Created{Agent: g.noun(e.Agent)}
	case 2, 3:
		body := state.StatusChanged{Status: state.Statuses[g.IntN(len(state.Statuses))], Reason: g.text(), Note: g.text()}
		if g.IntN(3) == 0 {
			body.Exit = &state.Exit{Code: g.IntN(256), At: g.when(), BootID: "b"}
		}
		e.Body = body
	case 4:
		e.Body = state.Prepared{Base: state.Base{Ref: "main", Commit: g.commit(), At: g.when()}, NotIncluded: g.IntN(9)}
	case 5:
		e.Body = state.Sealed{Attestation: state.Attestation{Engine: "native", At: g.when(), Facts: []state.Fact{{Name: "net", Value: g.text(), Known: "tested"}}}}
	case 6:
		e.Body = state.Measured{Work: state.Work{Head: g.commit(), Commits: g.IntN(5), Files: g.IntN(50)}}
	case 7:
		e.Body = state.Removed{Trash: g.text(), Agent: g.noun(id)}
	case 8:
		e.Body = state.Restored{Agent: g.noun(id)}
	case 9, 10:
		g.requests++
		plan := g.plan(id)
		e.Body = state.Asked{Request: state.Request{
			ID: state.RequestID(fmt.Sprint(g.requests)), Agent: id, Operation: "push", Plan: plan, PlanHash: plan.Hash(),
			Asked: g.when(), State: state.Pending, Mail: []string{g.text()},
		}}
	case 11:
		e.Body = state.Joined{Request: g.request(), Mail: g.text()}
	case 12:
		e.Body = state.Decided{Verdict: state.Verdict{Request: g.request(), Allow: g.IntN(2) == 0, Reason: g.text(), By: state.By{PID: g.IntN(1 << 20)}}}
	case 13:
		e.Body = []state.Body{
			state.Withdrawn{Request: g.request(), Why: g.text()},
			state.Published{Request: g.request(), Outcome: g.text()},
			state.PublishFailed{Request: g.request(), Outcome: g.text()},
		}[g.IntN(3)]
	case 14:
		e.Body = state.Noticed{Kind: "info", Text: g.text()}
	case 15:
		e.Body = state.Seen{}
		if g.IntN(3) == 0 {
			e.Agent, e.Body = "", state.Left{}
		}
	}
	return e
}

// sameJSON compares two values as a client would see them.
func sameJSON(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Fatalf("%s differs:\n got %.2000s\nwant %.2000s", what, g, w)
	}
}
