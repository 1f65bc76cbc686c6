package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fletch/state"
)

// networkLimit bounds one conversation with a remote.
const networkLimit = 3 * time.Minute

// reach is one git on the host that talks to a remote. It runs in no
// repository or in one of fletch's own, with fletch's configuration and
// nothing of the user's but proxy, certificates and ssh.
type reach struct {
	remote string
	creds  Credentials
	gitDir string
	env    []string
	config [][2]string
	args   []string
	max    int64
}

// talk runs it. said is what git and the remote wrote to standard error,
// without secrets, not yet fit for a screen. Its errors are sorted:
// [ErrAuth], [ErrUnreachable], [ErrRefused].
func (g Git) talk(ctx context.Context, r reach) (out []byte, said string, err error) {
	checked, err := CheckRemote(r.remote)
	if err != nil {
		return nil, "", err
	}
	if checked != r.remote {
		return nil, "", fault("bad-remote", remoteHint, "remote %s is not in its plain form", quote(withoutUser(r.remote)))
	}
	proto := transport(r.remote)
	h := host{
		gitDir: r.gitDir, args: r.args, max: r.max, limit: networkLimit,
		config: append([][2]string{
			{"http.followRedirects", "false"},
			{"http.sslVerify", "true"},
			{"push.gpgSign", "false"},
			{"credential.helper", ""},
			{"credential.useHttpPath", "true"},
			{"transfer.credentialsInUrl", "die"},
		}, r.config...),
		env: append([]string{"GIT_ALLOW_PROTOCOL=" + proto}, r.env...),
	}
	redact := func(s string) string { return s }
	if proto == "ssh" {
		h.env = append(h.env, g.sshEnv(r.creds)...)
	} else {
		ring, err := g.openKeyring(ctx, r.remote, r.creds)
		if err != nil {
			return nil, "", err
		}
		defer ring.close()
		redact = ring.redact
		h.config = append(h.config, [2]string{"credential.helper", "!" + shellQuote(g.Self) + " internal credential " + shellQuote(ring.path)})
		h.env = append(h.env, g.httpEnv(ctx, r.remote, r.creds)...)
	}
	var errs bytes.Buffer
	h.errs = &errs
	out, err = g.read(ctx, h)
	said = redact(errs.String())
	if err != nil {
		err = sortFailure(ctx, r.remote, said, errors.New(redact(err.Error())))
	}
	return []byte(redact(string(out))), said, err
}

// sshEnv lets ssh use the user's keys and configuration and ask nobody.
func (g Git) sshEnv(c Credentials) []string {
	env := []string{"GIT_SSH_COMMAND=ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ForwardAgent=no -o ForwardX11=no -o PermitLocalCommand=no -o ClearAllForwardings=yes -o ConnectTimeout=10", "GIT_SSH_VARIANT=ssh"}
	for _, name := range []string{"HOME", "SSH_AUTH_SOCK"} {
		if value := c.get(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "PATH="+g.path(c.get("PATH")))
}

// wayToHost names what is taken from the user's http configuration: how to
// get to the host, never what is sent to it.
func wayToHost(key string) bool {
	switch strings.ToLower(key) {
	case "http.proxy", "http.proxyauthmethod", "http.proxysslcainfo",
		"http.sslcainfo", "http.sslcapath", "http.sslbackend", "http.sslcert", "http.sslkey", "http.version", "http.postbuffer":
		return true
	}
	return false
}

// httpEnv carries the user's way to the host: proxy and certificates. It is
// passed by environment, since a proxy's URL may hold a password and argv is
// open to every user.
func (g Git) httpEnv(ctx context.Context, remote string, c Credentials) []string {
	var env []string
	for _, e := range c.environment() {
		name, _, _ := strings.Cut(e, "=")
		if isProxy(name) || name == "SSL_CERT_FILE" || name == "SSL_CERT_DIR" {
			env = append(env, e)
		}
	}
	out, err := g.read(ctx, host{user: c.environment(), limit: inspectLimit, args: []string{"config", "-z", "--get-urlmatch", "http", remote}})
	if err != nil {
		return env // none is set
	}
	n := 0
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, value, ok := strings.Cut(entry, "\n")
		if ok && wayToHost(key) {
			env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, value))
			n++
		}
	}
	if n > 0 {
		env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
	}
	return env
}

