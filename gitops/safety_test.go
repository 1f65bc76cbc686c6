package gitops

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fletch/gitops/githttp"
	"fletch/gitops/gittest"
	"fletch/state"
)

// tarCopy copies the contents of one directory into another, as they are.
func tarCopy(from, to string) (string, error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return "", err
	}
	out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput()
	return string(out), err
}

// manifest is every file of a directory: path, mode, size, time and content.
func manifest(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var sum [32]byte
		if info.Mode().IsRegular() {
			body, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = sha256.Sum256(body)
		}
		fmt.Fprintf(&all, "%s %s %d %s %x\n", path, info.Mode(), info.Size(), info.ModTime(), sum[:8])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestTheUsersRepositoryIsNeverWritten(t *testing.T) {
	t.Parallel()
	f := setup(t, map[string]string{"a": "1\n", "b": "2\n"})
	gittest.Run(t, f.repo, "gc", "--quiet")
	gittest.Write(t, f.repo, map[string]string{"a": "changed\n", "untracked": ""})
	before := manifest(t, f.repo)
	f.open()
	head := f.commit("git checkout -q main 2>/dev/null || true; echo 3 > c; git gc -q; git fetch -q origin 2>/dev/null || true")
	f.mustPush(f.mustPlan(head, false))
	f.openAs("bbbbbbbb", "fletch/b")
	if _, err := f.git.Measure(t.Context(), f.agent); err != nil {
		t.Error(err)
	}
	if _, err := f.git.Remove(t.Context(), f.agent.ID); err != nil {
		t.Error(err)
	}
	if after := manifest(t, f.repo); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestAnAgentOutlivesTheUsersRepository(t *testing.T) {
	t.Parallel()
	f := setup(t, map[string]string{"a": "1\n"})
	gittest.Commit(t, f.repo, "second", map[string]string{"a": "2\n"})
	f.open()
	if f.git.SourceGone(f.repo) {
		t.Error("gone already")
	}
	if err := os.RemoveAll(f.repo); err != nil {
		t.Fatal(err)
	}
	if !f.git.SourceGone(f.repo) {
		t.Error("not gone")
	}
	if got := f.inSandbox("git fsck --no-dangling 2>/dev/null; git log --oneline | wc -l"); got != "2" {
		t.Errorf("the workspace says %q", got)
	}
	f.mustPush(f.mustPlan(f.commit("echo 3 > a"), false))
}

func TestThePoolCannotBeWrittenFromInside(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	mounts := f.git.Borrowed(f.agent)
	if len(mounts) != 1 || mounts[0].Write {
		t.Fatalf("borrowed %+v", mounts)
	}
	if got := f.inSandbox("touch " + mounts[0].Source + "/x 2>/dev/null && echo written || echo no; ls $(dirname " + mounts[0].Source + ")"); got != "no\nobjects" {
		t.Errorf("inside the pool: %q", got)
	}
}

// TestNoGitOnTheHostComesNearAWorkspace runs a whole life with a git that
// writes down how it was started. In a sandbox it cannot write there, so what
// is written down is what ran on the host.
func TestNoGitOnTheHostComesNearAWorkspace(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	shim := filepath.Join(dir, "bin", "git")
	script := "#!/bin/sh\n{ echo \"$PWD|$GIT_DIR|$GIT_WORK_TREE|$GIT_ALTERNATE_OBJECT_DIRECTORIES|$GIT_OBJECT_DIRECTORY|$*\"; for a; do case $a in --git-dir=*) sed 's/^/alternate /' \"${a#--git-dir=}/objects/info/alternates\";; esac; done; } 2>/dev/null >> " + log + "\nexec " + f.git.Path + " \"$@\"\n"
	if err := errors.Join(os.Mkdir(filepath.Dir(shim), 0o755), os.WriteFile(shim, []byte(script), 0o755), os.WriteFile(log, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	f.git.Path = shim
	f.open()
	head := f.commit("echo 1 > a")
	if _, err := f.git.Head(t.Context(), f.agent); err != nil {
		t.Error(err)
	}
	if _, err := f.git.Changes(t.Context(), f.agent); err != nil {
		t.Error(err)
	}
	if _, err := f.git.Measure(t.Context(), f.agent); err != nil {
		t.Error(err)
	}
	p := f.mustPlan(head, false)
	if _, err := f.git.Patch(t.Context(), f.agent, p); err != nil {
		t.Error(err)
	}
	f.mustPush(p)
	seen, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(seen, []byte(" push ")) || !bytes.Contains(seen, []byte("alternate ")) {
		t.Fatalf("the shim saw too little:\n%s", seen)
	}
	for line := range strings.Lines(string(seen)) {
		if strings.Contains(line, f.git.Home.Workspaces()) {
			t.Errorf("git on the host: %s", line)
		}
		if cwd, _, ok := strings.Cut(line, "|"); ok && cwd != "/" {
			t.Errorf("git on the host was started in %s", cwd)
		}
	}
}

// leaks lists the processes whose command line or environment holds one of
// the words.
func leaks(words ...string) []string {
	var found []string
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		for _, name := range []string{"cmdline", "environ"} {
			body, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			for _, word := range words {
				if bytes.Contains(body, []byte(word)) {
					cmd, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
					found = append(found, name+" of "+string(bytes.ReplaceAll(cmd, []byte{0}, []byte(" "))))
				}
			}
		}
	}
	return found
}

func TestATokenIsInNoCommandLineAndNoEnvironment(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	forge := filepath.Dir(f.bare)
	inner := githttp.Handler(gittest.Backend(t), forge, "ada", token)
	pair := base64.StdEncoding.EncodeToString([]byte("ada:" + token))
	var mu sync.Mutex
	var found []string
	looked := 0
	url := gittest.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" { // git has the token now
			mu.Lock()
			looked++
			found = append(found, leaks(token, pair)...)
			mu.Unlock()
		}
		inner.ServeHTTP(w, r)
	}))
	f.remote = url + "/shop.git"
	gittest.Run(t, f.repo, "remote", "set-url", "origin", f.remote)
	f.open()
	f.mustPush(f.mustPlan(f.commit("echo 1 > a"), false))
	mu.Lock()
	defer mu.Unlock()
	if looked < 4 || len(found) > 0 {
		t.Errorf("looked %d times, found %q", looked, found)
	}
	var kept []string
	err := filepath.WalkDir(f.git.Home.Dir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		body, err := os.ReadFile(path)
		if bytes.Contains(body, []byte(token)) || bytes.Contains(body, []byte(pair)) {
			kept = append(kept, path)
		}
		return err
	})
	if err != nil || len(kept) > 0 {
		t.Errorf("the token is on the disk: %q, %v", kept, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.git.Home.HubSocket()), "c-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestAServerThatSendsGitElsewhereGetsNoToken(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var elsewhere []string
	evil := gittest.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		elsewhere = append(elsewhere, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
		mu.Unlock()
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	for _, asks := range []bool{false, true} {
		f := setup(t, nil).open()
		p := f.mustPlan(f.commit("echo 1 > a"), false)
		url := gittest.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, _, ok := r.BasicAuth(); asks && !ok {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			http.Redirect(w, r, evil+r.URL.String(), http.StatusFound)
		}))
		_, _, err := f.git.list(t.Context(), url+"/shop.git", f.creds)
		if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), token) {
			t.Errorf("listing gave %v", err)
		}
		_, _, err = f.git.talk(t.Context(), reach{remote: url + "/shop.git", creds: f.creds, gitDir: f.git.Home.Quarantine("abcdefgh"), args: []string{"push", "--porcelain", "--", url + "/shop.git", string(p.Commit) + ":" + p.Ref}})
		if err == nil {
			t.Error("pushed")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(elsewhere) > 0 {
		t.Errorf("the other server was asked: %q", elsewhere)
	}
}

