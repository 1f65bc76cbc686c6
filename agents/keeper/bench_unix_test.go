//go:build unix

package keeper

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"fletch/agents/attach"
)

// How long a key takes until its echo is in a frame, beside a bare terminal
// with the same program.
func BenchmarkEcho(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		cmd := exec.Command("cat")
		near, far, err := pty.Open()
		if err != nil {
			b.Fatal(err)
		}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		_ = far.Close()
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = near.Close() }()
		buf := make([]byte, 100)
		measure(b, func() error {
			if _, err := near.Write([]byte("x")); err != nil {
				return err
			}
			_, err := near.Read(buf)
			return err
		})
	})
	b.Run("kept", func(b *testing.B) {
		w := prepare(b, "exec cat")
		w.run()
		c := w.dial(attach.RoleViewer)
		measure(b, func() error {
			if err := c.Input([]byte("x")); err != nil {
				return err
			}
			for {
				m, err := c.Next(b.Context())
				if err != nil {
					return err
				}
				if f, ok := m.(attach.FrameMsg); ok && len(f.Changed) > 0 && !f.Whole {
					return nil
				}
			}
		})
	})
}

// measure runs f with pauses between, as a person types, and reports how long
// it took.
func measure(b *testing.B, f func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		time.Sleep(40 * time.Millisecond)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(0, "ns/op")
}

// How fast output passes a keeper with one viewer.
func BenchmarkOutput(b *testing.B) {
	const size = 4 << 20
	for b.Loop() {
		w := prepare(b, "head -c 4194304 /dev/zero | tr '\\0' 'x' | fold -w 79")
		w.run()
		w.dial(attach.RoleViewer)
		if e := w.exit(); e.Code != 0 {
			b.Fatalf("exit = %+v", e)
		}
		_ = os.Remove(w.path("transcript"))
	}
	b.SetBytes(size)
}
