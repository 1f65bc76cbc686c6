package agents

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"fletch/agents/keeper"
	"fletch/gitops"
	"fletch/profile"
	"fletch/sandbox"
	"fletch/state"
)

// maxCopies is how many agents one launch may start.
const maxCopies = 9

// maxTask bounds a task: it becomes one argument of the agent's program, and
// Linux allows 128 KiB for one.
const maxTask = 100 << 10

// launchPlan is a launch that was checked: everything that can be known
// before an agent exists.
type launchPlan struct {
	launch   state.Launch
	source   gitops.Source
	provider Provider
	settings profile.Settings
	engine   sandbox.Engine
	resumed  bool
}

// planLaunch checks a launch without changing anything.
func (s *Supervisor) planLaunch(ctx context.Context, l state.Launch) (launchPlan, error) {
	var none launchPlan
	if l.Copies < 0 || l.Copies > maxCopies {
		return none, refuse("bad-copies", "choose 1 to 9", "%d copies of an agent", l.Copies)
	}
	if len(l.Task) > maxTask {
		return none, refuse("task-too-long", "put the details into a file of the repository", "the task has %d bytes, %d at most", len(l.Task), maxTask)
	}
	if strings.ContainsRune(l.Task, 0) {
		return none, refuse("bad-task", "", "the task has a zero byte in it")
	}
	if l.Name != "" {
		if err := checkName(l.Name); err != nil {
			return none, err
		}
	}
	settings, err := s.settings(l.Profile)
	if err != nil {
		return none, err
	}
	provider, err := s.provider(first(l.Provider, settings.Defaults.Provider, "shell"))
	if err != nil {
		return none, err
	}
	if err := provider.check(l); err != nil {
		return none, err
	}
	engine, err := s.Engine(first(l.Engine, settings.Defaults.Engine, "native"))
	if err != nil {
		return none, err
	}
	if err := provider.Runs(engine.Name()); err != nil {
		return none, err
	}
	if err := engine.Probe(ctx); err != nil {
		return none, err
	}
	if !filepath.IsAbs(l.Repo) {
		return none, refuse("bad-repository", "fletch new --repo DIR", "%q is not an absolute path", l.Repo)
	}
	source, err := s.Git.Inspect(ctx, l.Repo, l.Base)
	if err != nil {
		return none, err
	}
	return launchPlan{launch: l, source: source, provider: provider, settings: settings, engine: engine}, nil
}

// agent is the record of one agent of the launch.
func (p launchPlan) agent(id state.AgentID, name string, all []string) state.Agent {
	a := state.Agent{
		ID: id, Name: name,
		Provider: p.provider.Name, Engine: p.engine.Name(), Tier: string(p.engine.Tier()),
		Network: string(p.settings.Network.Mode), Profile: p.launch.Profile, Status: state.Starting, Note: "making its workspace",
		Repo: p.source.Repo, Remote: p.source.Remote, Branch: "fletch/" + name, Base: p.source.Base,
		NotIncluded: p.source.Uncommitted,
		Task:        p.launch.Task, Command: p.launch.Command,
	}
	if len(all) > 1 {
		a.Group = strings.TrimSuffix(all[0], "-1")
	}
	return a
}

// settings reads the user's settings, and a named profile over them.
func (s *Supervisor) settings(name string) (profile.Settings, error) {
	settings, err := profile.Read(s.Home.Config())
	if err != nil || name == "" {
		return settings, err
	}
	return profile.Named(s.Home.Profiles(), name)
}

// provider finds a provider by name, the user's own files first.
func (s *Supervisor) provider(name string) (Provider, error) {
	known, faults := Providers(s.Home.Providers())
	var names []string
	for _, p := range known {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	for _, fault := range faults {
		if strings.Contains(fault.Error(), string(filepath.Separator)+name+".toml") {
			return Provider{}, fault
		}
	}
	return Provider{}, refuse("no-such-provider", "choose one of "+strings.Join(names, ", "), "there is no provider %q", name)
}

// check refuses what this provider cannot do.
func (p Provider) check(l state.Launch) error {
	if p.RunsCommand && len(l.Command) > 0 {
		return nil
	}
	if _, err := p.Find(lookup(l.Env, "PATH")); err != nil {
		return err
	}
	return nil
}

// lookup reads one variable of an environment; the last one counts, as exec
// does it.
func lookup(env []string, name string) string {
	value := ""
	for _, e := range env {
		if n, v, ok := strings.Cut(e, "="); ok && n == name {
			value = v
		}
	}
	return value
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// rules are the provider's ways to tell what an agent is doing, as a keeper
// takes them.
func (p Provider) rules(a state.Agent) keeper.StatusRules {
	out := keeper.StatusRules{Mode: p.Status.Source, Shell: p.RunsCommand && len(a.Command) == 0, Task: a.Task != ""}
	for _, rule := range []struct {
		status   state.Status
		patterns []*regexp.Regexp
	}{{state.Waiting, p.Status.Waiting}, {state.Working, p.Status.Working}, {state.Idle, p.Status.Idle}} {
		for _, pattern := range rule.patterns {
			out.Titles = append(out.Titles, keeper.TitleRule{Match: pattern.String(), Status: string(rule.status)})
		}
	}
	return out
}
