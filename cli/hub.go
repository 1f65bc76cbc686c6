package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fletch/hub/client"
)

func (a *app) hubCommand() *cobra.Command {
	c := &cobra.Command{Use: "hub", Short: "the daemon behind every client", RunE: func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage("fletch hub status, or fletch hub stop", "there is no command %q", "hub "+args[0])
		}
		return usage("fletch hub status, or fletch hub stop; every command starts it by itself", "say what to do with the hub")
	}}
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