// sortFailure makes of git's words one of the faults a caller can tell apart.
// git runs with LC_ALL=C, so the words are fixed.
func sortFailure(ctx context.Context, remote, said string, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("reaching %s: %w", remote, ctx.Err())
	}
	words := oneLine(said, 400)
	has := func(all ...string) bool {
		for _, s := range all {
			if strings.Contains(said, s) {
				return true
			}
		}
		return false
	}
	switch {
	case has("Authentication failed", "could not read Username", "could not read Password", "terminal prompts disabled",
		"Permission denied (", "returned error: 401", "returned error: 403", "Invalid username or password"):
		hint := "log in for this host with git's credential helper, then try again"
		if transport(remote) == "ssh" {
			hint = "ssh-add your key in the terminal you run fletch in"
		}
		return fault("auth-failed", hint, "%s did not accept your credentials: %s", remote, words)
	case has("Host key verification failed"):
		return fault("auth-failed", "connect to it once with ssh and check its key", "%s is not a known ssh host", remote)
	case has("returned error: 301", "returned error: 302", "returned error: 307", "returned error: 308"):
		return fault("remote-refused", "git remote set-url to where the repository is now", "%s sends git to another address, which fletch does not follow", remote)
	case has("Repository not found", "returned error: 404", "does not appear to be a git repository", "' not found"):
		return fault("remote-refused", "git remote -v shows the URL", "%s is no repository you can reach: %s", remote, words)
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), strings.Contains(err.Error(), "deadline exceeded"),
		has("Could not resolve host", "Failed to connect", "Couldn't connect", "Connection refused", "Connection timed out",
			"Connection reset", "No route to host", "Network is unreachable", "Could not resolve hostname", "Operation timed out",
			"SSL certificate problem", "returned error: 5"):
		return fault("unreachable", "try again when the network is back", "%s does not answer: %s", remote, first(words, "no answer in time"))
	default:
		return fault("remote-refused", "", "%s: %s", remote, first(words, err.Error()))
	}
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// list asks a remote for its branches. patterns are full refs; none lists
// all branches. head is what its HEAD points to: "refs/heads/main".
func (g Git) list(ctx context.Context, remote string, c Credentials, patterns ...string) (refs map[string]state.Commit, head string, err error) {
	if len(patterns) == 0 {
		patterns = []string{"HEAD", "refs/heads/*"}
	}
	out, _, err := g.talk(ctx, reach{
		remote: remote, creds: c, max: maxListing,
		args: append([]string{"ls-remote", "--symref", "--", remote}, patterns...),
	})
	if err != nil {
		return nil, "", err
	}
	refs = map[string]state.Commit{}
	for line := range strings.SplitSeq(string(out), "\n") {
		value, name, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		if target, ok := strings.CutPrefix(value, "ref: "); ok && name == "HEAD" {
			head = target
		}
		if state.Commit(value).Valid() && strings.HasPrefix(name, "refs/heads/") {
			refs[name] = state.Commit(value)
		}
	}
	return refs, head, nil
}

// RemoteRefs lists the branches of an agent's remote, full ref to commit, as
// the remote has them now. Errors: [ErrNoRemote], [ErrAuth],
// [ErrUnreachable], [ErrRefused].
func (g Git) RemoteRefs(ctx context.Context, a state.Agent, c Credentials) (map[string]state.Commit, error) {
	q, err := g.quarantine(a.ID)
	if err != nil {
		return nil, err
	}
	if q.Remote == "" {
		return nil, errNoRemote()
	}
	refs, _, err := g.list(ctx, q.Remote, c)
	return refs, err
}

func errNoRemote() error {
	return fault("no-remote", "git remote add origin URL in your repository, then start a new agent", "this agent's repository has no remote to push to")
}

// fetchRemote brings one branch of a remote into a repository of fletch's
// own, checked object by object, and makes sure that it is the commit that
// was asked for.
func (g Git) fetchRemote(ctx context.Context, gitDir, remote string, c Credentials, want state.Commit, ref, into string) error {
	_, _, err := g.talk(ctx, reach{
		remote: remote, creds: c, gitDir: gitDir,
		config: [][2]string{{"fetch.fsckObjects", "true"}, {"fetch.unpackLimit", "1"}, {"transfer.unpackLimit", "1"}},
		args: []string{
			"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
			"--", remote, "+" + ref + ":" + into,
		},
	})
	if err != nil {
		return err
	}
	data, err := readSmall(filepath.Join(gitDir, filepath.FromSlash(into)), 128)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if got := strings.TrimSpace(string(data)); got != string(want) {
		return fault("remote-moved", "try again", "%s moved while it was fetched", oneLine(ref, 100))
	}
	return nil
}

// shellQuote makes one word of s for the POSIX shell that git starts helpers
// with.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
