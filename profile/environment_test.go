package profile

import (
	"slices"
	"strings"
	"testing"
)

func TestEnvironmentPassesOnlyWhatIsListed(t *testing.T) {
	client := []string{
		"HOME=/home/x", "PATH=/bin", "LANG=C.UTF-8", "LC_ALL=C", "LC_TERMINAL=iTerm2", "TERM=xterm", "TERM_PROGRAM=x", "TZ=UTC", "NO_COLOR=1",
		"GOPATH=/go", "GOPROXY=https://proxy.example,direct", "CARGO_HOME=/c", "NVM_DIR=/n", "JAVA_HOME=/j", "npm_config_registry=https://r.example",
		"ANTHROPIC_API_KEY=k", "MY_TOKEN=m", "AWS_SECRET_ACCESS_KEY=a", "NODE_OPTIONS=--require x", "RANDOM_THING=r", "PWD=/x", "OLDPWD=/y", "_=/bin/env",
		"DISPLAY=:0", "XDG_RUNTIME_DIR=/run/user/1", "DOCKER_HOST=unix:///x", "PYTHONSTARTUP=/x", "PROMPT_COMMAND=x",
	}
	s := Settings{Env: Env{Pass: []string{"MY_TOKEN", "NOT_SET"}}}
	got := Environment(client, s, []string{"ANTHROPIC_API_KEY"})
	want := []string{
		"ANTHROPIC_API_KEY=k", "CARGO_HOME=/c", "GOPATH=/go", "GOPROXY=https://proxy.example,direct", "HOME=/home/x", "JAVA_HOME=/j", "LANG=C.UTF-8", "LC_ALL=C", "LC_TERMINAL=iTerm2",
		"MY_TOKEN=m", "NO_COLOR=1", "NVM_DIR=/n", "PATH=/bin", "TERM=xterm", "TERM_PROGRAM=x", "TZ=UTC", "npm_config_registry=https://r.example",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNeverBeatsEveryList(t *testing.T) {
	names := []string{
		"GH_TOKEN", "GITHUB_TOKEN", "GITHUB_PAT", "GITLAB_TOKEN", "GITEA_TOKEN", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS",
		"GIT_DIR", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_CONFIG_COUNT", "TMUX", "TMUX_PANE", "STY", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY",
		"LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "VSCODE_GIT_IPC_HANDLE", "FLETCH_HOME",
		"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "ftp_proxy",
		"npm_config_proxy", "npm_config_https_proxy", "npm_config_noproxy", "NPM_CONFIG_HTTPS_PROXY",
	}
	var client []string
	for _, name := range names {
		client = append(client, name+"=x")
		if !Never(name) {
			t.Errorf("%s can be passed", name)
		}
	}
	if got := Environment(client, Settings{Env: Env{Pass: names}}, names); len(got) > 0 {
		t.Errorf("passed: %q", got)
	}
	for _, name := range passed {
		if Never(name) {
			t.Errorf("%s is passed and never passed", name)
		}
	}
}

func TestEnvironmentNamesNothingTwiceAndTakesTheLater(t *testing.T) {
	got := Environment([]string{"PATH=/a", "HOME=/h", "PATH=/b", "PATH", "=x", "HO ME=x", "LANG=a\x00b"}, Settings{Env: Env{Pass: []string{"HOME", "HOME"}}}, []string{"HOME"})
	if want := []string{"HOME=/h", "PATH=/b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEnvironmentKeepsPasswordsInAddressesBackUnlessNamed(t *testing.T) {
	client := []string{"GOPROXY=https://me:token@proxy.example", "PIP_INDEX_URL=https://token@pypi.example/simple", "LANG=C"}
	if got := Environment(client, Settings{}, nil); !slices.Equal(got, []string{"LANG=C"}) {
		t.Errorf("got %q", got)
	}
	if got := Environment(client, Settings{Env: Env{Pass: []string{"GOPROXY"}}}, nil); len(got) != 2 {
		t.Errorf("named, got %q", got)
	}
}

func TestVariableTooLongToStartAProgramIsLeftOut(t *testing.T) {
	long := "PATH=" + strings.Repeat("a", maxVariable-len("PATH=")-1)
	if got := Environment([]string{long}, Settings{}, nil); len(got) != 1 {
		t.Error("the longest possible one is left out")
	}
	if got := Environment([]string{long + "a"}, Settings{}, nil); len(got) != 0 {
		t.Error("one byte more is passed")
	}
}
