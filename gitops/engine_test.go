package gitops

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"fletch/sandbox"
)

// bare is the smallest engine that really seals: bubblewrap with nothing in
// view but what a Spec says. The tests of this package need walls, not the
// whole of an engine.
type bare struct{ bwrap string }

func sealer(t testing.TB) sandbox.Engine {
	t.Helper()
	path, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("SKIPPED: bubblewrap is not installed")
	}
	return bare{path}
}

func (b bare) Run(ctx context.Context, s sandbox.Spec, stdin io.Reader, stdout, stderr io.Writer) error {
	if s.Terminal != nil || s.Network != sandbox.NetworkNone {
		return errors.New("a one-shot has neither terminal nor network")
	}
	argv := []string{"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"}
	for _, m := range s.Mounts {
		target, how := m.Target, "--ro-bind"
		if target == "" {
			target = m.Source
		}
		if m.Write {
			how = "--bind"
		}
		argv = append(argv, how, m.Source, target)
	}
	argv = append(append(argv, "--chdir", s.Dir, "--"), s.Argv...)
	cmd := exec.CommandContext(ctx, b.bwrap, argv...)
	cmd.Env, cmd.Dir = s.Env, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.ExtraFiles = s.Keep
	ownGroup(cmd)
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &sandbox.ExitError{Exit: sandbox.Exit{Code: exit.ExitCode()}}
	}
	return err
}

func (bare) Name() string                { return "bare" }
func (bare) Tier() sandbox.Tier          { return sandbox.TierWorktree }
func (bare) Claims() []sandbox.Claim     { return nil }
func (bare) Probe(context.Context) error { return nil }

func (bare) Start(context.Context, sandbox.Spec) (sandbox.Box, error) {
	return nil, errors.New("only one-shots")
}

func (bare) List(context.Context, string) ([]sandbox.Leftover, error) { return nil, nil }
func (bare) Remove(context.Context, sandbox.Leftover) error           { return nil }

// TestMain is fletch for the git that is under test: it is called back as
// upload-pack and as credential helper.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "internal" {
		switch os.Args[2] {
		case "upload-pack":
			os.Exit(UploadPack(os.Args[3:]))
		case "credential":
			os.Exit(Credential(os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

// inSandbox runs a script the way an agent would: in its workspace, sealed.
func (f *fixture) inSandbox(script string, extra ...sandbox.Mount) string {
	f.t.Helper()
	var out, errs bytes.Buffer
	err := f.git.Engine.Run(f.t.Context(), sandbox.Spec{
		Argv: []string{"/bin/sh", "-ec", script}, Dir: f.agent.Workspace,
		Env: append(f.git.sealedEnv(),
			"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z"),
		Mounts: append(append(f.git.system(), sandbox.Mount{Source: f.agent.Workspace, Write: true}), append(f.git.Borrowed(f.agent), extra...)...),
	}, nil, &out, &errs)
	if err != nil {
		f.t.Fatalf("in the workspace: %v: %s", err, errs.String())
	}
	return string(bytes.TrimSpace(out.Bytes()))
}
