package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fletch/demo"
	"fletch/hub/client"
	"fletch/hub/wire"
)

// The pace of the demo's agents: readable for a person, quick for a script.
const (
	watchPace    = 1500 * time.Millisecond
	headlessPace = 50 * time.Millisecond
)

func (a *app) demoCommand() *cobra.Command {
	var headless bool
	c := &cobra.Command{Use: "demo", Short: "three scripted agents, a git server and a push to decide", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		if headless {
			return a.headlessDemo(c.Context())
		}
		return a.runDashboard(c.Context(), "", true)
	}}
	c.Flags().BoolVar(&headless, "headless", false, "play it without a terminal and print what happened")
	return c
}

// headlessDemo plays the demo and removes its agents afterwards.
func (a *app) headlessDemo(ctx context.Context) error {
	c, h, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	stage, err := demo.Set(ctx, demo.Options{Client: c, Home: h.Dir(), Env: os.Environ(), Pace: headlessPace})
	if err != nil {
		return err
	}
	rows, played := demo.Play(ctx, stage)
	var faults []error
	for _, g := range stage.Agents {
		faults = append(faults, c.Remove(ctx, g.ID, true))
	}
	faults = append(faults, stage.Close())
	if a.json {
		faults = append(faults, a.print(orEmpty(rows)))
	} else {
		faults = append(faults, demo.Write(a.out, rows))
	}
	if played != nil {
		played = wire.Errorf("demo-failed", "fletch log tells what happened", "%v", played)
	}
	return errors.Join(played, errors.Join(faults...))
}

// stageFor starts the demo for a dashboard; it lives as long as ctx.
func stageFor(ctx context.Context, c *client.Client, home string) error {
	stage, err := demo.Set(ctx, demo.Options{Client: c, Home: home, Env: os.Environ(), Pace: watchPace})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = stage.Close() })
	return nil
}
