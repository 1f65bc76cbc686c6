package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fletch/sandbox"
	"fletch/state"
)

// sealed is one git, or a fixed script around it, in a one-shot sandbox
// without a network. What is not in mounts does not exist for it.
type sealed struct {
	agent  state.AgentID
	argv   []string
	dir    string // "/" when empty
	env    []string
	mounts []sandbox.Mount
	stdin  io.Reader
	stdout io.Writer
	errs   io.Writer // also gets standard error
	keep   []*os.File
	limit  time.Duration
	file   int64  // largest file it may write; the quota when zero
	what   string // what is being done, for errors: "reading the workspace"
}

// run starts it and waits. Its error says what was being done and quotes the
// end of standard error, made safe.
func (g Git) run(ctx context.Context, s sealed) error {
	if g.Engine == nil {
		return fmt.Errorf("%s: %w", s.what, errNoSandbox)
	}
	limit := s.limit
	if limit == 0 {
		limit = g.patience()
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir := s.dir
	if dir == "" {
		dir = "/"
	}
	file := s.file
	if file == 0 {
		file = g.quota()
	}
	out := s.stdout
	if out == nil {
		out = io.Discard
	}
	errs := &tail{max: 8 << 10}
	var said io.Writer = errs
	if s.errs != nil {
		said = io.MultiWriter(errs, s.errs)
	}
	err := g.Engine.Run(timed, sandbox.Spec{
		Agent: string(s.agent), Store: g.Store, Argv: s.argv, Dir: dir,
		Env:    lastWins(append(g.sealedEnv(), s.env...)),
		Mounts: append(g.system(), s.mounts...),
		Limits: sandbox.Limits{FileBytes: file, CPUSecs: sealedCPU, Memory: sealedMemory},
		Keep:   s.keep,
	}, s.stdin, out, said)
	if err == nil {
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", s.what, ctx.Err())
	case timed.Err() != nil:
		return fault("workspace-hangs", "", "%s: no answer within %s", s.what, limit)
	}
	var exit *sandbox.ExitError
	if errors.As(err, &exit) {
		words := oneLine(errs.String()+" "+exit.Stderr, 400)
		return &failed{fmt.Errorf("%s: git ended with code %d: %s", s.what, exit.Exit.Code, words), exit.Exit.Code}
	}
	return fmt.Errorf("%s: %w", s.what, err)
}

// failed is a sealed program that ran and said no.
type failed struct {
	error
	code int
}

// output runs s and returns at most max bytes of what it printed; more is an
// error, and the program is stopped.
func (g Git) output(ctx context.Context, s sealed, max int64) ([]byte, error) {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &capped{max: max, full: cancel}
	s.stdout = out
	err := g.run(stop, s)
	if out.over {
		return out.buf.Bytes(), fault("too-large", "", "%s: more than %d bytes", s.what, max)
	}
	return out.buf.Bytes(), err
}

// sealedEnv is the whole environment in such a sandbox.
func (g Git) sealedEnv() []string {
	return []string{
		"PATH=" + strings.Join([]string{filepath.Dir(g.Path), "/usr/local/bin", "/usr/bin", "/bin"}, ":"),
		"HOME=/tmp", "LC_ALL=C", "TMPDIR=/tmp",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
		"GIT_PROTOCOL=version=2", "GIT_ALLOW_PROTOCOL=none",
	}
}

// lastWins drops a variable that is set again later: a program reads the
// first.
func lastWins(env []string) []string {
	at := map[string]int{}
	for i, e := range env {
		name, _, _ := strings.Cut(e, "=")
		at[name] = i
	}
	var kept []string
	for i, e := range env {
		if name, _, _ := strings.Cut(e, "="); at[name] == i {
			kept = append(kept, e)
		}
	}
	return kept
}

// system shows git where it is not among the machine's own programs, which
// every engine shows.
func (g Git) system() []sandbox.Mount {
	for _, dir := range []string{"/usr", "/bin", "/nix/store"} {
		if inside(dir, g.Path) {
			return nil
		}
	}
	bin := filepath.Dir(g.Path)
	prefix := filepath.Dir(bin)
	var all []sandbox.Mount
	for _, path := range []string{bin, filepath.Join(prefix, "libexec", "git-core"), filepath.Join(prefix, "share", "git-core")} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			all = append(all, sandbox.Mount{Source: real, Target: path})
		}
	}
	return all
}

// gitOn is the argv of git on a repository of fletch's own inside a sandbox.
func (g Git) gitOn(gitDir string, args ...string) []string {
	argv := []string{
		g.Path, "--no-pager", "--literal-pathspecs", "--git-dir=" + gitDir,
		"-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
		"-c", "core.bigFileThreshold=" + fmt.Sprint(maxShown), "-c", "core.attributesFile=/dev/null", "-c", "gc.auto=0",
		"-c", "core.alternateRefsCommand=true", "-c", "log.showSignature=false", "-c", "core.quotePath=true",
	}
	return append(argv, args...)
}

// gitIn is the argv of git in a workspace inside a sandbox.
func (g Git) gitIn(workspace string, args ...string) []string {
	return append([]string{g.Path, "--no-pager", "-c", "safe.directory=*", "-C", workspace}, args...)
}
