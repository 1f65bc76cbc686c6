package gitops

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fletch/broker"
	"fletch/gitops/gittest"
	"fletch/state"
)

// memory is a log that keeps events in memory.
type memory struct {
	mu  sync.Mutex
	seq uint64
}

func (m *memory) Append(_ context.Context, e state.Event) (state.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	e.Seq, e.At = m.seq, time.Now()
	return e, nil
}

func TestWhatAPersonAllowsIsPushed(t *testing.T) {
	t.Parallel()
	f := setup(t, nil).open()
	if _, err := f.git.Push(t.Context(), broker.Grant{}, f.creds); err == nil {
		t.Fatal("pushed with a grant that nobody gave")
	}
	head := f.commit("echo 1 > a")
	p := f.mustPlan(head, false)

	ctx, cancel := context.WithCancel(t.Context())
	gate := broker.New(&memory{}, 0)
	var running sync.WaitGroup
	running.Go(func() {
		if err := gate.Run(ctx, state.Fleet{}); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()
	ticket, err := gate.Ask(ctx, p, "")
	if err != nil {
		t.Fatal(err)
	}
	r := ticket.Request()
	if err := gate.Decide(ctx, state.Verdict{Request: r.ID, Allow: true, Commit: head, Plan: p.Hash()}); err != nil {
		t.Fatal(err)
	}
	grant, err := ticket.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := f.git.Push(ctx, grant, f.creds)
	if err != nil || f.at("fletch/amber-river") != string(head) || !strings.Contains(outcome, head.Short()) {
		t.Errorf("outcome %q, %v; the remote has %q", outcome, err, f.at("fletch/amber-river"))
	}
	// Once more would find another value at the remote than the lease's.
	if _, err := f.git.Push(ctx, grant, f.creds); err != nil && !errors.Is(err, ErrMoved) {
		t.Errorf("pushing again: %v", err)
	}
}

func TestSSHIsReachedWithTheClientsAgentAndNoQuestions(t *testing.T) {
	t.Parallel()
	repo := gittest.Repo(t, nil)
	forge := t.TempDir()
	gittest.Remote(t, forge, "shop", repo, "git@forge.example:shop.git")
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	fake := "#!/bin/sh\necho \"$SSH_AUTH_SOCK $*\" >> " + log + "\nfor last; do :; done\ncd " + forge + "\nexec sh -c \"$last\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, git: newGit(t), repo: repo, bare: filepath.Join(forge, "shop.git")}
	f.creds = Credentials{Env: append(gittest.Login(t, "ada", "x"), "PATH="+dir+":"+os.Getenv("PATH"), "SSH_AUTH_SOCK=/run/agent", "GIT_SSH_COMMAND=evil", "GH_TOKEN=t0ken")}
	f.git.Creds = f.creds
	f.open()
	if f.src.Remote != "git@forge.example:shop.git" || f.src.Base.Stale != "" {
		t.Fatalf("source is %+v", f.src)
	}
	head := f.commit("echo 1 > a")
	f.mustPush(f.mustPlan(head, false))
	if f.at("fletch/amber-river") != string(head) {
		t.Error("it was not pushed")
	}
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(said)) {
		if !strings.HasPrefix(line, "/run/agent ") || !strings.Contains(line, "BatchMode=yes") || !strings.Contains(line, "ForwardAgent=no") || !strings.Contains(line, " git@forge.example ") {
			t.Errorf("ssh was called as %q", line)
		}
	}
}

func TestAgentsOfOneRepositoryStartSideBySide(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	src, err := f.git.Inspect(t.Context(), f.repo, "")
	if err != nil {
		t.Fatal(err)
	}
	var opening sync.WaitGroup
	for _, id := range []state.AgentID{"aaaaaaaa", "bbbbbbbb", "cccccccc"} {
		opening.Go(func() {
			if _, err := f.git.Open(t.Context(), src, id, "fletch/"+string(id), nil); err != nil {
				t.Error(err)
			}
		})
	}
	opening.Wait()
	pools, _ := filepath.Glob(filepath.Join(f.git.Home.Pools(), "*.git"))
	if len(pools) != 1 {
		t.Errorf("pools %q", pools)
	}
	if _, err := f.git.Open(t.Context(), src, "aaaaaaaa", "fletch/x", nil); err == nil {
		t.Error("an agent's workspace was made twice")
	}
	if _, err := os.Lstat(filepath.Join(f.git.Home.Workspace("aaaaaaaa"), ".git")); err != nil {
		t.Errorf("the first one is gone: %v", err)
	}
}

func TestObjectsAreCopiedWhereTheyCannotBeLinked(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/dev/shm", "fletch-test-")
	if err != nil {
		t.Skip("SKIPPED: there is no /dev/shm")
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	gittest.Init(t, dir, nil)
	f := &fixture{t: t, git: newGit(t), repo: dir}
	f.git.Creds = Credentials{Env: gittest.Login(t, "ada", "x")}
	src, err := f.git.Inspect(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	if _, err := f.git.Open(t.Context(), src, "aaaaaaaa", "fletch/x", func(text string) { said = append(said, text) }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(said, "\n"), "copying your objects") {
		t.Errorf("said %q", said)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if out, err := gittest.Try(t, "/", "--git-dir="+f.git.Home.Quarantine("aaaaaaaa"), "fsck", "--no-dangling"); err != nil {
		t.Errorf("the pool is not whole: %s %v", out, err)
	}
}

func TestCheckingOutSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	var said []string
	p := &percent{tell: func(s string) { said = append(said, s) }, last: -1}
	for _, part := range []string{"Updating files:   4% (1/25)\rUpdating files:   8% (2/25)\r", "Updating files:   8% (2/25)\r", "Updating files: 100% (25/25), done.\n"} {
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if strings.Join(said, "|") != "checking out 4 %|checking out 8 %|checking out 100 %" {
		t.Errorf("said %q", said)
	}
}
