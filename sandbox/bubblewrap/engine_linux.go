package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fletch/sandbox"
)

const engineName = "native"

// Engine is the engine "native". Its methods may be called from many
// goroutines at once.
type Engine struct {
	self string // the fletch executable, which understands "box"

	probing sync.Mutex
	worked  time.Time // when Probe last found that it works

	// For tests of failing starts only.
	testOnlyBwrap   string   // instead of the system's
	testOnlyBoxArgs []string // after box's own
}

// New makes the engine; self is the absolute path of an executable that runs
// [box.Main] for the command "box".
func New(self string) (*Engine, error) {
	if !filepath.IsAbs(self) {
		return nil, fmt.Errorf("setting up the native engine: %q is not an absolute path", self)
	}
	return &Engine{self: self}, nil
}

// Name is "native".
func (e *Engine) Name() string { return engineName }

// Tier is the middle one: the kernel is shared, so the rights of the user
// are confined but not another's.
func (e *Engine) Tier() sandbox.Tier { return sandbox.TierWorktree }

// Start seals a program and runs it. See [sandbox.Engine].
func (e *Engine) Start(ctx context.Context, s sandbox.Spec) (sandbox.Box, error) {
	if err := s.Check(false); err != nil {
		return nil, err
	}
	r, err := e.launch(ctx, s, streams{})
	if err != nil {
		return nil, startError(s, err)
	}
	return r, nil
}

// Run seals a program, runs it and waits. See [sandbox.Engine].
func (e *Engine) Run(ctx context.Context, s sandbox.Spec, stdin io.Reader, stdout, stderr io.Writer) error {
	if err := s.Check(true); err != nil {
		return err
	}
	tail := &sandbox.Tail{}
	if stderr == nil {
		stderr = tail
	}
	r, err := e.launch(ctx, s, streams{stdin: stdin, stdout: stdout, stderr: stderr})
	if err != nil {
		return startError(s, err)
	}
	stop := context.AfterFunc(ctx, r.kill)
	exit := r.Wait()
	stop()
	if err := r.Remove(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if exit.Err != nil {
		return fmt.Errorf("running %s: %w", s.Argv[0], exit.Err)
	}
	if exit.Code != 0 {
		return &sandbox.ExitError{Exit: exit, Stderr: tail.String()}
	}
	return nil
}

// startError says what was being started. A refusal is kept as it is: it is
// about this machine, not about the program.
func startError(s sandbox.Spec, err error) error {
	var refusal *sandbox.Refusal
	if errors.As(err, &refusal) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var step *stepError
	if errors.As(err, &step) && strings.HasPrefix(step.report.Cause, s.Argv[0]+": ") {
		return fmt.Errorf("starting %w", err) // it names the program already
	}
	return fmt.Errorf("starting %s: %w", s.Argv[0], err)
}

// List names the control groups of store whose starter is gone.
func (e *Engine) List(_ context.Context, store string) ([]sandbox.Leftover, error) {
	return leftovers(store)
}

// Remove ends what still runs in such a group and takes it away.
func (e *Engine) Remove(ctx context.Context, l sandbox.Leftover) error {
	return removeLeftover(ctx, l)
}

// find is the path of bwrap. The system's own comes first: AppArmor's profile
// for it is tied to that path.
func (e *Engine) find() (string, error) {
	if e.testOnlyBwrap != "" {
		return e.testOnlyBwrap, existing(e.testOnlyBwrap)
	}
	if existing("/usr/bin/bwrap") == nil {
		return "/usr/bin/bwrap", nil
	}
	path, err := exec.LookPath("bwrap")
	if err != nil || !filepath.IsAbs(path) {
		return "", missing()
	}
	return path, nil
}

func existing(path string) error {
	if _, err := os.Stat(path); err != nil {
		return missing()
	}
	return nil
}

func missing() error {
	return &sandbox.Refusal{Engine: engineName, Cause: "bubblewrap is missing", Fix: "apt-get install bubblewrap"}
}
