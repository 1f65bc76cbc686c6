package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"fletch/sandbox"
)

func (b bench) missing() {
	s := b.spec("")
	s.Argv = []string{"no-such-program"}
	box, err := b.engine.Start(b.context(), s)
	if err == nil {
		_ = box.Remove()
		b.t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "no-such-program: not found on PATH inside") {
		b.t.Errorf("the error is %q", err)
	}
}

func (b bench) source() {
	s := b.spec("echo ran >canary")
	gone := filepath.Join(b.t.TempDir(), "gone")
	s.Mounts = append(s.Mounts, sandbox.Mount{Source: gone, Optional: true})
	if exit := b.start(s).ends(); exit.Code != 0 {
		b.t.Fatalf("an optional source that is missing: %+v", exit)
	}
	if err := os.Remove(filepath.Join(s.Dir, "canary")); err != nil {
		b.t.Fatal(err)
	}
	s.Mounts = append(s.Mounts, sandbox.Mount{Source: gone})
	b.refuses("a missing source", s)
	if _, err := os.Lstat(gone); err == nil {
		b.t.Error("the missing source was made")
	}
}

func (b bench) nonsense() {
	for name, spoil := range map[string]func(*sandbox.Spec){
		"no program":         func(s *sandbox.Spec) { s.Argv = nil },
		"a relative mount":   func(s *sandbox.Spec) { s.Mounts = append(s.Mounts, sandbox.Mount{Source: "x"}) },
		"a mount with dots":  func(s *sandbox.Spec) { s.Mounts[0].Target = s.Dir + "/../x" },
		"a relative folder":  func(s *sandbox.Spec) { s.Dir = "." },
		"a label with slash": func(s *sandbox.Spec) { s.Agent = "../x" },
		"no store":           func(s *sandbox.Spec) { s.Store = "" },
		"no value":           func(s *sandbox.Spec) { s.Env = append(s.Env, "NAME") },
		"unknown network":    func(s *sandbox.Spec) { s.Network = "host" },
		"limits below zero":  func(s *sandbox.Spec) { s.Limits.PIDs = -1 },
		"kept files":         func(s *sandbox.Spec) { s.Keep = []*os.File{os.Stdin} },
	} {
		s := b.spec("echo ran >canary")
		canary := filepath.Join(s.Dir, "canary")
		spoil(&s)
		b.refuses(name, s)
		if _, err := os.Stat(canary); err == nil {
			b.t.Errorf("%s: the program ran", name)
		}
	}
}

// refuses wants Start to fail and the canary not to exist.
func (b bench) refuses(name string, s sandbox.Spec) {
	b.t.Helper()
	box, err := b.engine.Start(b.context(), s)
	if err == nil {
		_ = box.Remove()
		b.t.Errorf("%s: it started", name)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "canary")); err == nil {
		b.t.Errorf("%s: the program ran", name)
	}
}

func (b bench) late() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := b.spec("echo ran >canary")
	if box, err := b.engine.Start(ctx, s); err == nil {
		_ = box.Remove()
		b.t.Error("it started")
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "canary")); err == nil {
		b.t.Error("the program ran")
	}
}

func (b bench) outlives() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	box, err := b.engine.Start(ctx, b.spec("read line; exit 4"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = box.Remove() }()
	cancel()
	if _, err := box.Attach().WriteString("\n"); err != nil {
		b.t.Fatal(err)
	}
	if exit := box.Wait(); exit.Code != 4 {
		b.t.Errorf("ended with %+v", exit)
	}
}

func (b bench) listener() {
	if box := b.start(b.spec("read line")); box.Listener() != nil {
		b.t.Error("there is a listener without a network")
	}
	for _, network := range []sandbox.Network{sandbox.NetworkProxy, sandbox.NetworkOpen} {
		s := b.spec("read line")
		s.Network = network
		box := b.start(s)
		if box.Listener() == nil {
			b.t.Fatalf("there is no listener with the network %q", network)
		}
		if err := box.Remove(); err != nil {
			b.t.Fatal(err)
		}
		if _, err := box.Listener().Accept(); !errors.Is(err, net.ErrClosed) {
			b.t.Errorf("accepting after Remove: %v", err)
		}
	}
}

