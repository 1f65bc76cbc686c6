package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fletch/hub/client"
	"fletch/state"
)

func (a *app) logCommand() *cobra.Command {
	var verify, head, follow bool
	var agent string
	c := &cobra.Command{Use: "log", Short: "everything that happened", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		h, _, err := a.connect(c.Context())
		if err != nil {
			return err
		}
		defer h.Close()
		id, err := eventsOf(c.Context(), h, agent)
		if err != nil {
			return err
		}
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
			return a.followLog(c.Context(), h, id)
		}
		_, err = a.printLog(c.Context(), h, 0, id)
		return err
	}}
	c.Flags().BoolVar(&verify, "verify", false, "check the whole hash chain, then print its head")
	c.Flags().BoolVar(&head, "head", false, "print the newest event's number and hash")
	c.Flags().BoolVar(&follow, "follow", false, "go on printing")
	c.Flags().StringVar(&agent, "agent", "", "only this agent's events; of a removed one by its id")
	return c
}

// eventsOf finds the id of the agent whose events are wanted; one that was
// removed has its events still, and only its id.
func eventsOf(ctx context.Context, h *client.Client, word string) (state.AgentID, error) {
	if word == "" {
		return "", nil
	}
	fleet, err := h.Fleet(ctx)
	if err != nil {
		return "", err
	}
	if g, ok := fleet.Named(word); ok {
		return g.ID, nil
	}
	return state.AgentID(word), nil
}

// printLog prints every event after a sequence number and returns the last
// one's.
func (a *app) printLog(ctx context.Context, h *client.Client, after uint64, agent state.AgentID) (uint64, error) {
	for {
		events, err := h.Events(ctx, after, agent, 0)
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

// followLog prints what is on record, and then whatever comes on top, once
// each.
func (a *app) followLog(ctx context.Context, h *client.Client, agent state.AgentID) error {
	var printed uint64
	return h.Until(ctx, func(fleet state.Fleet) (done bool, err error) {
		if fleet.Seq > printed {
			printed, err = a.printLog(ctx, h, printed, agent)
			printed = max(printed, fleet.Seq)
		}
		return false, err
	})
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
