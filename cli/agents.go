package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fletch/hub/client"
	"fletch/hub/wire"
	"fletch/state"
)

func (a *app) newCommand() *cobra.Command {
	var l state.Launch
	var quick bool
	c := &cobra.Command{
		Use:   "new [flags] [-- CMD…]",
		Short: "start agents, each in a sandbox and a checkout of its own",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return usage("fletch new [flags] -- CMD…", "a command comes after --")
			}
			l.Command = args
			repo, err := filepath.Abs(l.Repo)
			if err != nil {
				return fmt.Errorf("finding the repository: %w", err)
			}
			l.Repo = repo
			return a.launch(c.Context(), l, quick)
		},
	}
	flags := c.Flags()
	flags.StringVar(&l.Repo, "repo", ".", "the repository")
	flags.StringVar(&l.Base, "base", "", "branch, tag or commit to start from (default: the current branch)")
	flags.StringVar(&l.Provider, "provider", "", "which agent CLI (default: shell)")
	flags.StringVar(&l.Engine, "engine", "", "which sandbox (default: native)")
	flags.StringVar(&l.Profile, "profile", "", "settings from ~/.fletch/agents/NAME.toml")
	flags.StringVar(&l.Name, "name", "", "its name (default: two words)")
	flags.StringVar(&l.Task, "prompt", "", "what it shall do")
	flags.IntVar(&l.Copies, "copies", 1, "how many, with the same task")
	flags.BoolVar(&quick, "no-wait", false, "do not wait until it runs")
	return c
}

// launch starts agents and, unless quick, waits until each runs or failed.
func (a *app) launch(ctx context.Context, l state.Launch, quick bool) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	made, err := c.Launch(ctx, l)
	if err != nil {
		return err
	}
	var failed error
	for i := range made {
		if quick {
			break
		}
		now, err := a.untilUp(ctx, c, made[i].ID)
		if err != nil {
			return err
		}
		made[i] = now
		if now.Status == state.Failed && now.Exit == nil && failed == nil { // it never ran
			failed = wire.Errorf("start-failed", "fletch log shows what happened", "%s: %s", now.Name, now.Reason)
		}
	}
	if a.json {
		if len(made) == 1 {
			return errors.Join(a.print(made[0]), failed)
		}
		return errors.Join(a.print(made), failed)
	}
	for _, m := range made {
		fmt.Fprintf(a.out, "%s  %s · %s · %s@%s\n", m.Name, m.Provider, m.Engine, plain(m.Base.Ref), m.Base.Commit.Short())
		a.baseNotes(m)
	}
	return failed
}

// baseNotes says what an agent starts without.
func (a *app) baseNotes(m state.Agent) {
	if m.Base.Stale != "" {
		fmt.Fprintf(a.err, "note: %s\n", plain(m.Base.Stale))
	}
	switch {
	case m.NotIncluded == 1:
		fmt.Fprintf(a.err, "note: 1 uncommitted file is not included\n")
	case m.NotIncluded > 1:
		fmt.Fprintf(a.err, "note: %d uncommitted files are not included\n", m.NotIncluded)
	}
}

// untilUp waits until an agent is past starting, telling slow steps.
func (a *app) untilUp(ctx context.Context, c *client.Client, id state.AgentID) (state.Agent, error) {
	last := ""
	return a.follow(ctx, c, id, func(now state.Agent) bool {
		if now.Note != "" && now.Note != last && !a.json {
			last = now.Note
			fmt.Fprintf(a.err, "%s: %s\n", now.Name, plain(now.Note))
		}
		return now.Status != state.Starting
	})
}

var errAgentGone = errors.New("the agent was removed")

