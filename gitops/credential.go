package gitops

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// maxCredential bounds what git and a helper say to each other.
const maxCredential = 64 << 10

// keyring answers one git process, once, with the user's credentials for one
// URL. The token is in no argv, no environment and no file: it goes over a
// socket in a directory of mode 0700 that no sandbox can see.
type keyring struct {
	path   string // of the socket
	dir    string
	listen net.Listener
	served chan struct{}

	mu      sync.Mutex
	secrets []string // everything that must not show in a text
}

// openKeyring starts to listen. The user's credential helpers are asked only
// when git asks: most of them take time, some of them ask a person.
func (g Git) openKeyring(ctx context.Context, remote string, c Credentials) (*keyring, error) {
	u, err := url.Parse(remote)
	if err != nil {
		return nil, fmt.Errorf("reading the remote: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(g.Home.HubSocket()), "c-")
	if err != nil {
		return nil, fmt.Errorf("preparing credentials: %w", err)
	}
	k := &keyring{dir: dir, path: filepath.Join(dir, "s"), served: make(chan struct{})}
	k.listen, err = net.Listen("unix", k.path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing credentials: %w", err), os.RemoveAll(dir))
	}
	go func() {
		defer close(k.served)
		k.serve(func() (string, string) { return g.fill(ctx, u, c) }, u)
	}()
	return k, nil
}

// close ends the keyring and waits for what serves it.
func (k *keyring) close() {
	_ = k.listen.Close()
	<-k.served
	_ = os.RemoveAll(k.dir)
}

// serve answers connections until one got an answer or the listener closes. A
// question about another protocol, host or path gets none.
func (k *keyring) serve(fill func() (user, password string), u *url.URL) {
	for {
		conn, err := k.listen.Accept()
		if err != nil {
			return
		}
		answered := k.answer(conn, fill, u)
		_ = conn.Close()
		if answered {
			_ = k.listen.Close()
			return
		}
	}
}

func (k *keyring) answer(conn net.Conn, fill func() (user, password string), u *url.URL) bool {
	if err := conn.SetDeadline(time.Now().Add(networkLimit)); err != nil || !ownPeer(conn) {
		return false
	}
	asked, err := io.ReadAll(io.LimitReader(conn, maxCredential))
	if err != nil {
		return false
	}
	q := attributes(asked)
	if q["protocol"] != u.Scheme || q["host"] != u.Host || q["path"] != strings.TrimPrefix(u.Path, "/") {
		return false
	}
	user, password := fill()
	if user == "" && password == "" {
		return false
	}
	k.remember(user, password)
	_, err = fmt.Fprintf(conn, "username=%s\npassword=%s\n", user, password)
	return err == nil
}

// remember keeps every form in which the credentials may come back in a text.
func (k *keyring) remember(user, password string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if password == "" {
		return
	}
	pair := user + ":" + password
	k.secrets = append(k.secrets,
		base64.StdEncoding.EncodeToString([]byte(pair)), base64.URLEncoding.EncodeToString([]byte(pair)),
		base64.RawStdEncoding.EncodeToString([]byte(pair)), base64.RawURLEncoding.EncodeToString([]byte(pair)),
		base64.StdEncoding.EncodeToString([]byte(password)), base64.RawStdEncoding.EncodeToString([]byte(password)),
		url.QueryEscape(password), url.PathEscape(password), password)
}

// redact takes the credentials out of a text.
func (k *keyring) redact(s string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, secret := range k.secrets {
		s = strings.ReplaceAll(s, secret, "[redacted]")
	}
	return s
}

// fill asks the user's own credential helpers, as git would in a directory
// that is no repository, and after them fletch's own file. It gives nothing when they have nothing.
func (g Git) fill(ctx context.Context, u *url.URL, c Credentials) (user, password string) {
	ask := fmt.Sprintf("protocol=%s\nhost=%s\npath=%s\n\n", u.Scheme, u.Host, strings.TrimPrefix(u.Path, "/"))
	out, err := g.read(ctx, host{user: c.environment(), config: g.lastHelper(), args: []string{"credential", "fill"}, stdin: strings.NewReader(ask), max: maxCredential, limit: time.Minute})
	if err != nil {
		return "", ""
	}
	got := attributes(out)
	for _, value := range []string{got["username"], got["password"]} {
		if strings.ContainsAny(value, "\r\n\x00") {
			return "", ""
		}
	}
	// A helper may answer for another host than it was asked about.
	if got["protocol"] != u.Scheme || got["host"] != u.Host {
		return "", ""
	}
	return got["username"], got["password"]
}

// attributes reads git's credential format: one name=value on each line, to
// the first empty one; the last value of a name counts.
func attributes(text []byte) map[string]string {
	all := map[string]string{}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		name, value, ok := bytes.Cut(line, []byte("="))
		if !ok {
			break
		}
		all[string(name)] = string(value)
	}
	return all
}

// Credential is "fletch internal credential SOCKET OPERATION": the helper
// git runs when a remote asks who is there. It hands git's question to the
// socket and the answer to git; whatever git says for another operation than
// "get" is dropped. The result is the process's exit code.
func Credential(args []string) int {
	if len(args) != 2 {
		return 2
	}
	if args[1] != "get" {
		return 0
	}
	asked, err := io.ReadAll(io.LimitReader(os.Stdin, maxCredential))
	if err != nil {
		return 1
	}
	conn, err := net.Dial("unix", args[0]) //nolint:gosec // the socket is named by the hub, in the command it gave to git
	if err != nil {
		return 1
	}
	defer func() { _ = conn.Close() }()
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return 1
	}
	if _, err := conn.Write(asked); err != nil || unix.CloseWrite() != nil {
		return 1
	}
	if _, err := io.Copy(os.Stdout, io.LimitReader(conn, maxCredential)); err != nil {
		return 1
	}
	return 0
}
