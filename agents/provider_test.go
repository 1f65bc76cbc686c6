package agents

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"fletch/profile"
	"fletch/sandbox/egress"
	"fletch/state"
)

// builtIn gives a provider that comes with fletch.
func builtIn(t *testing.T, name string) Provider {
	t.Helper()
	all, faults := Providers("")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no provider %s", name)
	}
	return all[i]
}

func TestEveryBuiltInProviderIsWhole(t *testing.T) {
	all, faults := Providers(filepath.Join(t.TempDir(), "missing"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
		if p.Title == "" || p.Hint == "" || p.Binary == "" || len(p.Command) == 0 {
			t.Errorf("%s lacks words: %+v", p.Name, p)
		}
		if (p.Name != "shell") != slices.ContainsFunc(p.Command, func(e string) bool { return strings.Contains(e, taskMark) }) {
			t.Errorf("%s: command %q does not take the task as it should", p.Name, p.Command)
		}
		if len(p.Pass) > 0 != p.LoginReadable {
			t.Errorf("%s passes %v, but login_readable is %v", p.Name, p.Pass, p.LoginReadable)
		}
		if _, err := egress.Parse(p.Hosts); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if _, err := profile.Default().Rules(p.Hosts); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if want := []string{"antigravity", "claude", "codex", "cursor", "opencode", "pi", "shell"}; !slices.Equal(names, want) {
		t.Errorf("providers %v, want %v", names, want)
	}
}

func TestTaskIsOneArgumentAndLeftOutWhenEmpty(t *testing.T) {
	const task = "fix \"it\"; rm -rf /\n$(x)"
	tests := []struct {
		provider, task string
		command        []string
		want           []string
	}{
		{"claude", task, nil, []string{"claude", "--dangerously-skip-permissions", task}},
		{"claude", "", nil, []string{"claude", "--dangerously-skip-permissions"}},
		{"claude", "- a\n- b", nil, []string{"claude", "--dangerously-skip-permissions", " - a\n- b"}},
		{"claude", "--help", nil, []string{"claude", "--dangerously-skip-permissions", " --help"}},
		{"claude", "x", []string{"--model", "opus"}, []string{"claude", "--dangerously-skip-permissions", "--model", "opus", "x"}},
		{"claude", "", []string{"--model", "opus"}, []string{"claude", "--dangerously-skip-permissions", "--model", "opus"}},
		{"codex", task, nil, []string{"codex", "--dangerously-bypass-approvals-and-sandbox", task}},
		{"opencode", task, nil, []string{"opencode", "--auto", "--prompt=" + task}},
		{"opencode", "-x", nil, []string{"opencode", "--auto", "--prompt=-x"}},
		{"opencode", "", nil, []string{"opencode", "--auto"}},
		{"pi", "{task}", nil, []string{"pi", "{task}"}},
		{"antigravity", "x", nil, []string{"agy", "--dangerously-skip-permissions", "--prompt-interactive=x"}},
		{"shell", "ignored", []string{"make", "test"}, []string{"make", "test"}},
	}
	for _, tt := range tests {
		if got := builtIn(t, tt.provider).Argv(tt.task, tt.command); !slices.Equal(got, tt.want) {
			t.Errorf("%s %q %q: %q, want %q", tt.provider, tt.task, tt.command, got, tt.want)
		}
	}
	p := builtIn(t, "claude")
	p.Argv("x", nil)[0] = "changed"
	if p.Command[0] != "claude" {
		t.Error("Argv hands out the provider's own slice")
	}
}

func TestShellWithoutACommandIsThePersonsShell(t *testing.T) {
	argv := builtIn(t, "shell").Argv("", nil)
	if len(argv) != 3 || argv[0] != "sh" || argv[1] != "-c" || !strings.Contains(argv[2], `exec "$SHELL"`) {
		t.Errorf("%q", argv)
	}
}

// program makes an executable and gives its directory.
func program(t *testing.T, name string, mode fs.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBinaryIsFoundOnTheGivenPathOnly(t *testing.T) {
	p := builtIn(t, "claude")
	plain, good := program(t, "claude", 0o644), program(t, "claude", 0o755)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := p.Find(strings.Join([]string{"", ".", dir, plain, good}, string(filepath.ListSeparator)))
	if err != nil || got != filepath.Join(good, "claude") {
		t.Errorf("found %s, %v", got, err)
	}
	t.Chdir(good)
	for _, path := range []string{"", ":", ".", "../" + filepath.Base(good), plain, dir} {
		got, err := p.Find(path)
		var missing *NotInstalled
		if !errors.As(err, &missing) || err.Error() != "claude is not on PATH" || missing.Hint() != "npm install -g @anthropic-ai/claude-code" || missing.Code() == "" {
			t.Errorf("Find(%q) = %s, %v", path, got, err)
		}
	}
	p.Binary = filepath.Join(good, "claude")
	if got, err := p.Find(""); err != nil || got != p.Binary {
		t.Errorf("an absolute binary: %s, %v", got, err)
	}
}

func TestAntigravityIsRefusedInAContainerWithTheReason(t *testing.T) {
	p := builtIn(t, "antigravity")
	if err := p.Runs("native"); err != nil {
		t.Error(err)
	}
	err := p.Runs("docker")
	var wrong *WrongEngine
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "browser") || !strings.Contains(wrong.Hint(), "--engine native") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"claude", "codex", "opencode", "pi", "cursor", "shell"} {
		if err := builtIn(t, name).Runs("docker"); err != nil {
			t.Error(err)
		}
	}
}

func TestFirstRunFilesAreWhatTheCLIsRead(t *testing.T) {
	home, workspace := t.TempDir(), `/home/x/we "ird"\dir`
	key := "sk-ant-" + strings.Repeat("k", 30) + "-the-last-20-of-it!!"
	if err := builtIn(t, "claude").plant(home, workspace, "ANTHROPIC_API_KEY="+key); err != nil {
		t.Fatal(err)
	}
	var config struct {
		HasCompletedOnboarding bool
		Projects               map[string]struct{ HasTrustDialogAccepted bool }
		CustomAPIKeyResponses  struct{ Approved []string } `json:"customApiKeyResponses"`
	}
	read(t, json.Unmarshal, home, ".claude.json", &config)
	if !config.HasCompletedOnboarding || !config.Projects[workspace].HasTrustDialogAccepted || !slices.Equal(config.CustomAPIKeyResponses.Approved, []string{key[len(key)-20:]}) {
		t.Errorf("claude reads %+v", config)
	}
	var settings struct{ SkipDangerousModePermissionPrompt bool }
	read(t, json.Unmarshal, home, ".claude/settings.json", &settings)
	if !settings.SkipDangerousModePermissionPrompt {
		t.Error("claude asks before it works without asking")
	}
	raw, err := os.ReadFile(filepath.Join(home, ".claude.json"))
	if err != nil || strings.Contains(string(raw), key) {
		t.Error("the whole key lies in a file")
	}
	if info, err := os.Stat(filepath.Join(home, ".claude.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	if err := builtIn(t, "codex").plant(home, workspace); err != nil {
		t.Fatal(err)
	}
	var codex struct {
		Update   bool `toml:"check_for_update_on_startup"`
		Projects map[string]struct {
			Trust string `toml:"trust_level"`
		} `toml:"projects"`
	}
	codex.Update = true
	read(t, toml.Unmarshal, home, ".codex/config.toml", &codex)
	if codex.Update || codex.Projects[workspace].Trust != "trusted" {
		t.Errorf("codex reads %+v", codex)
	}
}

func read(t *testing.T, decode func([]byte, any) error, home, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(home, name))
	if err == nil {
		err = decode(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPlantedFilesNeverFollowALinkOrReplaceAFile(t *testing.T) {
	p := Provider{Name: "x", Files: []ProviderFile{{Path: ".tool/a.json", Content: "{}"}}}
	outside := t.TempDir()
	home := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(home, ".tool")); err != nil {
		t.Fatal(err)
	}
	if err := p.plant(home, "/w"); err == nil {
		t.Error("a link out of the home is followed")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("written outside: %v", left)
	}
	home = t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".tool"), 0o700); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(home, ".tool", "a.json")
	if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.plant(home, "/w"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(kept); string(got) != "mine" {
		t.Errorf("a file that was there became %q", got)
	}
}

// The titles are those the CLIs really set.
func TestTitlesTellTheStatus(t *testing.T) {
	tests := []struct {
		provider, title string
		want            state.Status
	}{
		{"claude", "◐ Mock task", state.Working},
		{"claude", "◑ Claude Code", state.Working},
		{"claude", "⠂ Mock task", state.Working},
		{"claude", "⠐ Mock task", state.Working},
		{"claude", "✳ Claude Code", state.Idle},
		{"claude", "Claude Code", ""}, // it speaks OSC 7501 then
		{"claude", "", ""},
		{"codex", "⠙ codex-tui", state.Working},
		{"codex", "⠇ do script:codex-approve | codex-perm", state.Working},
		{"codex", "[ . ] Action Required | do script:codex-approve | codex-perm", state.Waiting},
		{"codex", "[ ! ] Action Required | do script:codex-approve | codex-perm", state.Waiting},
		{"codex", "do it script:task | codex-perm", state.Idle},
		{"codex", "codex-perm", state.Idle},
		{"opencode", "OC | Mock task", ""},
		{"pi", "π - pi-tui", ""},
		{"shell", "root@host: ~", ""},
	}
	for _, tt := range tests {
		got, ok := builtIn(t, tt.provider).Status.Title(tt.title)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s %q: %q, want %q", tt.provider, tt.title, got, tt.want)
		}
	}
}

func userProviders(t *testing.T, files map[string]string) (all []Provider, faults []error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Providers(dir)
}

func TestBadFileCostsOnlyItsOwnProvider(t *testing.T) {
	all, faults := userProviders(t, map[string]string{
		"mine.toml":   "name = \"mine\"\nbinary = \"mine\"\ncommand = [\"mine\", \"{task}\"]\nhosts = [\"127.0.0.1:11434\"]\n",
		"pi.toml":     "name = \"pi\"\nbinary = \"mypi\"\ncommand = [\"mypi\"]\n",
		"codex.toml":  "name = \"codex\"\nbinary = \"codex\"\ncomand = []\n",
		"notes.txt":   "not a provider",
		"broken.toml": "name = ",
	})
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
		if p.Name == "pi" && p.Binary != "mypi" {
			t.Error("the user's file does not take the place of the built-in one")
		}
	}
	if want := []string{"antigravity", "claude", "cursor", "mine", "opencode", "pi", "shell"}; !slices.Equal(names, want) {
		t.Errorf("providers %v, want %v: what was written for codex may allow less than the built-in", names, want)
	}
	if len(faults) != 2 {
		t.Fatalf("faults %v", faults)
	}
	var fault *profile.Fault
	if !errors.As(faults[1], &fault) || fault.Line != 3 || fault.Field != "comand" || !strings.HasSuffix(fault.File, "codex.toml") || !strings.Contains(fault.Hint(), "command") {
		t.Errorf("%#v", faults[1])
	}
}