// follow watches one agent until enough says so.
func (a *app) follow(ctx context.Context, c *client.Client, id state.AgentID, enough func(state.Agent) bool) (state.Agent, error) {
	for {
		watch, cancel := context.WithCancel(ctx)
		fleet, events, err := c.Watch(watch)
		if err != nil {
			cancel()
			return state.Agent{}, err
		}
		for ok := true; ok; {
			now, there := fleet.Agent(id)
			if !there {
				cancel()
				return now, errAgentGone
			}
			if enough(now) {
				cancel()
				return now, nil
			}
			var e state.Event
			if e, ok = <-events; ok {
				fleet = fleet.Apply(e)
			}
		}
		cancel()
		if ctx.Err() != nil {
			return state.Agent{}, ctx.Err()
		}
	}
}

func (a *app) lsCommand() *cobra.Command {
	return &cobra.Command{Use: "ls", Short: "list the agents", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		return a.withFleet(c.Context(), func(fleet state.Fleet) error {
			if a.json {
				return a.print(orEmpty(fleet.Agents))
			}
			table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			for _, g := range fleet.Agents {
				_, asks := fleet.PendingOf(g.ID)
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t+%d −%d\t%s\n", g.ID, g.Name, statusWords(g, asks), g.Provider, g.Engine,
					g.Work.Added, g.Work.Removed, "since "+g.Since.Local().Format("15:04"))
			}
			return table.Flush()
		})
	}}
}

func statusWords(g state.Agent, asks bool) string {
	switch {
	case asks:
		return "asks to push"
	case g.Status == state.Failed && g.Reason != "":
		return "failed: " + plain(g.Reason)
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
		fmt.Fprintf(table, "%s\t%s\n", name, plain(fmt.Sprintf(format, args...)))
	}
	row("name", "%s  (%s)", g.Name, g.ID)
	row("status", "%s since %s", statusWords(g, asks), g.Since.Local().Format("2006-01-02 15:04"))
	row("provider", "%s", g.Provider)
	row("engine", "%s, tier %s, network %s", g.Engine, g.Tier, g.Network)
	row("repo", "%s", g.Repo)
	row("base", "%s@%s of %s", g.Base.Ref, g.Base.Commit.Short(), g.Base.At.Local().Format("2006-01-02 15:04"))
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
		fmt.Fprintf(table, "%s\t%s\t%s\n", plain(f.Name), plain(f.Value), plain(f.Known))
	}
	return table.Flush()
}

func orWord(text, word string) string {
	if text == "" {
		return word
	}
	return text
}

func (a *app) waitCommand() *cobra.Command {
	var until string
	var timeout time.Duration
	c := &cobra.Command{Use: "wait AGENT --until STATUS[,…]", Short: "wait until an agent has a status", Args: exactly(1, "AGENT --until STATUS"), RunE: func(c *cobra.Command, args []string) error {
		wanted := strings.Split(until, ",")
		for _, w := range wanted {
			if !slices.Contains(state.Statuses, state.Status(w)) {
				return usage(fmt.Sprintf("choose from %v", state.Statuses), "there is no status %q", w)
			}
		}
		ctx := c.Context()
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		return a.withAgent(ctx, args[0], func(c *client.Client, _ state.Fleet, g state.Agent) error {
			return a.wait(ctx, c, g.ID, wanted)
		})
	}}
	c.Flags().StringVar(&until, "until", "idle,done,stopped,exited,failed", "statuses, any of them")
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long (exit 3)")
	return c
}

func (a *app) wait(ctx context.Context, c *client.Client, id state.AgentID, wanted []string) error {
	reached := false
	g, err := a.follow(ctx, c, id, func(now state.Agent) bool {
		reached = slices.Contains(wanted, string(now.Status))
		return reached || !now.Status.Live()
	})
	switch {
	case ctx.Err() != nil:
		return exitError{exitWaiting, wire.Errorf("timed-out", "", "it did not become %s in time", strings.Join(wanted, " or "))}
	case err != nil:
		return err
	case !reached:
		return wire.Errorf("never", "", "%s is %s and cannot become %s by itself", g.Name, g.Status, strings.Join(wanted, " or "))
	}
	if a.json {
		return a.print(g)
	}
	_, err = fmt.Fprintln(a.out, g.Status)
	return err
}