func TestTheKeyringAnswersOnlyForItsRemote(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	creds := Credentials{Env: gittest.Login(t, "ada", token)}
	for question, want := range map[string]bool{
		"protocol=https\nhost=forge.example:8443\npath=acme/shop.git\n":                    true,
		"protocol=http\nhost=forge.example:8443\npath=acme/shop.git\n":                     false,
		"protocol=https\nhost=forge.example\npath=acme/shop.git\n":                         false,
		"protocol=https\nhost=evil.example\npath=acme/shop.git\n":                          false,
		"protocol=https\nhost=forge.example:8443\npath=acme/other.git\n":                   false,
		"protocol=https\nhost=forge.example:8443\n":                                        false,
		"protocol=https\nhost=forge.example:8443\nhost=evil.example\npath=acme/shop.git\n": false,
		"": false,
	} {
		ring, err := g.openKeyring(t.Context(), "https://forge.example:8443/acme/shop.git", creds)
		if err != nil {
			t.Fatal(err)
		}
		ask := func() string {
			cmd := exec.Command(g.Self, "internal", "credential", ring.path, "get")
			cmd.Stdin = strings.NewReader(question + "\n")
			out, _ := cmd.Output()
			return string(out)
		}
		if got := ask(); (got == "username=ada\npassword="+token+"\n") != want || !want && got != "" {
			t.Errorf("%q got %q", question, got)
		}
		if want && ask() != "" {
			t.Error("it answered twice")
		}
		if said := ring.redact("remote: you sent " + token + " and " + base64.StdEncoding.EncodeToString([]byte("ada:"+token))); want && strings.Contains(said, token[:6]) {
			t.Errorf("not redacted: %s", said)
		}
		ring.close()
	}
}

