// Package gittest makes repositories and remotes for tests with the real git.
package gittest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fletch/gitops/githttp"
)

// Path is the real git, absolute; the test is skipped, by name, without one.
func Path(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	return path
}

// Run runs git in dir as a user called Ada with no configuration but the
// repository's and returns what it printed without the last line end. It
// fails the test when git fails.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := Try(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// Try is Run for a git that may fail.
func Try(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(Path(t), args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, errs.String())
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Write puts files into dir, making directories as needed.
func Write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, body := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// Repo makes a repository with one commit of files on main, in a directory of
// the test's own, and returns its path. With no files it has a README.
func Repo(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	Init(t, dir, files)
	return dir
}

// Init makes dir, which exists, a repository with one commit; options go to
// "git init".
func Init(t testing.TB, dir string, files map[string]string, options ...string) {
	t.Helper()
	Run(t, dir, append([]string{"init", "--quiet", "--initial-branch=main"}, options...)...)
	if len(files) == 0 {
		files = map[string]string{"README.md": "# shop\n"}
	}
	Commit(t, dir, "first", files)
}

// Commit writes files in dir, commits everything there, and returns the
// commit.
func Commit(t testing.TB, dir, message string, files map[string]string) string {
	t.Helper()
	Write(t, dir, files)
	Run(t, dir, "add", "--all")
	Run(t, dir, "commit", "--quiet", "--allow-empty", "--message", message)
	return Run(t, dir, "rev-parse", "HEAD")
}

// Remote makes a bare repository NAME.git in dir, filled from repo, and
// returns its path. repo gets it as origin under url, which may be empty.
func Remote(t testing.TB, dir, name, repo, url string) string {
	t.Helper()
	bare := filepath.Join(dir, name+".git")
	Run(t, dir, "clone", "--quiet", "--bare", "--no-local", repo, bare)
	if url != "" {
		if _, err := Try(t, repo, "remote", "add", "origin", url); err != nil {
			Run(t, repo, "remote", "set-url", "origin", url)
		}
		for line := range strings.Lines(Run(t, bare, "for-each-ref", "--format=%(objectname) %(refname:short)", "refs/heads") + "\n") {
			id, branch, _ := strings.Cut(strings.TrimSpace(line), " ")
			Run(t, repo, "update-ref", "refs/remotes/origin/"+branch, id)
		}
	}
	return bare
}

// Backend is git's http-backend program.
func Backend(t testing.TB) string {
	t.Helper()
	return filepath.Join(Run(t, "/", "--exec-path"), "git-http-backend")
}

// Serve serves the bare repositories of dir on a loopback port until the test
// ends and returns the address they are under: URL + "/NAME.git".
func Serve(t testing.TB, dir, user, token string) string {
	t.Helper()
	return Listen(t, githttp.Handler(Backend(t), dir, user, token))
}

// Listen serves any handler on a loopback port until the test ends.
func Listen(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// Login writes a HOME whose git configuration answers with user and token for
// every host, and returns the environment of a client that has it.
func Login(t testing.TB, user, token string) []string {
	t.Helper()
	home := t.TempDir()
	helper := filepath.Join(home, "helper")
	script := "#!/bin/sh\n[ \"$1\" = get ] || exit 0\necho username=" + user + "\necho password=" + token + "\n"
	config := "[credential]\n\thelper = " + helper + "\n[user]\n\tname = Ada\n\temail = ada@example.com\n"
	if err := errors.Join(
		os.WriteFile(helper, []byte(script), 0o700),
		os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
}
