package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fletch/hub/client"
	"fletch/hub/wire"
	"fletch/state"
)

// requestRow is a request as scripts see it.
type requestRow struct {
	ID        state.RequestID    `json:"id"`
	Agent     string             `json:"agent"`
	Operation string             `json:"operation"`
	Remote    string             `json:"remote"`
	Ref       string             `json:"ref"`
	Commit    state.Commit       `json:"commit"`
	Base      state.Commit       `json:"base"`
	Old       state.Commit       `json:"old,omitempty"`
	Force     bool               `json:"force"`
	Plan      string             `json:"plan"`
	State     state.RequestState `json:"state"`
	Flags     []state.Flag       `json:"flags"`
	Commits   int                `json:"commits"`
	Files     int                `json:"files"`
	Added     int                `json:"added"`
	Removed   int                `json:"removed"`
	Asked     time.Time          `json:"asked"`
	Outcome   string             `json:"outcome,omitempty"`
	Reason    string             `json:"reason,omitempty"`
}

func row(fleet state.Fleet, r state.Request) requestRow {
	name := string(r.Agent)
	if g, ok := fleet.Agent(r.Agent); ok {
		name = g.Name
	}
	out := requestRow{
		ID: r.ID, Agent: name, Operation: r.Operation, Remote: r.Plan.Remote, Ref: r.Plan.Ref, Commit: r.Plan.Commit,
		Base: r.Plan.Base, Old: r.Plan.Old, Force: r.Plan.Force, Plan: r.PlanHash, State: r.State, Flags: orEmpty(r.Plan.Flags),
		Commits: len(r.Plan.Commits), Files: len(r.Plan.Files), Added: r.Plan.Added, Removed: r.Plan.Removed,
		Asked: r.Asked, Outcome: r.Outcome,
	}
	if r.Verdict != nil {
		out.Reason = r.Verdict.Reason
	}
	return out
}

func (a *app) requestsCommand() *cobra.Command {
	var all, follow bool
	c := &cobra.Command{Use: "requests", Short: "what agents ask to publish", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		if follow {
			return a.followRequests(c.Context())
		}
		return a.withFleet(c.Context(), func(fleet state.Fleet) error {
			rows := []requestRow{}
			for _, r := range fleet.Requests {
				if all || r.State == state.Pending {
					rows = append(rows, row(fleet, r))
				}
			}
			if a.json {
				return a.print(rows)
			}
			return a.requestTable(rows)
		})
	}}
	c.Flags().BoolVar(&all, "all", false, "settled ones too")
	c.Flags().BoolVar(&follow, "follow", false, "print each one as it is asked or settled")
	return c
}

func (a *app) requestTable(rows []requestRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, "Nobody asks for anything.")
		return err
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d commits, %d files, +%d −%d\t%s\n", r.ID, r.State, r.Agent, plain(r.Remote),
			plain(strings.TrimPrefix(r.Ref, "refs/heads/")), r.Commit, r.Commits, r.Files, r.Added, r.Removed, plain(r.Outcome))
		for _, f := range r.Flags {
			fmt.Fprintf(table, "\t\t\t\t%s\t%s\n", colourWord(f), plain(f.Text))
		}
	}
	return table.Flush()
}

func colourWord(f state.Flag) string {
	if f.Red {
		return "--accept " + f.Name
	}
	return "also"
}

