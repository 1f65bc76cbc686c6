package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fletch/agents/term"
)

// terminal measures how many megabytes of plain log lines the emulator takes
// in a second of CPU time, beside a tmux server on the same bytes. The system
// counts in hundredths of a second, so there are enough of them.
func terminal(ctx context.Context, w World) ([]Row, error) {
	const size = 8 << 20
	log := logLines(size)
	ours := func() (time.Duration, error) {
		t := term.New(120, 40, 2000)
		defer func() { _ = t.Close() }()
		return spent("self", func() error {
			for part := range slices.Chunk(log, 32<<10) {
				if _, err := t.Write(part); err != nil {
					return err
				}
			}
			return nil
		})
	}
	file := filepath.Join(w.Dir, "log")
	if err := os.WriteFile(file, log, 0o600); err != nil {
		return nil, err
	}
	a, b, err := alternate(ours, func() (time.Duration, error) { return tmuxCPU(ctx, w, file) })
	if err != nil {
		return nil, err
	}
	rate := func(ms float64) float64 { return size / 1e6 / (ms / 1000) }
	return []Row{{Value: rate(a), Unit: "MB per CPU-second", Yardstick: "tmux server", YardstickValue: rate(b), Budget: "≥ 2 ×"}}, nil
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
	return spent(pid, func() error {
		if err := cmd("wait-for", "-S", "go").Run(); err != nil {
			return err
		}
		return cmd("wait-for", "end").Run()
	})
}

// spent is the CPU time that a process, by its name in /proc, takes while f
// runs.
func spent(process string, f func() error) (time.Duration, error) {
	before, err := readStat(process)
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := readStat(process)
	return after.cpu - before.cpu, err
}

// logLines makes plain log output of about size bytes.
func logLines(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same lines every time
	var out bytes.Buffer
	for i := 0; out.Len() < size; i++ {
		_, _ = fmt.Fprintf(&out, "2026-12-01T12:%02d:%02d.%03dZ info  request %d took %d ms on worker %d\r\n", i/60%60, i%60, i%1000, i, random.IntN(900), random.IntN(16))
	}
	return out.Bytes()
}
