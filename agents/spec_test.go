//go:build linux

package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fletch/home"
	"fletch/profile"
	"fletch/sandbox"
	"fletch/state"
)

// secrets is an environment full of what no agent may have.
var secrets = []string{
	"SSH_AUTH_SOCK=/run/agent.sock", "SSH_AGENT_PID=7", "GITHUB_TOKEN=ghp_1", "GH_TOKEN=ghp_2", "GITLAB_TOKEN=gl", "GITEA_TOKEN=gt",
	"GIT_ASKPASS=/bin/x", "GIT_SSH_COMMAND=ssh -i key", "GIT_DIR=/repo/.git", "GIT_CONFIG_COUNT=1",
	"http_proxy=http://corp:1", "HTTPS_PROXY=http://user:pw@corp:1", "ALL_PROXY=socks5://corp", "no_proxy=corp",
	"TMUX=/tmp/tmux-0/default,1,0", "STY=1.x", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/bus", "XAUTHORITY=/x", "DISPLAY=:0",
	"LD_PRELOAD=/evil.so", "BASH_ENV=/evil.sh", "VSCODE_IPC_HOOK=/x", "AWS_SECRET_ACCESS_KEY=aws", "FLETCH_HOME=/other", "FLETCH_MAILBOX=/other",
}

func (w *world) plan(command ...string) launchPlan {
	w.Helper()
	provider, err := w.provider("shell")
	if err != nil {
		w.Fatal(err)
	}
	return launchPlan{
		launch:   state.Launch{Command: command, Env: append([]string{"PATH=/usr/bin:/bin", "HOME=/home/ada", "LANG=C.UTF-8", "GOPATH=/go"}, secrets...)},
		provider: provider, settings: profile.Default(),
	}
}

func TestAnAgentsEnvironmentIsExactlyThis(t *testing.T) {
	w := newWorld(t)
	a := state.Agent{ID: one, Name: "fern", Branch: "fletch/fern"}
	got := w.environment(a, w.plan("true"), "/agent/home")
	want := []string{
		"ALL_PROXY=" + proxyURL, "COLORTERM=truecolor", "FLETCH_AGENT=fern", "FLETCH_BRANCH=fletch/fern",
		"FLETCH_MAILBOX=" + w.Home.Mailbox(string(one)), "GOPATH=/go", "HOME=/agent/home", "HTTPS_PROXY=" + proxyURL, "HTTP_PROXY=" + proxyURL,
		"LANG=C.UTF-8", "NO_PROXY=localhost,127.0.0.1,::1,[::1]", "PATH=/run/fletch/bin:/usr/bin:/bin", "TERM=xterm-256color",
		"http_proxy=" + proxyURL, "https_proxy=" + proxyURL, "no_proxy=localhost,127.0.0.1,::1,[::1]",
	}
	for _, e := range got {
		if !slices.Contains(want, e) && !strings.HasPrefix(e, "PS1=") {
			t.Errorf("it also has %s", e)
		}
	}
	for _, e := range want {
		if !slices.Contains(got, e) {
			t.Errorf("it lacks %s", e)
		}
	}
	if !slices.IsSorted(got) {
		t.Error("the order differs from start to start")
	}
}

func TestWithoutANetworkThereIsNoProxy(t *testing.T) {
	w := newWorld(t)
	plan := w.plan("true")
	plan.settings.Network.Mode = sandbox.NetworkNone
	for _, e := range w.environment(state.Agent{ID: one}, plan, "/h") {
		if strings.Contains(strings.ToLower(e), "proxy=") {
			t.Errorf("%s", e)
		}
	}
}

