package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"fletch/agents/attach"
	"fletch/home"
	"fletch/hub/client"
	"fletch/hub/wire"
	"fletch/profile"
	"fletch/state"
	"fletch/tui"
)

// dashboard is fletch without a command.
func (a *app) dashboard(c *cobra.Command, _ []string) error {
	return a.runDashboard(c.Context(), "", false)
}

// runDashboard shows the dashboard until the person leaves: with an agent,
// only that one's screen, typed to at once; with play, the demo starts first.
func (a *app) runDashboard(ctx context.Context, agent state.AgentID, play bool) error {
	if !isTerminal(a.in) || !isTerminal(a.out) {
		return exitError{exitUsage, wire.Errorf("no-terminal", "fletch ls, fletch requests, fletch allow; fletch demo --headless", "a dashboard needs a terminal")}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, h, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	settings, err := profile.Read(h.Config())
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding where you are: %w", err)
	}
	if play {
		if err := stageFor(ctx, c, h.Dir()); err != nil {
			return err
		}
	}
	user, _ := os.UserHomeDir() // without one, paths are shown whole
	return tui.Run(ctx, tui.Options{
		Hub: c, Screens: screens{h}, Agent: agent, Dir: dir, Home: user, State: tilde(h.Dir(), user), Version: version(),
		Demo:      func(context.Context) error { return stageFor(ctx, c, h.Dir()) },
		StatePath: filepath.Join(h.Dir(), "dashboard.json"),
		Open:      tui.OpenRequests(settings.Requests.Open),
		In:        a.in, Out: a.out,
	})
}

func tilde(path, user string) string {
	if rest, ok := strings.CutPrefix(path, user+"/"); ok && user != "" {
		return "~/" + rest
	}
	return path
}

// screens opens agents' terminals at their keepers.
type screens struct{ home home.Home }

// Open connects to a live agent's keeper; of one that ended it shows the last
// frame.
func (s screens) Open(ctx context.Context, id state.AgentID) (tui.Screen, error) {
	conn, err := attach.Dial(ctx, s.home.KeeperSocket(string(id)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleViewer})
	if err == nil {
		return conn, nil
	}
	frame, last := attach.ReadFrame(filepath.Join(s.home.Run(string(id)), "last.frame"))
	if last != nil {
		return nil, err
	}
	return &still{frame: attach.FrameMsg{Frame: frame}, over: make(chan struct{})}, nil
}

// still is the last screen of an agent that ended.
type still struct {
	frame attach.FrameMsg
	shown bool
	over  chan struct{}
}

var errEnded = errors.New("the agent has ended")

// Next gives the frame once, and then waits until nobody looks any more.
func (s *still) Next(ctx context.Context) (attach.Message, error) {
	if !s.shown {
		s.shown = true
		return s.frame, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.over:
		return nil, errEnded
	}
}

func (s *still) Input([]byte) error        { return errEnded }
func (s *still) Paste(string) error        { return errEnded }
func (s *still) Resize(int, int) error     { return nil }
func (s *still) AskHistory(int, int) error { return nil }

func (s *still) Close() error {
	close(s.over)
	return nil
}

func (a *app) attachCommand() *cobra.Command {
	return &cobra.Command{Use: "attach AGENT", Short: "type to one agent, full screen; ctrl+] comes back", Args: exactly(1, "AGENT"), RunE: func(c *cobra.Command, args []string) error {
		if !isTerminal(a.in) || !isTerminal(a.out) {
			return exitError{exitUsage, wire.Errorf("no-terminal", "fletch logs --screen "+args[0]+", fletch send "+args[0], "attaching needs a terminal")}
		}
		return a.withAgent(c.Context(), args[0], func(_ *client.Client, _ state.Fleet, g state.Agent) error {
			if !g.Status.Live() {
				return wire.Errorf("not-running", "fletch resume "+g.Name, "%s is %s", g.Name, g.Status)
			}
			return a.runDashboard(c.Context(), g.ID, false)
		})
	}}
}
