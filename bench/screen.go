package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/creack/pty"

	"fletch/agents/term"
	"fletch/state"
)

// storedAgents is how many agents the dashboard's first frame is measured
// with, idleAgents how many an idle fleet has.
const (
	storedAgents = 100
	idleAgents   = 20
	idleTime     = 20 * time.Second
)

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
func firstFrame(ctx context.Context, w World) (Row, error) {
	made, err := w.fill(ctx)
	if err != nil {
		return Row{}, err
	}
	defer func() {
		for _, a := range made {
			_ = w.Client.Remove(ctx, a.ID, true)
		}
	}()
	socket := "fletch-bench-" + strconv.Itoa(os.Getpid())
	tmux := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "tmux", append([]string{"-L", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = w.Env
		return cmd
	}
	if out, err := tmux("new-session", "-d", "-x", "120", "-y", "40", "printf here; cat").CombinedOutput(); err != nil {
		return Row{}, fmt.Errorf("starting tmux: %w: %s", err, out)
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
	return Row{Value: a, Unit: "ms", Yardstick: "tmux attach", YardstickValue: b, Budget: "≤ 100 ms, ≤ 2 ×"}, err
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fleet, events, err := w.Client.Watch(ctx)
	if err != nil {
		return err
	}
	for {
		live := false
		for _, a := range some {
			now, _ := fleet.Agent(a.ID)
			live = live || now.Status.Live()
		}
		if !live {
			return nil
		}
		e, ok := <-events
		if !ok {
			return errors.New("the hub ended")
		}
		fleet = fleet.Apply(e)
	}
}

// idle measures what a fleet costs in which nothing happens, with a dashboard
// open: CPU of all of fletch. Processes started meanwhile and bytes sent to
// the terminal must be none; more is an error.
func idle(ctx context.Context, w World) (Row, error) {
	var made []state.Agent
	defer func() {
		for _, a := range made {
			_ = w.Client.Remove(ctx, a.ID, true)
		}
	}()
	for range idleAgents {
		a, err := w.shell(ctx, "cat")
		if err != nil {
			return Row{}, err
		}
		made = append(made, a)
	}
	cmd := exec.CommandContext(ctx, w.Self)
	cmd.Env = w.Env
	tty, err := onTerminal(cmd)
	if err != nil {
		return Row{}, err
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	count := make(chan int, 1024)
	go func() {
		defer close(count)
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			if err != nil {
				return
			}
			count <- n
		}
	}()
	defer func() { _ = tty.Close() }()
	drain(count, 8*time.Second) // the first frames, and the work being measured
	before, err := cpuOf(w.Self)
	if err != nil {
		return Row{}, err
	}
	bytesSent := drain(count, idleTime)
	after, err := cpuOf(w.Self)
	if err != nil {
		return Row{}, err
	}
	percent := 100 * (after - before).Seconds() / idleTime.Seconds()
	if bytesSent > 0 {
		return Row{}, fmt.Errorf("an idle dashboard sent %d bytes", bytesSent)
	}
	return Row{Value: percent, Unit: "% of one core", Budget: "< 1 %, 0 bytes"}, nil
}

// drain sums what comes within d.
func drain(count <-chan int, d time.Duration) int {
	sum := 0
	end := time.After(d)
	for {
		select {
		case n := <-count:
			sum += n
		case <-end:
			return sum
		}
	}
}

// cpuOf sums the CPU time of every process of this very program.
func cpuOf(self string) (time.Duration, error) {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	var ticks int64
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		if !bytes.HasPrefix(raw, []byte(self+"\x00")) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(name), "stat"))
		if err != nil {
			continue // it ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, f := range fields[11:13] { // utime and stime, proc(5)
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return 0, err
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil // USER_HZ is 100 on Linux
}

// terminal measures how many megabytes of plain log lines the emulator takes
// in a second, beside a tmux server on the same bytes.
func terminal(ctx context.Context, w World) (Row, error) {
	const size = 4 << 20
	log := logLines(size)
	ours := func() (time.Duration, error) {
		t := term.New(120, 40, 2000)
		defer func() { _ = t.Close() }()
		return timed(func() error {
			for part := log; len(part) > 0; {
				n := min(len(part), 32<<10)
				if _, err := t.Write(part[:n]); err != nil {
					return err
				}
				part = part[n:]
			}
			return nil
		})
	}
	file := filepath.Join(w.Dir, "log")
	if err := os.WriteFile(file, log, 0o600); err != nil {
		return Row{}, err
	}
	a, b, err := alternate(ours, func() (time.Duration, error) { return tmuxCPU(ctx, w, file) })
	if err != nil {
		return Row{}, err
	}
	rate := func(ms float64) float64 { return size / 1e6 / (ms / 1000) }
	return Row{Value: rate(a), Unit: "MB/s", Yardstick: "tmux server, per CPU-second", YardstickValue: rate(b), Budget: "≥ 2 ×"}, nil
}

// tmuxCPU is the CPU time a tmux server takes for a file.
func tmuxCPU(ctx context.Context, w World, file string) (time.Duration, error) {
	socket := "fletch-bench-t" + strconv.Itoa(os.Getpid())
	cmd := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, "tmux", append([]string{"-L", socket, "-f", "/dev/null"}, args...)...)
		c.Env = w.Env
		return c
	}
	defer func() { _ = cmd("kill-server").Run() }()
	start := "tmux wait-for go; cat " + file + "; tmux wait-for -S end; cat"
	if out, err := cmd("new-session", "-d", "-x", "120", "-y", "40", start).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("starting tmux: %w: %s", err, out)
	}
	out, err := cmd("display-message", "-p", "#{pid}").Output()
	if err != nil {
		return 0, err
	}
	pid := strings.TrimSpace(string(out))
	before, err := processCPU(pid)
	if err != nil {
		return 0, err
	}
	if err := cmd("wait-for", "-S", "go").Run(); err != nil {
		return 0, err
	}
	if err := cmd("wait-for", "end").Run(); err != nil {
		return 0, err
	}
	after, err := processCPU(pid)
	return after - before, err
}

func processCPU(pid string) (time.Duration, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// logLines makes plain log output of about size bytes.
func logLines(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var out bytes.Buffer
	for i := 0; out.Len() < size; i++ {
		_, _ = fmt.Fprintf(&out, "2026-12-01T12:%02d:%02d.%03dZ info  request %d took %d ms on worker %d\r\n", i/60%60, i%60, i%1000, i, random.IntN(900), random.IntN(16))
	}
	return out.Bytes()
}
