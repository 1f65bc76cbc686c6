package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fletch/agents/keeper"
	"fletch/profile"
	"fletch/sandbox"
	"fletch/state"
)

// proxyURL is where an agent finds the network: its keeper's proxy, on the
// loopback of its own private network.
const proxyURL = "http://127.0.0.1:3128"

// defaultSize is the screen of an agent that nobody has looked at yet.
var defaultSize = sandbox.Size{Cols: 80, Rows: 24}

// order is everything the keeper of a must know.
func (s *Supervisor) order(a state.Agent, plan launchPlan) (keeper.Order, error) {
	var none keeper.Order
	home := s.Home.AgentHome(string(a.ID))
	for _, dir := range []string{home, s.Home.Requests(string(a.ID)), s.Home.Responses(string(a.ID))} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return none, fmt.Errorf("making its home and mailbox: %w", err)
		}
	}
	firstStart, err := s.firstStart(a.ID)
	if err != nil {
		return none, err
	}
	env := s.environment(a, plan, home)
	if firstStart {
		if err := plan.provider.plant(home, a.Workspace, env...); err != nil {
			return none, err
		}
	}
	argv, mounts, err := s.program(a, plan)
	if err != nil {
		return none, err
	}
	size := defaultSize
	if plan.launch.Cols > 0 && plan.launch.Rows > 0 {
		size = sandbox.Size{Cols: min(plan.launch.Cols, 500), Rows: min(plan.launch.Rows, 300)}
	}
	return keeper.Order{
		Agent: string(a.ID), Home: s.Home.Dir(), RuntimeDir: s.RuntimeDir,
		Engine: a.Engine, Self: s.Self,
		Rules:  plan.settings.Entries(plan.provider.Hosts),
		Status: plan.provider.rules(a),
		Spec: sandbox.Spec{
			Agent: string(a.ID), Store: s.Store, Argv: argv, Dir: a.Workspace, Env: env,
			Mounts:   slices.Concat(s.withoutOurs(mounts), s.mounts(a, home), s.Git.Borrowed(a)),
			Bin:      s.Bin,
			Limits:   plan.settings.SandboxLimits(),
			Network:  sandbox.Network(plan.settings.Network.Mode),
			Terminal: &size,
		},
	}, nil
}

// firstStart reports whether the agent's home is still as fletch made it:
// later, an agent may have planted links in it, so nothing is written there.
func (s *Supervisor) firstStart(id state.AgentID) (bool, error) {
	mark := filepath.Join(s.Home.Run(string(id)), "started")
	file, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("marking its first start: %w", err)
	}
	return true, file.Close()
}

// program is the agent's argv and what must be in view for it to run.
func (s *Supervisor) program(a state.Agent, plan launchPlan) ([]string, []sandbox.Mount, error) {
	path, user := lookup(plan.launch.Env, "PATH"), lookup(plan.launch.Env, "HOME")
	mounts := sandbox.Toolchains(user, path)
	for _, extra := range plan.settings.Filesystem.AllowRead {
		mounts = append(mounts, sandbox.Mount{Source: expandHome(extra, user), Optional: true})
	}
	if plan.provider.RunsCommand && len(a.Command) > 0 {
		return plan.provider.Argv(a.Task, a.Command), mounts, nil
	}
	binary, err := plan.provider.Find(path)
	if err != nil {
		return nil, nil, err
	}
	argv := plan.provider.Argv(a.Task, a.Command)
	if plan.resumed && len(plan.provider.Resume) > 0 {
		argv = slices.Clone(plan.provider.Resume)
	}
	argv[0] = binary
	return argv, append(mounts, sandbox.ProgramMounts(user, binary)...), nil
}

// withoutOurs leaves out what would show fletch's own state: a directory on
// PATH, or one that a person added, may hold FLETCH_HOME or lie in it.
func (s *Supervisor) withoutOurs(mounts []sandbox.Mount) []sandbox.Mount {
	return slices.DeleteFunc(mounts, func(m sandbox.Mount) bool {
		at := m.Source
		if real, err := filepath.EvalSymlinks(at); err == nil {
			at = real
		}
		return sandbox.Under(at, s.Home.Dir()) || sandbox.Under(s.Home.Dir(), at)
	})
}

// mounts is what every agent sees of fletch: its checkout, its home and its
// half of the mailbox to write, the other half to read.
func (s *Supervisor) mounts(a state.Agent, home string) []sandbox.Mount {
	id := string(a.ID)
	return []sandbox.Mount{
		{Source: a.Workspace, Write: true},
		{Source: home, Write: true},
		{Source: s.Home.Requests(id), Write: true},
		{Source: s.Home.Responses(id)},
	}
}

// environment is all the agent gets: what its client may pass on, and
// fletch's own words over it.
func (s *Supervisor) environment(a state.Agent, plan launchPlan, home string) []string {
	env := profile.Environment(plan.launch.Env, plan.settings, plan.provider.Pass)
	set := func(name, value string) {
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		env = append(env, name+"="+value)
	}
	user := lookup(plan.launch.Env, "HOME")
	for name, dir := range map[string]string{"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "NVM_DIR": ".nvm", "BUN_INSTALL": ".bun"} {
		if at := filepath.Join(user, dir); user != "" && lookup(env, name) == "" && isDir(at) {
			set(name, at)
		}
	}
	for _, e := range plan.provider.Env {
		name, value, _ := strings.Cut(e, "=")
		set(name, strings.ReplaceAll(value, "{home}", home))
	}
	set("HOME", home)
	set("PATH", "/run/fletch/bin:"+first(lookup(env, "PATH"), "/usr/local/bin:/usr/bin:/bin"))
	set("TERM", "xterm-256color")
	set("COLORTERM", "truecolor")
	set("FLETCH_AGENT", a.Name)
	set("FLETCH_BRANCH", a.Branch)
	set("FLETCH_MAILBOX", s.Home.Mailbox(string(a.ID)))
	if plan.settings.Network.Mode != sandbox.NetworkNone {
		for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
			set(name, proxyURL)
		}
		for _, name := range []string{"no_proxy", "NO_PROXY"} {
			set(name, "localhost,127.0.0.1,::1,[::1]")
		}
	}
	slices.Sort(env)
	return env
}

func expandHome(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
