package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fletch/hub/client"
	"fletch/state"
)

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
