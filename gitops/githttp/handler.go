// Package githttp serves bare repositories over git's smart HTTP protocol,
// behind a user name and a token: a forge small enough for a test and for the
// demo, with git's own http-backend doing the work. It is no server for a
// network: it is meant for a loopback listener.
package githttp

import (
	"bytes"
	"crypto/subtle"
	"io"
	"net/http"
	"net/http/cgi" //nolint:gosec // the fault of CGI it warns of was mended in Go 1.6.3
	"path/filepath"
	"strings"
)

// maxBody bounds one request. A push to a test or a demo is far below it.
const maxBody = 512 << 20

// Handler serves every bare repository below dir, /NAME.git each. Every
// request must carry user and token as HTTP basic authentication, also one
// that only reads. backend is git's http-backend program, absolute:
// "$(git --exec-path)/git-http-backend".
func Handler(backend, dir, user, token string) http.Handler {
	forge := &cgi.Handler{
		Path: backend,
		Root: "/",
		Dir:  dir,
		// Its complaints about requests would land in somebody's terminal.
		Stderr: io.Discard,
		Env: []string{
			"PATH=" + filepath.Dir(backend) + ":/usr/local/bin:/usr/bin:/bin",
			"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + user,
			"HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gotUser, gotToken, ok := r.BasicAuth()
		if !ok || !same(gotUser, user) || !same(gotToken, token) {
			w.Header().Set("WWW-Authenticate", `Basic realm="fletch"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if strings.Contains(r.URL.Path, "..") {
			http.NotFound(w, r)
			return
		}
		// CGI needs to know the length beforehand; git sends large packs in
		// chunks.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength, r.TransferEncoding = int64(len(body)), nil
		r.Header.Del("Authorization") // it would reach hooks by environment
		forge.ServeHTTP(w, r)
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
