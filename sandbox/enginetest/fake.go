// Package enginetest holds what every engine must do, as one suite of tests,
// and a fake engine that passes it. Nothing but tests may import it: the fake
// runs programs without sealing them.
package enginetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"fletch/sandbox"
)

// Fake is an engine for tests. It runs real programs with a real terminal but
// seals nothing: mounts and files are not shown, limits do not hold, and the
// network is the host's. Everything else behaves as the contract says.
type Fake struct {
	mu        sync.Mutex
	boxes     []*fakeBox
	specs     []sandbox.Spec
	leftovers map[string][]sandbox.Leftover // by store
	probe     error
	start     error
}

// New makes a fake on which everything works.
func New() *Fake { return &Fake{leftovers: map[string][]sandbox.Leftover{}} }

// FailProbe makes every later Probe, Start and Run answer err; nil mends it.
func (f *Fake) FailProbe(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probe = err
}

// FailStart makes every later Start and Run answer err without running
// anything; nil mends it.
func (f *Fake) FailStart(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start = err
}

// Leave makes List name a leftover of store.
func (f *Fake) Leave(store string, l sandbox.Leftover) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leftovers[store] = append(f.leftovers[store], l)
}

// Specs is what Start and Run were asked for, in order.
func (f *Fake) Specs() []sandbox.Spec {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.specs)
}

// Boxes is what Start gave out, in order, ended ones too.
func (f *Fake) Boxes() []sandbox.Box {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]sandbox.Box, len(f.boxes))
	for i, b := range f.boxes {
		out[i] = b
	}
	return out
}

// Name is "fake".
func (f *Fake) Name() string { return "fake" }

// Tier is the weakest there is.
func (f *Fake) Tier() sandbox.Tier { return sandbox.TierDirect }

// Claims are all unenforced.
func (f *Fake) Claims() []sandbox.Claim {
	var out []sandbox.Claim
	for _, name := range sandbox.ClaimNames() {
		out = append(out, sandbox.Claim{Name: name, Held: "unenforced", Reason: "the fake engine of tests seals nothing"})
	}
	return out
}

// Probe answers what FailProbe said.
func (f *Fake) Probe(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.probe
}

// Start runs s.Argv on the host with s.Env and s.Dir. s.Bin stands in front of
// its PATH in the place of /run/fletch/bin.
func (f *Fake) Start(ctx context.Context, s sandbox.Spec) (sandbox.Box, error) {
	if err := f.admit(ctx, s, false); err != nil {
		return nil, err
	}
	cmd, err := command(s)
	if err != nil {
		return nil, err
	}
	b := &fakeBox{cmd: cmd, gone: make(chan struct{})}
	if s.Network != sandbox.NetworkNone {
		b.listener, err = net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listening for %s: %w", s.Agent, err)
		}
	}
	if err := b.run(s); err != nil {
		if b.listener != nil {
			b.listener.Close() // nothing was accepted yet
		}
		return nil, fmt.Errorf("starting %s: %w", s.Argv[0], err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.boxes = append(f.boxes, b)
	return b, nil
}

// Run runs s.Argv on the host and waits.
func (f *Fake) Run(ctx context.Context, s sandbox.Spec, stdin io.Reader, stdout, stderr io.Writer) error {
	if err := f.admit(ctx, s, true); err != nil {
		return err
	}
	cmd, err := command(s)
	if err != nil {
		return err
	}
	tail := &sandbox.Tail{}
	if stderr == nil {
		stderr = tail
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = stdin, stdout, stderr, s.Keep
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd, false)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", s.Argv[0], err)
	}
	stop := context.AfterFunc(ctx, func() { killGroup(cmd.Process.Pid) })
	err = cmd.Wait()
	stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if exit := exitOf(cmd, err); exit.Err != nil {
		return exit.Err
	} else if exit.Code != 0 {
		return &sandbox.ExitError{Exit: exit, Stderr: tail.String()}
	}
	return nil
}

// List names what Leave left.
func (f *Fake) List(_ context.Context, store string) ([]sandbox.Leftover, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.leftovers[store]), nil
}

// Remove forgets a leftover.
func (f *Fake) Remove(_ context.Context, l sandbox.Leftover) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for store, all := range f.leftovers {
		f.leftovers[store] = slices.DeleteFunc(all, func(o sandbox.Leftover) bool { return o == l })
	}
	return nil
}

// admit says whether a program may start, and remembers that it was asked.
func (f *Fake) admit(ctx context.Context, s sandbox.Spec, oneShot bool) error {
	if err := s.Check(oneShot); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.specs = append(f.specs, s)
	if f.probe != nil {
		return f.probe
	}
	for _, m := range s.Mounts {
		if _, err := os.Lstat(m.Source); err != nil && !m.Optional {
			return fmt.Errorf("showing %s: %w", m.Source, err)
		}
	}
	return f.start
}

// command finds the program as a sealed one is found: on the PATH of Env.
func command(s sandbox.Spec) (*exec.Cmd, error) {
	env := slices.Clone(s.Env)
	search := ""
	for i, e := range env {
		if rest, ok := strings.CutPrefix(e, "PATH="); ok {
			rest = strings.TrimPrefix(rest, "/run/fletch/bin:")
			if s.Bin != "" {
				rest = s.Bin + ":" + rest
			}
			env[i], search = "PATH="+rest, rest
		}
	}
	program := s.Argv[0]
	if !strings.Contains(program, "/") {
		program = ""
		for _, dir := range filepath.SplitList(search) {
			at := filepath.Join(dir, s.Argv[0])
			if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				program = at
				break
			}
		}
	}
	if program == "" {
		return nil, fmt.Errorf("starting %s: not found on PATH inside", s.Argv[0])
	}
	// #nosec: tests run what they name.
	return &exec.Cmd{Path: program, Args: s.Argv, Env: env, Dir: s.Dir}, nil
}
