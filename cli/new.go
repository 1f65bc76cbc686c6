package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
		fmt.Fprintf(a.out, "%s  %s · %s · from %s@%s, read %s\n", m.Name, m.Provider, m.Engine, cell(m.Base.Ref), m.Base.Commit.Short(), ago(time.Since(m.Base.At)))
		a.baseNotes(m)
	}
	return failed
}

// baseNotes says what an agent starts without.
func (a *app) baseNotes(m state.Agent) {
	if m.Base.Stale != "" {
		fmt.Fprintf(a.err, "note: %s\n", cell(m.Base.Stale))
	}
	if words := notIncluded(m.NotIncluded); words != "" {
		fmt.Fprintf(a.err, "note: %s not included\n", words)
	}
}

// untilUp waits until an agent is past starting, telling slow steps.
func (a *app) untilUp(ctx context.Context, c *client.Client, id state.AgentID) (state.Agent, error) {
	last := ""
	return follow(ctx, c, id, func(now state.Agent) bool {
		if now.Note != "" && now.Note != last && !a.json {
			last = now.Note
			fmt.Fprintf(a.err, "%s: %s\n", now.Name, cell(now.Note))
		}
		return now.Status != state.Starting
	})
}
