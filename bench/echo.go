package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// Keys are typed in rounds of keysInTurn, by turns into fletch and into a bare
// terminal, with a pause between two: somebody typing fast.
const (
	keysInTurn  = 40
	typingPause = 60 * time.Millisecond
	echoPatient = 30 * time.Second
)

// echo measures a key from being typed into a dashboard that is attached to
// an agent until the terminal gets its echo, beside a bare PTY.
func echo(ctx context.Context, w World) (_ []Row, err error) {
	a, err := w.shell(ctx, "echo ready; cat")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx, a)) }()
	attached := exec.CommandContext(ctx, w.Self, "attach", a.Name)
	attached.Env = w.Env
	ours, err := openTyping(attached)
	if err != nil {
		return nil, err
	}
	defer ours.close()
	theirs, err := openTyping(exec.CommandContext(ctx, "sh", "-c", "echo ready; cat"))
	if err != nil {
		return nil, err
	}
	defer theirs.close()
	var left, right []time.Duration
	for range rounds {
		for side, all := range map[*typing]*[]time.Duration{ours: &left, theirs: &right} {
			took, err := side.keys(keysInTurn)
			if err != nil {
				return nil, err
			}
			*all = append(*all, took...)
		}
	}
	return []Row{
		{Value: ms(median(left)), Unit: "ms p50", Yardstick: "bare PTY", YardstickValue: ms(median(right)), Budget: "≤ 3 ms over it"},
		{Name: "echo-p99", Value: ms(percentile(left, 99)), Unit: "ms p99", Yardstick: "bare PTY", YardstickValue: ms(percentile(right, 99)), Budget: "≤ 16 ms over it"},
	}, nil
}

// typing is a program on a terminal of 120×40 that keys are typed to.
type typing struct {
	cmd   *exec.Cmd
	tty   *os.File
	typed int
}

// openTyping starts cmd and waits until it says that it is ready.
func openTyping(cmd *exec.Cmd) (*typing, error) {
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 120, Rows: 40})
	if err != nil {
		return nil, err
	}
	t := &typing{cmd: cmd, tty: tty}
	if err := t.await("ready"); err != nil {
		t.close()
		return nil, fmt.Errorf("waiting for %s: %w", cmd.Args[0], err)
	}
	return t, nil
}

func (t *typing) close() {
	_ = t.tty.Close()
	_ = t.cmd.Process.Kill()
	_ = t.cmd.Wait()
}

// keys types n keys and measures each one's echo.
func (t *typing) keys(n int) ([]time.Duration, error) {
	// Signs that no dashboard draws of its own, each unlike the one before.
	const signs = "%&*+"
	var all []time.Duration
	for range n {
		sign := string(signs[t.typed%len(signs)])
		t.typed++
		time.Sleep(typingPause)
		start := time.Now()
		if _, err := io.WriteString(t.tty, sign); err != nil {
			return nil, err
		}
		if err := t.await(sign); err != nil {
			return nil, fmt.Errorf("waiting for the echo of %q: %w", sign, err)
		}
		all = append(all, time.Since(start))
	}
	return all, nil
}

// await reads until text was among what came, control sequences aside.
func (t *typing) await(text string) error {
	if err := t.tty.SetReadDeadline(time.Now().Add(echoPatient)); err != nil {
		return err
	}
	var seen strings.Builder
	for buf := make([]byte, 64<<10); !strings.Contains(ansi.Strip(seen.String()), text); {
		n, err := t.tty.Read(buf)
		if err != nil {
			return err
		}
		seen.Write(buf[:n])
	}
	return nil
}
