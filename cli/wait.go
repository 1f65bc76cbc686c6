package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fletch/hub/client"
	"fletch/hub/wire"
	"fletch/state"
)

// errAgentGone says that an agent that is followed is on record no more.
var errAgentGone = errors.New("the agent was removed")

// follow watches one agent until enough says so, and returns it as it was
// then.
func follow(ctx context.Context, c *client.Client, id state.AgentID, enough func(state.Agent) bool) (state.Agent, error) {
	var last state.Agent
	err := c.Until(ctx, func(fleet state.Fleet) (bool, error) {
		now, there := fleet.Agent(id)
		if !there {
			return false, errAgentGone
		}
		last = now
		return enough(now), nil
	})
	return last, err
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
	g, err := follow(ctx, c, id, func(now state.Agent) bool {
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
