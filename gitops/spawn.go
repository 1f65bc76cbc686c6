package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// host is one git process outside any sandbox. It may read the user's
// repository, the pool and the quarantine; never a workspace.
type host struct {
	args   []string // after the fixed options
	gitDir string   // --git-dir; empty for commands that need no repository
	dir    string   // -C; only for the user's repository
	user   []string // the user's environment, when their configuration counts
	env    []string // more variables, on top
	config [][2]string
	stdin  io.Reader
	max    int64 // bytes of output; 1 MiB when zero
	limit  time.Duration
	// both gets standard output and standard error as the process ends, for
	// callers that read a failure's words.
	errs *bytes.Buffer
}

// neutral is a directory that is nobody's repository, so that git discovers
// nothing by where it was started.
const neutral = "/"

// fixed are the options every git on the host gets. The directory of hooks
// does not exist, so there are none.
func fixed() []string {
	return []string{
		"--no-pager", "--no-replace-objects", "--literal-pathspecs",
		"-c", "core.hooksPath=/dev/null",
		"-c", "core.fsmonitor=false",
		"-c", "core.pager=cat",
		"-c", "core.alternateRefsCommand=true",
		"-c", "core.askPass=",
		"-c", "gc.auto=0",
		"-c", "maintenance.auto=false",
		"-c", "submodule.recurse=false",
		"-c", "protocol.ext.allow=never",
		"-c", "log.showSignature=false",
		"-c", "advice.detachedHead=false",
	}
}

// read runs git on the host and returns what it printed. This is the one
// place where git is started outside a sandbox: an absolute path, a composed
// environment, a neutral directory, bounded output, bounded time, and a
// process group that is killed as a whole.
func (g Git) read(ctx context.Context, h host) ([]byte, error) {
	if !filepath.IsAbs(g.Path) {
		return nil, errors.New("no path to git is set")
	}
	limit := h.limit
	if limit == 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	argv := fixed()
	for _, kv := range h.config {
		argv = append(argv, "-c", kv[0]+"="+kv[1])
	}
	if h.dir != "" {
		argv = append(argv, "-C", h.dir)
	}
	if h.gitDir != "" {
		argv = append(argv, "--git-dir="+h.gitDir)
	}
	argv = append(argv, h.args...)

	cmd := exec.CommandContext(ctx, g.Path, argv...)
	cmd.Dir = neutral
	cmd.Env = append(g.environ(h.user), h.env...)
	cmd.Stdin = h.stdin
	most := h.max
	if most == 0 {
		most = 1 << 20
	}
	out := &capped{max: most, full: cancel}
	errs := &tail{max: 8 << 10}
	cmd.Stdout, cmd.Stderr = out, errs
	ownGroup(cmd)
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	if h.errs != nil {
		h.errs.WriteString(errs.String())
	}
	switch {
	case out.over:
		return out.buf.Bytes(), fmt.Errorf("git %s: more than %d bytes of output", h.args[0], most)
	case err == nil:
		return out.buf.Bytes(), nil
	case ctx.Err() != nil:
		return out.buf.Bytes(), fmt.Errorf("git %s: %w", h.args[0], ctx.Err())
	default:
		return out.buf.Bytes(), fmt.Errorf("git %s: %w: %s", h.args[0], err, oneLine(errs.String(), 400))
	}
}

// environ is the whole environment of a git on the host. Without the user's
// it reads no configuration but the repository's own and may use no
// transport at all.
func (g Git) environ(user []string) []string {
	env := []string{
		"LC_ALL=C",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=" + noAnswer, "SSH_ASKPASS=" + noAnswer,
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none", "GCM_INTERACTIVE=never",
	}
	if user == nil {
		return append(env, "PATH="+g.path(""), "HOME=/nonexistent",
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1")
	}
	for _, e := range user {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == "PATH":
			env = append(env, "PATH="+g.path(value))
		case fromUser(name):
			env = append(env, e)
		}
	}
	return env
}

// noAnswer is asked instead of a person: it fails at once.
const noAnswer = "/bin/false"

// fromUser names what of a client's environment git on the host may have.
// None of these names a repository, a command for git or a token.
func fromUser(name string) bool {
	switch name {
	case "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "USERPROFILE", "SystemRoot", "APPDATA", "LOCALAPPDATA":
		return true
	}
	return isProxy(name)
}

func isProxy(name string) bool {
	switch strings.ToLower(name) {
	case "http_proxy", "https_proxy", "no_proxy", "all_proxy":
		return true
	}
	return false
}

// path drops what an agent could have put programs into: relative entries and
// everything in FLETCH_HOME.
func (g Git) path(user string) string {
	parts := filepath.SplitList(user)
	if user == "" {
		parts = []string{filepath.Dir(g.Path), "/usr/local/bin", "/usr/bin", "/bin"}
	}
	var kept []string
	for _, p := range parts {
		if filepath.IsAbs(p) && !inside(g.Home.Dir(), p) {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// environment is the client's environment, or this process's when none was
// given; never nil.
func (c Credentials) environment() []string {
	if c.Env != nil {
		return c.Env
	}
	return append([]string{}, os.Environ()...)
}

func (c Credentials) get(name string) string {
	value := ""
	for _, e := range c.environment() {
		if n, v, ok := strings.Cut(e, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// inside reports whether path is dir or lies below it; dir may be empty,
// which holds nothing.
func inside(dir, path string) bool {
	if dir == "" {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// capped keeps what is written to it up to max bytes; then it calls full once
// and fails, so that whoever writes is stopped.
type capped struct {
	buf  bytes.Buffer
	max  int64
	full func()
	over bool
}

var errFull = errors.New("more output than is taken")

func (c *capped) Write(p []byte) (int, error) {
	if int64(c.buf.Len()+len(p)) > c.max {
		if !c.over && c.full != nil {
			c.full()
		}
		c.over = true
		c.buf.Write(p[:max(0, int(c.max)-c.buf.Len())])
		return 0, errFull
	}
	return c.buf.Write(p)
}

// tail keeps the last max bytes written to it and never fails.
type tail struct {
	buf []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.max {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.max:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.buf[max(0, len(t.buf)-t.max):]) }