func (a *app) stopCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "stop AGENT | --all", Short: "end an agent's program; its work stays", RunE: func(c *cobra.Command, args []string) error {
		if all != (len(args) == 0) || len(args) > 1 {
			return usage("fletch stop AGENT, or fletch stop --all", "name one agent, or --all")
		}
		if !all {
			return a.withAgent(c.Context(), args[0], func(h *client.Client, _ state.Fleet, g state.Agent) error {
				return h.Stop(c.Context(), g.ID)
			})
		}
		return a.stopAll(c.Context())
	}}
	c.Flags().BoolVar(&all, "all", false, "every agent")
	return c
}

func (a *app) stopAll(ctx context.Context) error {
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	fleet, err := c.Fleet(ctx)
	if err != nil {
		return err
	}
	var ends []chan error
	for _, g := range fleet.Agents {
		if !g.Status.Live() {
			continue
		}
		end := make(chan error, 1)
		go func() { end <- c.Stop(ctx, g.ID) }()
		ends = append(ends, end)
	}
	var faults []error
	for _, end := range ends {
		faults = append(faults, <-end)
	}
	return errors.Join(faults...)
}

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{Use: "resume AGENT", Short: "continue a stopped agent in its workspace", Args: exactly(1, "AGENT"), RunE: func(c *cobra.Command, args []string) error {
		return a.withAgent(c.Context(), args[0], func(h *client.Client, _ state.Fleet, g state.Agent) error {
			return h.Resume(c.Context(), g.ID)
		})
	}}
}

func (a *app) rmCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{Use: "rm AGENT", Short: "remove an agent; undo brings it back", Args: exactly(1, "AGENT"), RunE: func(c *cobra.Command, args []string) error {
		return a.withAgent(c.Context(), args[0], func(h *client.Client, _ state.Fleet, g state.Agent) error {
			if err := h.Remove(c.Context(), g.ID, yes); err != nil {
				return err
			}
			if a.json {
				return a.print(g)
			}
			_, err := fmt.Fprintf(a.out, "removed %s; fletch undo brings it back\n", g.Name)
			return err
		})
	}}
	c.Flags().BoolVar(&yes, "yes", false, "stop it first when it runs")
	return c
}

func (a *app) undoCommand() *cobra.Command {
	return &cobra.Command{Use: "undo", Short: "bring back the agent removed last", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		h, _, err := a.connect(c.Context())
		if err != nil {
			return err
		}
		defer h.Close()
		back, err := h.Undo(c.Context())
		if err != nil {
			return err
		}
		if a.json {
			return a.print(back)
		}
		_, err = fmt.Fprintf(a.out, "%s is back, %s\n", back.Name, back.Status)
		return err
	}}
}

func (a *app) hubCommand() *cobra.Command {
	c := &cobra.Command{Use: "hub", Short: "the daemon behind every client"}
	c.AddCommand(&cobra.Command{Use: "status", Short: "show the running hub", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		return a.runningHub(c.Context(), func(h *client.Client) error {
			s, err := h.Status(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.print(s)
			}
			_, err = fmt.Fprintf(a.out, "hub %s, pid %d, %d agents (%d live), %s\n", s.Version, s.PID, s.Agents, s.Live, plain(s.Home))
			return err
		})
	}}, &cobra.Command{Use: "stop", Short: "end the hub; agents go on", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		return a.runningHub(c.Context(), func(h *client.Client) error { return h.StopHub(c.Context()) })
	}})
	return c
}

// runningHub talks to the hub that is there; it starts none.
func (a *app) runningHub(ctx context.Context, use func(*client.Client) error) error {
	h, err := openHome()
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, h, client.Options{NoStart: true, Env: os.Environ()})
	if err != nil {
		return err
	}
	defer c.Close()
	return use(c)
}
