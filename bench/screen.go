package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/creack/pty"

	"fletch/state"
)

// storedAgents is how many agents the dashboard's first frame is measured
// with.
const storedAgents = 100

// onTerminal starts a program on a terminal of 120×40.
func onTerminal(cmd *exec.Cmd) (*os.File, error) {
	return pty.StartWithSize(cmd, &pty.Winsize{Cols: 120, Rows: 40})
}

// untilShown starts a program on a terminal and measures until text is among
// what it wrote.
func untilShown(cmd *exec.Cmd, text string) (time.Duration, error) {
	start := time.Now()
	tty, err := onTerminal(cmd)
	if err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	defer func() { _ = tty.Close() }()
	if err := tty.SetReadDeadline(start.Add(30 * time.Second)); err != nil {
		return 0, err
	}
	var seen bytes.Buffer
	buf := make([]byte, 64<<10)
	for !bytes.Contains(seen.Bytes(), []byte(text)) {
		n, err := tty.Read(buf)
		if err != nil {
			return 0, fmt.Errorf("waiting for %q: %w", text, err)
		}
		seen.Write(buf[:n])
	}
	return time.Since(start), nil
}

// firstFrame measures fletch with many agents on record until the first of
// them is on the screen, beside tmux attaching to a session.
func firstFrame(ctx context.Context, w World) (_ []Row, err error) {
	made, err := w.fill(ctx)
	defer func() { err = errors.Join(err, w.remove(ctx, made...)) }()
	if err != nil {
		return nil, err
	}
	socket := "fletch-bench-" + strconv.Itoa(os.Getpid())
	tmux := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "tmux", append([]string{"-L", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = w.Env
		return cmd
	}
	if out, err := tmux("new-session", "-d", "-x", "120", "-y", "40", "printf here; cat").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("starting tmux: %w: %s", err, out)
	}
	defer func() { _ = tmux("kill-server").Run() }()
	a, b, err := alternate(
		func() (time.Duration, error) {
			cmd := exec.CommandContext(ctx, w.Self)
			cmd.Env = w.Env
			return untilShown(cmd, made[0].Name)
		},
		func() (time.Duration, error) { return untilShown(tmux("attach"), "here") },
	)
	return []Row{{Value: a, Unit: "ms", Yardstick: "tmux attach", YardstickValue: b, Budget: "≤ 100 ms, ≤ 2 ×"}}, err
}

// fill puts agents on record that have ended.
func (w World) fill(ctx context.Context) ([]state.Agent, error) {
	repo, err := w.repository(ctx, 10)
	if err != nil {
		return nil, err
	}
	var all []state.Agent
	for len(all) < storedAgents {
		made, err := w.Client.Launch(ctx, state.Launch{Repo: repo, Provider: "shell", Command: []string{"true"}, Copies: 5, Env: w.Env})
		if err != nil {
			return all, err
		}
		all = append(all, made...)
		if err := w.ended(ctx, made); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (w World) ended(ctx context.Context, some []state.Agent) error {
	return w.Client.Until(ctx, func(fleet state.Fleet) (bool, error) {
		for _, a := range some {
			if now, _ := fleet.Agent(a.ID); now.Status.Live() {
				return false, nil
			}
		}
		return true, nil
	})
}