func TestBadProviderIsRefusedAtItsPlace(t *testing.T) {
	const good = "name = \"x\"\nbinary = \"x\"\n"
	tests := []struct {
		text  string
		field string
		line  int
	}{
		{"name = \"y\"\nbinary = \"x\"\ncommand = [\"x\"]", "name", 1},
		{"name = \"x\"\nbinary = \"./x\"\ncommand = [\"./x\"]", "binary", 2},
		{"name = \"x\"\nbinary = \"a b\"\ncommand = [\"a b\"]", "binary", 2},
		{"name = \"x\"\nbinary = \"/a/../b\"\ncommand = [\"/a/../b\"]", "binary", 2},
		{good, "command", 0},
		{good + "command = [\"y\"]", "command[0]", 3},
		{good + "command = [\"x\", \"{task}\", \"{task}\"]", "command", 3},
		{good + "command = [\"x\", \"a\\u0000\"]", "command[1]", 3},
		{good + "command = [\"x\"]\nresume = [\"x\", \"{task}\"]", "resume[1]", 4},
		{good + "command = [\"x\"]\nhosts = [\"https://a\"]", "hosts[0]", 4},
		{good + "command = [\"x\"]\nhosts = [\"a.com\", \"!b.com\"]", "hosts[1]", 4},
		{good + "command = [\"x\"]\nenv = [\"A\"]", "env[0]", 4},
		{good + "command = [\"x\"]\nenv = [\"LD_PRELOAD=/x\"]", "env[0]", 4},
		{good + "command = [\"x\"]\npass = [\"GH_TOKEN\"]", "pass[0]", 4},
		{good + "command = [\"x\"]\npass = [\"A=b\"]", "pass[0]", 4},
		{good + "command = [\"x\"]\ntitle = \"a\\u001b[2J\"", "title", 4},
		{good + "command = [\"x\"]\nengines = [\"Native\"]", "engines[0]", 4},
		{good + "command = [\"x\"]\n[status]\nsource = \"magic\"", "status.source", 5},
		{good + "command = [\"x\"]\n[status]\nidle = [\"a\", \"(\"]", "status.idle[1]", 5},
		{good + "command = [\"x\"]\n[[files]]\npath = \"../a\"", "files[0].path", 5},
		{good + "command = [\"x\"]\n[[files]]\npath = \"a\"\n[[files]]\npath = \"/a\"", "files[1].path", 7},
		{good + "command = [\"x\"]\n[[files]]\npath = \"a.json\"\ncontent = \"{\"", "files[0].content", 6},
		{good + "command = [\"x\"]\n[[files]]\npath = \"a.sh\"\ncontent = \"cd {workspace}\"", "files[0].content", 6},
	}
	for _, tt := range tests {
		_, err := parseProvider("x.toml", "x", []byte(tt.text))
		var fault *profile.Fault
		if !errors.As(err, &fault) || fault.Field != tt.field || fault.Line != tt.line {
			t.Errorf("%q: %v, want a fault of %s in line %d", tt.text, err, tt.field, tt.line)
		}
	}
	if _, err := parseProvider("x.toml", "x", []byte(good+"command = [\"x\"]")); err != nil {
		t.Errorf("the tests' own provider is bad: %v", err)
	}
}

func FuzzProviderIsReadWholeOrRefused(f *testing.F) {
	files, err := fs.Glob(builtin, "providers/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := fs.ReadFile(builtin, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.TrimSuffix(filepath.Base(name), ".toml"), string(data), "task")
	}
	f.Fuzz(func(t *testing.T, stem, text, task string) {
		p, err := parseProvider("x.toml", stem, []byte(text))
		if err != nil {
			var fault *profile.Fault
			if !errors.As(err, &fault) || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		if argv := p.Argv(task, nil); len(argv) == 0 || argv[0] != p.Binary {
			t.Fatalf("%q runs %q", text, argv)
		}
	})
}
