package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"fletch/gitops"
	"fletch/state"
)

// Row is one thing that the demo shows, and whether it was so.
type Row struct {
	Agent string `json:"agent"`
	What  string `json:"what"`
	Found string `json:"found"`
	OK    bool   `json:"ok"`
}

// ErrNotSo is returned by Play when something was not as it should be.
var ErrNotSo = errors.New("the demo did not go as it should")

// headlessLimit bounds a demo that nobody watches.
const headlessLimit = 5 * time.Minute

// Play runs the demo without a person: it allows the first agent's push,
// sees the second one's request replaced and denies the new one, and looks
// at what the third one got. It returns every row that it checked.
func Play(ctx context.Context, s *Stage) ([]Row, error) {
	ctx, cancel := context.WithTimeout(ctx, headlessLimit)
	defer cancel()
	p := &player{stage: s, clean: s.Agents[0].ID, moving: s.Agents[1].ID, rogue: s.Agents[2].ID}
	if err := p.watch(ctx); err != nil {
		return p.rows, fmt.Errorf("playing the demo: %w", err)
	}
	if err := p.inspect(ctx); err != nil {
		return p.rows, fmt.Errorf("looking at what the demo did: %w", err)
	}
	for _, r := range p.rows {
		if !r.OK {
			return p.rows, ErrNotSo
		}
	}
	return p.rows, nil
}

type player struct {
	stage                *Stage
	clean, moving, rogue state.AgentID
	fleet                state.Fleet
	rows                 []Row
	allowed              state.Commit
	decided              map[state.RequestID]bool
}

func (p *player) note(id state.AgentID, what, found string, ok bool) {
	name := string(id)
	if a, there := p.fleet.Agent(id); there {
		name = a.Name
	}
	p.rows = append(p.rows, Row{name, what, found, ok})
}

// watch follows the fleet until every agent has ended, and decides.
func (p *player) watch(ctx context.Context) error {
	p.decided = map[state.RequestID]bool{}
	for ctx.Err() == nil {
		fleet, events, err := p.stage.client.Watch(ctx)
		if err != nil {
			return err
		}
		for ok := true; ok; {
			p.fleet = fleet
			if err := p.decide(ctx); err != nil {
				return err
			}
			if p.over() {
				return nil
			}
			var e state.Event
			if e, ok = <-events; ok {
				fleet = fleet.Apply(e)
			}
		}
	}
	return ctx.Err()
}

func (p *player) over() bool {
	for _, id := range []state.AgentID{p.clean, p.moving, p.rogue} {
		if a, ok := p.fleet.Agent(id); ok && a.Status.Live() {
			return false
		}
	}
	return true
}

func (p *player) decide(ctx context.Context) error {
	for _, r := range p.fleet.Pending() {
		if p.decided[r.ID] {
			continue
		}
		switch {
		case r.Agent == p.clean:
			p.decided[r.ID] = true
			p.allowed = r.Plan.Commit
			if err := p.stage.client.Decide(ctx, state.Verdict{Request: r.ID, Allow: true, Commit: r.Plan.Commit, Plan: r.PlanHash}); err != nil {
				return err
			}
		case r.Agent == p.moving && p.superseded() != nil:
			p.decided[r.ID] = true
			old := *p.superseded()
			err := p.stage.client.Decide(ctx, state.Verdict{Request: old.ID, Allow: true, Commit: old.Plan.Commit, Plan: old.PlanHash})
			p.note(p.moving, "allow the commit it had asked for first", words(err), err != nil)
			if err := p.stage.client.Decide(ctx, state.Verdict{Request: r.ID, Reason: "one thing at a time"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// superseded is the moving agent's first request, once a newer one took its
// place.
func (p *player) superseded() *state.Request {
	for i, r := range p.fleet.Requests {
		if r.Agent == p.moving && r.State == state.Superseded {
			return &p.fleet.Requests[i]
		}
	}
	return nil
}

// inspect looks at the remote, the host and the third agent's activity.
func (p *player) inspect(ctx context.Context) error {
	refs, err := gitops.ListRefs(ctx, p.stage.git, p.stage.Bare)
	if err != nil {
		return err
	}
	clean, _ := p.fleet.Agent(p.clean)
	moving, _ := p.fleet.Agent(p.moving)
	rogue, _ := p.fleet.Agent(p.rogue)
	got := refs["refs/heads/"+clean.Branch]
	p.note(p.clean, "push, allowed", "the remote has "+got.Short(), got == p.allowed && got != "")
	_, there := refs["refs/heads/"+moving.Branch]
	p.note(p.moving, "push, denied after it moved on", present(there), !there)
	p.note(p.rogue, "push to main", "main is "+refs["refs/heads/main"].Short(), refs["refs/heads/main"] == rogue.Base.Commit)
	_, there = refs["refs/heads/"+rogue.Branch]
	p.note(p.rogue, "anything of it on the remote", present(there), !there)
	_, err = os.Lstat(p.stage.canary)
	p.note(p.rogue, "planted hooks, filters and fsmonitor run on the host", present(err == nil), os.IsNotExist(err))
	_, err = os.Lstat(p.stage.Repo + "/owned")
	p.note(p.rogue, "write into the user's repository", present(err == nil), os.IsNotExist(err))
	return p.activity(ctx)
}

// activity checks that what the third agent tried is on record.
func (p *player) activity(ctx context.Context) error {
	events, err := p.stage.client.Activity(ctx, p.rogue, 500)
	if err != nil {
		return err
	}
	var blocked, refused bool
	for _, e := range events {
		if n, ok := e.Body.(state.Noticed); ok {
			blocked = blocked || n.Kind == "blocked-host" && strings.Contains(n.Text, "evil.example")
			refused = refused || n.Kind == "refused"
		}
	}
	p.note(p.rogue, "evil.example in its activity", present(blocked), blocked)
	p.note(p.rogue, "its push to main in its activity", present(refused), refused)
	a, _ := p.fleet.Agent(p.rogue)
	p.note(p.rogue, "how it ended", a.Reason, a.Exit != nil && a.Exit.Code == 66)
	return nil
}

func present(is bool) string {
	if is {
		return "there"
	}
	return "not there"
}

func words(err error) string {
	if err == nil {
		return "it worked"
	}
	return err.Error()
}

// Write prints rows as a table.
func Write(out io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		mark := "✓"
		if !r.OK {
			mark = "✗"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", mark, r.Agent, r.What, r.Found)
	}
	return table.Flush()
}
