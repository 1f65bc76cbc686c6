package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fletch/agents/keeper"
	"fletch/state"
)

// keeperStart bounds how long a keeper may take from its start until its
// agent runs.
const keeperStart = 60 * time.Second

// noteEvery keeps the notes of a slow start from filling the log.
const noteEvery = time.Second

// bringUp makes the workspace of a when it has none and starts its keeper.
// It returns once the keeper answers, with a way to kill it.
func (s *Supervisor) bringUp(ctx context.Context, a state.Agent, plan launchPlan, note func(string)) (kill func() error, err error) {
	if !s.hasWorkspace(a.ID) {
		if err := s.openWorkspace(ctx, a, plan, note); err != nil {
			return nil, err
		}
		a, _ = s.Log.Fleet().Agent(a.ID)
	}
	order, err := s.order(a, plan)
	if err != nil {
		return nil, err
	}
	return s.startKeeper(ctx, a.ID, order)
}

// openWorkspace makes the checkout and records what it is based on.
func (s *Supervisor) openWorkspace(ctx context.Context, a state.Agent, plan launchPlan, note func(string)) error {
	last := s.Clock()
	opened, err := s.Git.Open(ctx, plan.source, a.ID, a.Branch, func(text string) {
		if now := s.Clock(); now.Sub(last) >= noteEvery {
			last = now
			note(oneLine(text))
		}
	})
	if err != nil {
		return fmt.Errorf("making its workspace: %w", err)
	}
	_, err = s.Log.Append(ctx, state.Event{Agent: a.ID, Body: state.Prepared{
		Base: opened.Base, Remote: opened.Remote, NotIncluded: opened.Uncommitted,
	}})
	return err
}

func (s *Supervisor) hasWorkspace(id state.AgentID) bool {
	_, err := os.Lstat(filepath.Join(s.Home.Workspace(string(id)), ".git"))
	return err == nil
}

// planResume checks that a stopped agent can go on: its provider, its
// settings and its own engine, and its repository when it has no workspace.
func (s *Supervisor) planResume(ctx context.Context, a state.Agent, env []string) (launchPlan, error) {
	l := state.Launch{
		Repo: a.Repo, Base: a.Base.Ref, Provider: a.Provider, Engine: a.Engine, Profile: a.Profile,
		Task: a.Task, Command: a.Command, Env: env,
	}
	if !s.hasWorkspace(a.ID) {
		return s.planLaunch(ctx, l)
	}
	settings, err := s.settings(a.Profile)
	if err != nil {
		return launchPlan{}, err
	}
	provider, err := s.provider(a.Provider)
	if err != nil {
		return launchPlan{}, err
	}
	if err := provider.check(l); err != nil {
		return launchPlan{}, err
	}
	engine, err := s.Engine(a.Engine)
	if err != nil {
		return launchPlan{}, err
	}
	if err := engine.Probe(ctx); err != nil {
		return launchPlan{}, err
	}
	return launchPlan{launch: l, provider: provider, settings: settings, engine: engine, resumed: true}, nil
}

// startKeeper runs "fletch keeper" apart from the hub and waits until it says
// that its agent runs. The order goes over descriptor 3, the answer comes on
// descriptor 4; nothing of the agent's environment touches argv or the disk.
func (s *Supervisor) startKeeper(ctx context.Context, id state.AgentID, order keeper.Order) (kill func() error, err error) {
	if err := s.clearRun(id); err != nil {
		return nil, err
	}
	body, err := json.Marshal(order)
	if err != nil {
		return nil, fmt.Errorf("starting its keeper: %w", err)
	}
	orders, give, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting its keeper: %w", err)
	}
	hear, answers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting its keeper: %w", err), orders.Close(), give.Close())
	}
	defer func() { _ = hear.Close() }()
	cmd := exec.Command(s.Self, "keeper")
	cmd.Dir = "/"
	cmd.Env = keeperEnv(os.Environ())
	cmd.ExtraFiles = []*os.File{orders, answers}
	apart(cmd)
	err = cmd.Start()
	_, _ = orders.Close(), answers.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting its keeper: %w", err), give.Close())
	}
	s.reaped.Go(func() { _ = cmd.Wait() })
	s.running.Go(func() {
		_, _ = bytes.NewReader(body).WriteTo(give) // a keeper that is gone says so on hear
		_ = give.Close()
	})
	return cmd.Process.Kill, awaitKeeper(ctx, hear, cmd)
}

// awaitKeeper reads the keeper's one line. A keeper that does not answer in
// time, or whose start is given up, is killed: what it started dies with it.
func awaitKeeper(ctx context.Context, hear *os.File, cmd *exec.Cmd) error {
	ctx, cancel := context.WithTimeout(ctx, keeperStart)
	defer cancel()
	unhook := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer unhook()
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
		Hint  string `json:"hint"`
		Code  string `json:"code"`
	}
	err := json.NewDecoder(hear).Decode(&answer)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("starting its sandbox: %w", ctx.Err())
	case err != nil:
		return errors.New("starting its sandbox: the keeper ended without a word; see its keeper.log")
	case !answer.OK:
		return &Refusal{Word: first(answer.Code, "sandbox-start"), What: oneLine(answer.Error), Way: oneLine(answer.Hint)}
	}
	return nil
}

// clearRun makes an agent's run directory ready for a new keeper: the end of
// the last one must not be taken for the end of this one.
func (s *Supervisor) clearRun(id state.AgentID) error {
	dir := s.Home.Run(string(id))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("preparing its run directory: %w", err)
	}
	for _, name := range []string{"exit.json", "last.frame"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("preparing its run directory: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "boot"), []byte(bootID()), 0o600); err != nil {
		return fmt.Errorf("preparing its run directory: %w", err)
	}
	return nil
}

// startedInBoot is the boot in which the agent's keeper was last started.
func (s *Supervisor) startedInBoot(id state.AgentID) string {
	raw, err := os.ReadFile(filepath.Join(s.Home.Run(string(id)), "boot"))
	if err != nil {
		return bootID() // never started: no restart is to blame
	}
	return string(raw)
}

// bootID names the running boot; empty where the system has no such name.
func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// keeperEnv is what a keeper needs of the hub's environment.
func keeperEnv(env []string) []string {
	var kept []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if name == "PATH" || name == "HOME" || name == "LANG" || name == "GOCOVERDIR" || name == "SystemRoot" || strings.HasPrefix(name, "FLETCH_") {
			kept = append(kept, e)
		}
	}
	return kept
}