func TestAnOrderShowsExactlyTheAgentsOwnPlaces(t *testing.T) {
	w := newWorld(t)
	a := w.add(one, state.Starting, "true")
	plan := w.plan("true")
	plan.launch.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + filepath.Join(w.dir, "user")}
	order, err := w.order(a, plan)
	if err != nil {
		t.Fatal(err)
	}
	id := string(one)
	want := []sandbox.Mount{
		{Source: a.Workspace, Write: true},
		{Source: w.Home.AgentHome(id), Write: true},
		{Source: w.Home.Requests(id), Write: true},
		{Source: w.Home.Responses(id)},
	}
	if !slices.Equal(order.Spec.Mounts, want) {
		t.Errorf("mounts\n%+v, want\n%+v", order.Spec.Mounts, want)
	}
	if order.Spec.Dir != a.Workspace || order.Spec.Network != sandbox.NetworkProxy || order.Agent != id || order.Spec.Store != "store" {
		t.Errorf("%+v", order)
	}
	if *order.Spec.Terminal != defaultSize {
		t.Errorf("size %+v", *order.Spec.Terminal)
	}
	for _, m := range order.Spec.Mounts {
		if _, err := os.Stat(m.Source); err != nil {
			t.Errorf("%v", err)
		}
	}
	// The person's own additions are to be read only, and may be missing.
	plan.settings.Filesystem.AllowRead = []string{"~/data", "/srv/data"}
	order, err = w.order(a, plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range order.Spec.Mounts {
		if m.Write && !strings.HasPrefix(m.Source, w.Home.Dir()) {
			t.Errorf("%+v can be written", m)
		}
	}
	for _, source := range []string{filepath.Join(w.dir, "user", "data"), "/srv/data"} {
		if !slices.Contains(order.Spec.Mounts, sandbox.Mount{Source: source, Optional: true}) {
			t.Errorf("%s is not in view as it should be: %+v", source, order.Spec.Mounts)
		}
	}
}

func TestAScreenIsOfASizeThatCanBeDrawn(t *testing.T) {
	w := newWorld(t)
	a := w.add(one, state.Starting, "true")
	for asked, want := range map[sandbox.Size]sandbox.Size{
		{Cols: 0, Rows: 0}: defaultSize, {Cols: 100, Rows: 0}: defaultSize, {Cols: -1, Rows: 9}: defaultSize,
		{Cols: 100, Rows: 30}: {Cols: 100, Rows: 30}, {Cols: 9999, Rows: 9999}: {Cols: 500, Rows: 300},
	} {
		plan := w.plan("true")
		plan.launch.Cols, plan.launch.Rows = asked.Cols, asked.Rows
		order, err := w.order(a, plan)
		if err != nil {
			t.Fatal(err)
		}
		if *order.Spec.Terminal != want {
			t.Errorf("%+v gives %+v, want %+v", asked, *order.Spec.Terminal, want)
		}
	}
}

func TestAHomeIsPlantedBeforeTheFirstStartOnly(t *testing.T) {
	w := newWorld(t)
	a := w.add(one, state.Starting, "true")
	plan := w.plan("true")
	plan.provider.Files = []ProviderFile{{Path: "settings.json", Content: `{"in":"{workspace}"}`}}
	if _, err := w.order(a, plan); err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(w.Home.AgentHome(string(one)), "settings.json")
	if raw, err := os.ReadFile(planted); err != nil || string(raw) != `{"in":"`+a.Workspace+`"}` {
		t.Errorf("%q %v", raw, err)
	}
	// Later the agent may have put anything there: a link to a file of the
	// person's, or nothing.
	victim := filepath.Join(w.dir, "victim")
	if err := os.Remove(planted); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, planted); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.order(a, plan); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(victim); !os.IsNotExist(err) {
		t.Errorf("something was written through the agent's link (%v)", err)
	}
	if err := os.Remove(planted); err != nil {
		t.Fatal(err)
	}
	if _, err := w.order(a, plan); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(planted); !os.IsNotExist(err) {
		t.Errorf("it was planted again (%v)", err)
	}
}

func TestAKeeperGetsNothingOfTheHubsEnvironmentButWhatItNeeds(t *testing.T) {
	got := keeperEnv(append([]string{"PATH=/bin", "HOME=/h", "LANG=C", "XDG_RUNTIME_DIR=/run/user/0", "FLETCH_LOG=debug"}, secrets...))
	for _, e := range got {
		name, _, _ := strings.Cut(e, "=")
		if name != "PATH" && name != "HOME" && name != "LANG" && !strings.HasPrefix(name, "FLETCH_") {
			t.Errorf("it has %s", e)
		}
	}
	if !slices.Contains(got, "FLETCH_LOG=debug") || !slices.Contains(got, "PATH=/bin") {
		t.Errorf("%q", got)
	}
}

func TestNoExtraMountShowsFletchsOwnState(t *testing.T) {
	dir := t.TempDir() + "/h"
	h, err := home.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	s := &Supervisor{Config: Config{Home: h}}
	kept := s.withoutOurs([]sandbox.Mount{
		{Source: h.Dir()}, {Source: filepath.Dir(h.Dir())}, {Source: filepath.Join(h.Dir(), "run")}, {Source: "/"}, {Source: "/opt/tool"},
	})
	if len(kept) != 1 || kept[0].Source != "/opt/tool" {
		t.Errorf("kept %+v", kept)
	}
}