// followRequests prints a line for each request that is asked or changes, as
// NDJSON with --json.
func (a *app) followRequests(ctx context.Context) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	shown := map[state.RequestID]state.RequestState{}
	lines := json.NewEncoder(a.out)
	tell := func(fleet state.Fleet) error {
		for _, r := range fleet.Requests {
			if shown[r.ID] == r.State || shown[r.ID] == "" && r.State != state.Pending && r.State != state.Allowed {
				continue
			}
			shown[r.ID] = r.State
			var err error
			if a.json {
				err = lines.Encode(row(fleet, r))
			} else {
				err = a.requestTable([]requestRow{row(fleet, r)})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for ctx.Err() == nil {
		fleet, events, err := c.Watch(ctx)
		if err != nil {
			return err
		}
		if err := tell(fleet); err != nil {
			return err
		}
		for e := range events {
			fleet = fleet.Apply(e)
			if err := tell(fleet); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) allowCommand() *cobra.Command {
	var v state.Verdict
	var commit string
	c := &cobra.Command{Use: "allow ID --commit FULLSHA", Short: "publish exactly one commit", Args: exactly(1, "ID --commit FULLSHA"), RunE: func(c *cobra.Command, args []string) error {
		v.Request, v.Allow, v.Commit = state.RequestID(args[0]), true, state.Commit(commit)
		if !v.Commit.Valid() {
			return usage("fletch allow "+args[0]+" --commit FULLSHA, the whole id that fletch requests shows", "an allow names the full commit id")
		}
		return a.decide(c.Context(), v)
	}}
	c.Flags().StringVar(&commit, "commit", "", "the full id of the commit that you read")
	c.Flags().StringVar(&v.Plan, "plan", "", "the plan hash that you read")
	c.Flags().StringArrayVar(&v.Accept, "accept", nil, "a red flag that you accept; once for each")
	return c
}

func (a *app) denyCommand() *cobra.Command {
	var v state.Verdict
	c := &cobra.Command{Use: "deny ID", Short: "publish nothing and tell the agent", Args: exactly(1, "ID"), RunE: func(c *cobra.Command, args []string) error {
		v.Request = state.RequestID(args[0])
		return a.decide(c.Context(), v)
	}}
	c.Flags().StringVar(&v.Reason, "reason", "", "what the agent is told")
	return c
}

// decide gives a verdict. After an allow it waits for what becomes of the
// push, since that is what the person wants to know.
func (a *app) decide(ctx context.Context, v state.Verdict) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	fleet, err := c.Fleet(ctx)
	if err != nil {
		return err
	}
	r, ok := fleet.Request(v.Request)
	if !ok {
		return wire.Errorf("no-such-request", "fletch requests lists them", "there is no request %q", v.Request)
	}
	if v.Allow && v.Plan == "" && v.Commit == r.Plan.Commit {
		// The plan is what the hub shows now; its commit was named in full.
		v.Plan = r.PlanHash
	}
	if v.Allow && v.Commit != r.Plan.Commit {
		return wire.Errorf("request-moved", "read the request again: fletch requests", "request %s is for %s, not for %s; nothing was pushed", v.Request, r.Plan.Commit, v.Commit)
	}
	if err := c.Decide(ctx, v); err != nil {
		return err
	}
	settled, err := settledRequest(ctx, c, v.Request)
	if err != nil {
		return err
	}
	if a.json {
		err = a.print(row(fleet, settled))
	} else {
		_, err = fmt.Fprintf(a.out, "%s %s\n", settled.State, plain(orWord(settled.Outcome, settled.Plan.Commit.Short())))
	}
	if settled.State == state.Errored {
		return wire.Errorf("push-failed", "", "not pushed: %s", settled.Outcome)
	}
	return err
}

// settledRequest waits until a request has an outcome.
func settledRequest(ctx context.Context, c *client.Client, id state.RequestID) (state.Request, error) {
	for {
		fleet, events, err := c.Watch(ctx)
		if err != nil {
			return state.Request{}, err
		}
		for ok := true; ok; {
			r, there := fleet.Request(id)
			if there && r.State != state.Pending && r.State != state.Allowed {
				return r, nil
			}
			var e state.Event
			if e, ok = <-events; ok {
				fleet = fleet.Apply(e)
			}
		}
		if ctx.Err() != nil {
			return state.Request{}, ctx.Err()
		}
	}
}

func (a *app) diffCommand() *cobra.Command {
	return &cobra.Command{Use: "diff AGENT|ID", Short: "show an agent's work, or what a request would publish", Args: exactly(1, "AGENT or request ID"), RunE: func(c *cobra.Command, args []string) error {
		h, _, err := a.connect(c.Context())
		if err != nil {
			return err
		}
		defer h.Close()
		fleet, err := h.Fleet(c.Context())
		if err != nil {
			return err
		}
		var patch state.Patch
		if g, ok := fleet.Named(args[0]); ok {
			patch, err = h.Changes(c.Context(), g.ID)
		} else if _, ok := fleet.Request(state.RequestID(args[0])); ok {
			patch, err = h.RequestPatch(c.Context(), state.RequestID(args[0]))
		} else {
			return wire.Errorf("no-such-agent", "fletch ls and fletch requests list them", "there is no agent or request %q", args[0])
		}
		if err != nil {
			return err
		}
		if a.json {
			return a.print(patch)
		}
		return writePatch(a.out, patch)
	}}
}

// writePatch prints a patch for a person: nothing an agent chose reaches the
// terminal as it is.
func writePatch(out io.Writer, p state.Patch) error {
	for i, c := range p.Commits {
		fmt.Fprintf(out, "commit %d of %d  %s  %s <%s>\n", i+1, len(p.Commits), c.ID, plain(c.Author), plain(c.Email))
		for line := range strings.SplitSeq(strings.TrimRight(c.Message, "\n"), "\n") {
			fmt.Fprintf(out, "    %s\n", plain(line))
		}
	}
	if _, err := io.WriteString(out, plain(p.Diff)); err != nil {
		return err
	}
	for _, o := range p.Omitted {
		fmt.Fprintf(out, "not shown: %s\n", plain(o))
	}
	return nil
}

func (a *app) logCommand() *cobra.Command {
	var verify, head, follow bool
	var agent string
	c := &cobra.Command{Use: "log", Short: "everything that happened", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		h, _, err := a.connect(c.Context())
		if err != nil {
			return err
		}
		defer h.Close()
		switch {
		case verify || head:
			ask := h.Head
			if verify {
				ask = h.Verify
			}
			at, err := ask(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.print(at)
			}
			_, err = fmt.Fprintf(a.out, "%d %s\n", at.Seq, at.Hash)
			return err
		case follow:
			return a.followLog(c.Context(), h, agent)
		}
		_, err = a.printLog(c.Context(), h, 0, agent)
		return err
	}}
	c.Flags().BoolVar(&verify, "verify", false, "check the whole hash chain, then print its head")
	c.Flags().BoolVar(&head, "head", false, "print the newest event's number and hash")
	c.Flags().BoolVar(&follow, "follow", false, "go on printing")
	c.Flags().StringVar(&agent, "agent", "", "only this agent's events (id)")
	return c
}

// printLog prints every event after a sequence number and returns the last
// one's.
func (a *app) printLog(ctx context.Context, h *client.Client, after uint64, agent string) (uint64, error) {
	for {
		events, err := h.Events(ctx, after, state.AgentID(agent), 0)
		if err != nil || len(events) == 0 {
			return after, err
		}
		for _, e := range events {
			if err := a.printEvent(e); err != nil {
				return after, err
			}
			after = e.Seq
		}
	}
}

func (a *app) followLog(ctx context.Context, h *client.Client, agent string) error {
	for ctx.Err() == nil {
		watch, cancel := context.WithCancel(ctx)
		fleet, events, err := h.Watch(watch)
		if err == nil {
			_, err = a.printLog(ctx, h, 0, agent)
		}
		if err != nil {
			cancel()
			return err
		}
		for e := range events {
			if e.Seq > fleet.Seq && (agent == "" || string(e.Agent) == agent) {
				if err := a.printEvent(e); err != nil {
					cancel()
					return err
				}
			}
		}
		cancel()
		return nil // the hub ended
	}
	return nil
}

func (a *app) printEvent(e state.Event) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if a.json {
		_, err = fmt.Fprintf(a.out, "%s\n", raw)
		return err
	}
	body, err := json.Marshal(e.Body)
	if err != nil {
		return err
	}
	const most = 200
	text := plain(string(body))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	_, err = fmt.Fprintf(a.out, "%6d  %s  %-8s  %-14s  %s\n", e.Seq, e.At.Local().Format("2006-01-02 15:04:05"), e.Agent, e.Kind(), text)
	return err
}