func TestARemotesWordsAreMadeSafe(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	hook := filepath.Join(f.bare, "hooks", "pre-receive")
	script := "#!/bin/sh\nprintf 'protected \\033]52;c;evil\\007 \\342\\200\\256 " + token + "\\n' >&2\nexit 1\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o755), os.WriteFile(hook, []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	_, err := f.push(f.mustPlan(f.commit("echo 1 > a"), false))
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "protected") || hasUnsafe(err.Error()) || strings.Contains(err.Error(), token) {
		t.Errorf("refused: %q", err)
	}
}

func TestFailuresToReachARemoteAreToldApart(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	if _, err := f.git.RemoteRefs(t.Context(), f.agent, Credentials{Env: gittest.Login(t, "ada", "wrong")}); !errors.Is(err, ErrAuth) {
		t.Errorf("wrong token: %v", err)
	}
	if _, err := f.git.RemoteRefs(t.Context(), f.agent, Credentials{Env: []string{"HOME=/nonexistent"}}); !errors.Is(err, ErrAuth) {
		t.Errorf("no token: %v", err)
	}
	if _, _, err := f.git.list(t.Context(), "http://127.0.0.1:1/x.git", f.creds); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	if _, _, err := f.git.list(t.Context(), strings.Replace(f.remote, "shop", "none", 1), f.creds); !errors.Is(err, ErrRefused) {
		t.Errorf("no repository: %v", err)
	}
	refs, err := f.git.RemoteRefs(t.Context(), f.agent, f.creds)
	if err != nil || len(refs) != 1 || refs["refs/heads/main"] != f.src.Base.Commit {
		t.Errorf("refs %v, %v", refs, err)
	}
}

func TestAChangedQuarantineIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"config": "[core]\n\tsshCommand = id\n", "objects/info/alternates": "/other\n", "hooks/pre-push": "x", "HEAD": "ref: refs/heads/main\n", "info/attributes": "* x",
	} {
		f := setup(t, nil).open()
		p := f.mustPlan(f.commit("echo 1 > a"), false)
		gittest.Write(t, f.git.Home.Quarantine("abcdefgh"), map[string]string{name: body})
		if _, err := f.push(p); !errors.Is(err, ErrQuarantine) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRemoveFollowsNoLink(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	outside := t.TempDir()
	gittest.Write(t, outside, map[string]string{"keep": "x"})
	if err := os.Symlink(outside, g.Home.Workspace("abcdefgh")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Remove(t.Context(), "abcdefgh"); err == nil {
		t.Error("removed a link")
	}
	for _, id := range []state.AgentID{"", "..", "../trash", "a/b", "ABCDEFGH", "abcdefg1"} {
		if _, err := g.Remove(t.Context(), id); err == nil {
			t.Errorf("removed %q", id)
		}
	}
	deep := filepath.Join(g.Home.Workspace("bbbbbbbb"), strings.Repeat("d/", 500))
	if err := errors.Join(os.MkdirAll(deep, 0o700), os.Symlink(outside, filepath.Join(deep, "out")), os.Chmod(deep, 0)); err != nil {
		t.Fatal(err)
	}
	if err := g.discard(g.Home.Workspace("bbbbbbbb")); err != nil {
		t.Error(err)
	}
	if err := g.discard(g.Home.Dir()); err == nil {
		t.Error("deleted the home itself")
	}
	if _, err := os.Stat(filepath.Join(outside, "keep")); err != nil {
		t.Error("something outside went")
	}
}