func (b bench) run() {
	var out, words bytes.Buffer
	in := strings.Repeat("all of this comes back\n", 20_000)
	s := b.oneShot("echo aside >&2; cat")
	if err := b.engine.Run(b.context(), s, strings.NewReader(in), &out, &words); err != nil {
		b.t.Fatal(err)
	}
	if out.String() != in {
		b.t.Errorf("%d bytes came back of %d", out.Len(), len(in))
	}
	if words.String() != "aside\n" {
		b.t.Errorf("aside it said %q", words.String())
	}
}

func (b bench) runFails() {
	err := b.engine.Run(b.context(), b.oneShot("echo that went wrong >&2; exit 9"), nil, io.Discard, nil)
	var exit *sandbox.ExitError
	if !errors.As(err, &exit) || exit.Exit.Code != 9 {
		b.t.Fatalf("Run says %v", err)
	}
	if !strings.Contains(exit.Stderr, "that went wrong") {
		b.t.Errorf("its last words are %q", exit.Stderr)
	}
	if err := b.engine.Run(b.context(), b.oneShot("kill -KILL $$"), nil, nil, nil); !errors.As(err, &exit) || exit.Exit.Code != 137 {
		b.t.Errorf("Run says %v", err)
	}
}

func (b bench) runCancelled() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	defer read.Close()
	done := make(chan error, 1)
	go func() {
		done <- b.engine.Run(ctx, b.oneShot("echo ready; trap '' TERM INT; while :; do sleep 1; done"), nil, write, nil)
	}()
	ready := make([]byte, 5)
	if _, err := io.ReadFull(read, ready); err != nil {
		b.t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		b.t.Errorf("Run says %v", err)
	}
	write.Close()
	// The program held the other end: it is gone when nothing more can come.
	if rest, err := io.ReadAll(read); err != nil || len(rest) > 1 {
		b.t.Errorf("after the end there is %q, %v", rest, err)
	}
}

func (b bench) keeps() {
	dir := b.t.TempDir()
	var kept []*os.File
	for _, word := range []string{"three", "four"} {
		name := filepath.Join(dir, word)
		if err := os.WriteFile(name, []byte(word), 0o600); err != nil {
			b.t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			b.t.Fatal(err)
		}
		defer f.Close()
		kept = append(kept, f)
	}
	s := b.oneShot("cat <&3; cat <&4; for n in 5 6 7 8 9; do eval \"true <&$n\" 2>/dev/null && echo open:$n; done; exit 0")
	s.Keep = kept
	var out bytes.Buffer
	if err := b.engine.Run(b.context(), s, nil, &out, nil); err != nil {
		b.t.Fatal(err)
	}
	if out.String() != "threefour" {
		b.t.Errorf("through the kept files came %q", out.String())
	}
}

func (b bench) runSealed() {
	for name, spoil := range map[string]func(*sandbox.Spec){
		"a terminal": func(s *sandbox.Spec) { s.Terminal = &sandbox.Size{Cols: 80, Rows: 24} },
		"a network":  func(s *sandbox.Spec) { s.Network = sandbox.NetworkProxy },
	} {
		s := b.oneShot("echo ran >canary")
		spoil(&s)
		if err := b.engine.Run(b.context(), s, nil, nil, nil); err == nil {
			b.t.Errorf("with %s it ran", name)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "canary")); err == nil {
			b.t.Errorf("with %s the program ran", name)
		}
	}
}

func (b bench) many() {
	const n = 20
	var all sync.WaitGroup
	ctx := b.context()
	for i := range n {
		s := b.oneShot(fmt.Sprintf("echo %d", i))
		all.Go(func() {
			var out bytes.Buffer
			if err := b.engine.Run(ctx, s, nil, &out, nil); err != nil {
				b.t.Errorf("start %d: %v", i, err)
			} else if strings.TrimSpace(out.String()) != fmt.Sprint(i) {
				b.t.Errorf("start %d said %q", i, out.String())
			}
		})
	}
	all.Wait()
}

func (b bench) leftovers() {
	s := b.spec("echo ready; read line")
	box := b.start(s)
	box.says("ready")
	if err := box.Remove(); err != nil {
		b.t.Fatal(err)
	}
	left, err := b.engine.List(b.context(), s.Store)
	if err != nil || len(left) > 0 {
		b.t.Errorf("List says %v, %v", left, err)
	}
}
