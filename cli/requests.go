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
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d commits, %d files, +%d −%d\t%s\n", r.ID, r.State, r.Agent, cell(r.Remote),
			cell(strings.TrimPrefix(r.Ref, "refs/heads/")), r.Commit, r.Commits, r.Files, r.Added, r.Removed, cell(r.Outcome))
		for _, f := range r.Flags {
			fmt.Fprintf(table, "\t\t\t\t%s\t%s\n", colourWord(f), cell(f.Text))
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
	return c.Until(ctx, func(fleet state.Fleet) (bool, error) { return false, tell(fleet) })
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
		_, err = fmt.Fprintf(a.out, "%s %s\n", settled.State, cell(orWord(settled.Outcome, settled.Plan.Commit.Short())))
	}
	if settled.State == state.Errored {
		return wire.Errorf("push-failed", "", "not pushed: %s", settled.Outcome)
	}
	return err
}

// settledRequest waits until a request has an outcome.
func settledRequest(ctx context.Context, c *client.Client, id state.RequestID) (state.Request, error) {
	var settled state.Request
	err := c.Until(ctx, func(fleet state.Fleet) (bool, error) {
		r, there := fleet.Request(id)
		settled = r
		return there && r.State != state.Pending && r.State != state.Allowed, nil
	})
	return settled, err
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
		fmt.Fprintf(out, "commit %d of %d  %s  %s <%s>\n", i+1, len(p.Commits), c.ID, cell(c.Author), cell(c.Email))
		for line := range strings.SplitSeq(strings.TrimRight(c.Message, "\n"), "\n") {
			fmt.Fprintf(out, "    %s\n", plain(line))
		}
	}
	if _, err := io.WriteString(out, plain(p.Diff)); err != nil {
		return err
	}
	for _, o := range p.Omitted {
		fmt.Fprintf(out, "not shown: %s\n", cell(o))
	}
	return nil
}
