package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fletch/gitops"
	"fletch/hub/client"
	"fletch/hub/wire"
	"fletch/state"
)

func (a *app) lsCommand() *cobra.Command {
	return &cobra.Command{Use: "ls", Short: "list the agents", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		return a.withFleet(c.Context(), func(fleet state.Fleet) error {
			if a.json {
				return a.print(orEmpty(fleet.Agents))
			}
			table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			gone := map[string]bool{}
			for _, g := range fleet.Agents {
				gone[g.Repo] = sourceGone(g.Repo)
				_, asks := fleet.PendingOf(g.ID)
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t+%d −%d\t%s\n", g.ID, g.Name, statusWords(g, asks), g.Provider, g.Engine,
					g.Work.Added, g.Work.Removed, "since "+g.Since.Local().Format("15:04"))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			for _, repo := range slices.Sorted(maps.Keys(gone)) {
				if gone[repo] {
					fmt.Fprintf(a.err, "note: %s; agents made from it keep their work\n", goneWords(repo))
				}
			}
			return nil
		})
	}}
}

// sourceGone reports whether a repository is not where it was. The command
// line looks itself: it sees what the person sees.
func sourceGone(repo string) bool { return gitops.Git{}.SourceGone(repo) }

func goneWords(repo string) string { return "the repository " + cell(repo) + " is gone" }

func statusWords(g state.Agent, asks bool) string {
	switch {
	case asks:
		return "asks to push"
	case g.Status == state.Failed && g.Reason != "":
		return "failed: " + cell(g.Reason)
	case g.Status == state.Waiting:
		return "asks you"
	}
	return string(g.Status)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// withFleet reads the fleet once.
func (a *app) withFleet(ctx context.Context, use func(state.Fleet) error) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	fleet, err := c.Fleet(ctx)
	if err != nil {
		return err
	}
	return use(fleet)
}

// withAgent reads the fleet and finds an agent by id or name.
func (a *app) withAgent(ctx context.Context, word string, use func(*client.Client, state.Fleet, state.Agent) error) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	fleet, err := c.Fleet(ctx)
	if err != nil {
		return err
	}
	g, ok := fleet.Named(word)
	if !ok {
		return wire.Errorf("no-such-agent", "fletch ls lists them", "there is no agent %q", word)
	}
	return use(c, fleet, g)
}

func (a *app) showCommand() *cobra.Command {
	var attested bool
	c := &cobra.Command{Use: "show AGENT", Short: "show one agent", Args: exactly(1, "AGENT"), RunE: func(c *cobra.Command, args []string) error {
		return a.withAgent(c.Context(), args[0], func(_ *client.Client, fleet state.Fleet, g state.Agent) error {
			if attested {
				return a.showAttestation(fleet.Attested[g.ID])
			}
			if a.json {
				return a.print(g)
			}
			return a.showAgent(fleet, g)
		})
	}}
	c.Flags().BoolVar(&attested, "attestation", false, "show what its sandbox really is")
	return c
}

func (a *app) showAgent(fleet state.Fleet, g state.Agent) error {
	_, asks := fleet.PendingOf(g.ID)
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, cell(fmt.Sprintf(format, args...)))
	}
	row("name", "%s  (%s)", g.Name, g.ID)
	row("status", "%s since %s", statusWords(g, asks), g.Since.Local().Format("2006-01-02 15:04"))
	row("provider", "%s", g.Provider)
	row("engine", "%s, tier %s, network %s", g.Engine, g.Tier, g.Network)
	if sourceGone(g.Repo) {
		row("repo", "%s (gone; the agent keeps its work)", g.Repo)
	} else {
		row("repo", "%s", g.Repo)
	}
	row("base", "%s@%s, read %s", g.Base.Ref, g.Base.Commit.Short(), ago(time.Since(g.Base.At)))
	if g.Base.Stale != "" {
		row("", "%s", g.Base.Stale)
	}
	if words := notIncluded(g.NotIncluded); words != "" {
		row("without", "%s", words)
	}
	row("pushes to", "%s of %s", g.Branch, orWord(g.Remote, "no remote"))
	row("work", "%d commits, %d files, +%d −%d", g.Work.Commits, g.Work.Files, g.Work.Added, g.Work.Removed)
	if g.Task != "" {
		row("task", "%s", g.Task)
	}
	if g.Reason != "" {
		row("reason", "%s", g.Reason)
	}
	return table.Flush()
}

func (a *app) showAttestation(at state.Attestation) error {
	if a.json {
		return a.print(at)
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, f := range at.Facts {
		fmt.Fprintf(table, "%s\t%s\t%s\n", cell(f.Name), cell(f.Value), cell(f.Known))
	}
	return table.Flush()
}

func orWord(text, word string) string {
	if text == "" {
		return word
	}
	return text
}
