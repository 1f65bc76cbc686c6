package profile

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fletch/sandbox"
)

// write makes a file below dir and gives its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const everything = `
[network]
mode = "open"
allow = ["@provider", "*.example.com", "127.0.0.1:8443"]
deny = ["evil.example"]

[limits]
memory = "8g"
tmp = "512m"

[requests]
open = "bar"

[defaults]
provider = "claude"
engine = "docker"

[filesystem]
allow_read = ["/opt/sdk", "~/.config/tool"]

[env]
pass = ["MY_TOKEN"]
`

func TestMissingFileGivesTheDefaults(t *testing.T) {
	got, err := Read(filepath.Join(t.TempDir(), "config.toml"))
	if err != nil || !reflect.DeepEqual(got, Default()) {
		t.Errorf("%+v, %v", got, err)
	}
	empty, err := Read(write(t, t.TempDir(), "config.toml", "# nothing\n"))
	if err != nil || !reflect.DeepEqual(empty, Default()) {
		t.Errorf("empty file: %+v, %v", empty, err)
	}
}

func TestFileReplacesWhatItSets(t *testing.T) {
	got, err := Read(write(t, t.TempDir(), "config.toml", everything))
	want := Settings{
		Network:    Network{Mode: sandbox.NetworkOpen, Allow: []string{"@provider", "*.example.com", "127.0.0.1:8443"}, Deny: []string{"evil.example"}},
		Limits:     Limits{Memory: 8 << 30, Tmp: 512 << 20},
		Requests:   Requests{Open: "bar"},
		Defaults:   Defaults{Provider: "claude", Engine: "docker"},
		Filesystem: Filesystem{AllowRead: []string{"/opt/sdk", "~/.config/tool"}},
		Env:        Env{Pass: []string{"MY_TOKEN"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	none, err := Read(write(t, t.TempDir(), "config.toml", "network = {mode = \"none\"}\nlimits.memory = \"none\"\n"))
	if err != nil || none.Network.Mode != sandbox.NetworkNone || none.Limits.Memory != 0 || none.Limits.Tmp != 2<<30 {
		t.Errorf("%+v, %v", none, err)
	}
	if limits := got.SandboxLimits(); limits.Memory != 8<<30 || limits.TmpBytes != 512<<20 || limits.PIDs != 2048 {
		t.Errorf("limits %+v", limits)
	}
}

func TestFaultNamesFileLineColumnAndField(t *testing.T) {
	tests := []struct {
		text         string
		line, column int
		field, says  string
	}{
		{"[network]\nmdoe = \"none\"\n", 2, 1, "network.mdoe", "no such setting"},
		{"[network]\n  MODE = \"none\"\n", 2, 3, "network.MODE", "no such setting"},
		{"[nework]\nmode = \"none\"\n", 1, 2, "nework", "no such setting"},
		{"mode = \"none\"\n", 1, 1, "mode", "no such setting"},
		{"network = {mode = \"none\", x = 1}\n", 1, 27, "network.x", "no such setting"},
		{"[network]\nmode = \"nonne\"\n", 2, 8, "network.mode", "unknown word \"nonne\""},
		{"[network]\nmode = \"host\"\n", 2, 8, "network.mode", "never shared"},
		{"[network]\nmode = 1\n", 2, 8, "network.mode", "must be text in quotes"},
		{"[network]\nallow = \"a.com\"\n", 2, 9, "network.allow", "must be a list of texts"},
		{"[network]\nallow = [\n  \"a.com\",\n  \"https://b.com\"]\n", 4, 3, "network.allow[1]", "https"},
		{"[network]\nallow = [\"!a.com\"]\n", 2, 10, "network.allow[0]", "exclamation"},
		{"[network]\nallow = [\"10.0.0.1\"]\n", 2, 10, "network.allow[0]", "private address"},
		{"[network]\nallow = [\"@git\"]\n", 2, 10, "network.allow[0]", "cannot enforce"},
		{"[network]\nallow = [\"@gti\"]\n", 2, 10, "network.allow[0]", "unknown word"},
		{"[network]\ndeny = [\"!a.com\"]\n", 2, 9, "network.deny[0]", "exclamation"},
		{"[network]\ndeny = [\"@packages\"]\n", 2, 9, "network.deny[0]", "unknown word"},
		{"[network]\nallow = [1]\n", 2, 10, "network.allow", "must be"},
		{"[limits]\nmemory = \"4\"\n", 2, 10, "limits.memory", "not a size"},
		{"[limits]\nmemory = 4\n", 2, 10, "limits.memory", "must be text in quotes"},
		{"[limits]\nmemory = \"1k\"\n", 2, 10, "limits.memory", "too small"},
		{"[limits]\ntmp = \"none\"\n", 2, 7, "limits.tmp", "not a size"},
		{"[limits]\npids = 4\n", 2, 1, "limits.pids", "no such setting"},
		{"[requests]\nopen = \"never\"\n", 2, 8, "requests.open", "unknown word"},
		{"[defaults]\nprovider = \"../x\"\n", 2, 12, "defaults.provider", "unknown word"},
		{"[defaults]\nengine = \"\"\n", 2, 10, "defaults.engine", "unknown word"},
		{"[filesystem]\nallow_read = [\"opt\"]\n", 2, 15, "filesystem.allow_read[0]", "neither absolute"},
		{"[filesystem]\nallow_read = [\"/\"]\n", 2, 15, "filesystem.allow_read[0]", "all there is"},
		{"[filesystem]\nallow_read = [\"~\"]\n", 2, 15, "filesystem.allow_read[0]", "all there is"},
		{"[filesystem]\nallow_read = [\"~/..\"]\n", 2, 15, "filesystem.allow_read[0]", "leaves"},
		{"[filesystem]\nallow_read = [\"~/a/../..\"]\n", 2, 15, "filesystem.allow_read[0]", ".. steps"},
		{"[filesystem]\nallow_read = [\"/a/../etc\"]\n", 2, 15, "filesystem.allow_read[0]", ".. steps"},
		{"[filesystem]\nallow_read = [\"/a\\u0007\"]\n", 2, 15, "filesystem.allow_read[0]", "control"},
		{"[env]\npass = [\"A=1\"]\n", 2, 9, "env.pass[0]", "not the name"},
		{"[env]\npass = [\"GH_TOKEN\"]\n", 2, 9, "env.pass[0]", "never passed"},
		{"[env]\npass = [\"https_proxy\"]\n", 2, 9, "env.pass[0]", "never passed"},
		{"[network\n", 1, 9, "", "']'"},
		{"[network]\n[network]\n", 2, 2, "network", "already"},
		{"[network]\nmode = \"none\"\nmode = \"open\"\n", 3, 1, "mode", "already"},
		{"[[network]]\n", 1, 3, "network", "must be a table"},
		{"network = 1\n", 1, 11, "network", "must be a table"},
		{"a = \"\x1b[2J\"\n", 1, 6, "", "control"},
		{"\"\\u001b[2J\" = 1\n", 1, 1, "?[2J", "no such setting"},
	}
	for _, tt := range tests {
		path := write(t, t.TempDir(), "config.toml", tt.text)
		got, err := Read(path)
		var fault *Fault
		if !errors.As(err, &fault) {
			t.Errorf("%q: %v is no fault", tt.text, err)
			continue
		}
		if fault.File != path || fault.Line != tt.line || fault.Column != tt.column || fault.Field != tt.field || !strings.Contains(fault.Problem, tt.says) {
			t.Errorf("%q: %d:%d %q: %s; want %d:%d %q: …%s…", tt.text, fault.Line, fault.Column, fault.Field, fault.Problem, tt.line, tt.column, tt.field, tt.says)
		}
		if !reflect.DeepEqual(got, Settings{}) {
			t.Errorf("%q: settings %+v with an error", tt.text, got)
		}
		if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
			t.Errorf("%q: control bytes in %q", tt.text, err)
		}
	}
	_, err := Read(write(t, t.TempDir(), "config.toml", "[network]\nmdoe = 1\n"))
	var hinted interface {
		Hint() string
		Code() string
	}
	if !errors.As(err, &hinted) || hinted.Hint() != "known here: allow, deny, mode" || hinted.Code() != "bad-settings" {
		t.Errorf("%v has no hint", err)
	}
}

func TestFileThatIsNoFileOrTooLargeIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); err == nil {
		t.Error("a directory is read")
	}
	if _, err := Read(write(t, dir, "big.toml", strings.Repeat("#", maxFile+1))); err == nil {
		t.Error("a huge file is read")
	}
	if err := os.Symlink(write(t, dir, "real.toml", everything), filepath.Join(dir, "link.toml")); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(filepath.Join(dir, "link.toml")); err != nil {
		t.Errorf("a link, as dotfile managers make them: %v", err)
	}
}

func TestNamedProfileLiesOverTheSettings(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "agents")
	write(t, home, "config.toml", everything)
	write(t, dir, "careful.toml", "[network]\nmode = \"proxy\"\nallow = []\ndeny = [\"worse.example\"]\n[limits]\nmemory = \"1g\"\n")
	s, err := Named(dir, "careful")
	if err != nil {
		t.Fatal(err)
	}
	if s.Network.Mode != sandbox.NetworkProxy || len(s.Network.Allow) != 0 {
		t.Errorf("network %+v", s.Network)
	}
	if !reflect.DeepEqual(s.Network.Deny, []string{"evil.example", "worse.example"}) {
		t.Errorf("deny %v: what the settings deny must stay", s.Network.Deny)
	}
	if s.Limits.Memory != 1<<30 || s.Limits.Tmp != 512<<20 || s.Defaults.Provider != "claude" || s.Requests.Open != "bar" {
		t.Errorf("what the profile leaves alone changed: %+v", s)
	}
}

func TestProfileThatCannotBeHadIsRefusedWithAWayOut(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "agents")
	write(t, dir, "one.toml", "")
	write(t, dir, "bar.toml", "[requests]\nopen = \"bar\"\n")
	for name, says := range map[string]string{
		"two":                        "no such profile",
		".fletch/agents/x":           "profiles of a repository are not read",
		"./.fletch/agents/x.toml":    "profiles of a repository are not read",
		"../config":                  "profiles of a repository are not read",
		"one.toml":                   "given by name",
		"":                           "not a profile name",
		"..":                         "not a profile name",
		".hidden":                    "not a profile name",
		"a\x1b[2J":                   "not a profile name",
		"bar":                        "requests: no such setting",
		strings.Repeat("a", 65):      "not a profile name",
		`.fletch\agents\x`:           "profiles of a repository are not read",
		"/etc/fletch/agents/x.toml":  "profiles of a repository are not read",
		"one/../../../../etc/passwd": "profiles of a repository are not read",
	} {
		_, err := Named(dir, name)
		var hinted interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), says) || !errors.As(err, &hinted) || hinted.Hint() == "" {
			t.Errorf("Named(%q) = %v, want …%s… and a hint", name, err, says)
		}
	}
	if _, err := Named(dir, "two"); !strings.Contains(err.(interface{ Hint() string }).Hint(), "one") {
		t.Error("the hint does not say what there is")
	}
	write(t, home, "config.toml", "[broken")
	if _, err := Named(dir, "one"); err == nil {
		t.Error("a profile over broken settings is read")
	}
}

func TestRulesExpandTheirWords(t *testing.T) {
	hosts := []string{"api.anthropic.com"}
	tests := []struct {
		name    string
		network Network
		allowed []string
		denied  []string
	}{
		{"default", Default().Network, []string{"api.anthropic.com", "registry.npmjs.org", "proxy.golang.org", "pypi.org", "static.crates.io", "deb.debian.org"}, []string{"github.com", "example.com", "127.0.0.1"}},
		{"zero", Network{}, nil, []string{"api.anthropic.com", "registry.npmjs.org", "1.1.1.1"}},
		{"empty list", Network{Mode: sandbox.NetworkProxy}, nil, []string{"api.anthropic.com", "registry.npmjs.org"}},
		{"none", Network{Mode: sandbox.NetworkNone, Allow: []string{"a.com"}}, nil, []string{"a.com"}},
		{"unknown mode", Network{Mode: "host", Allow: []string{"a.com"}}, nil, []string{"a.com"}},
		{"no provider", Network{Mode: sandbox.NetworkProxy, Allow: []string{"@packages"}}, []string{"pypi.org"}, []string{"api.anthropic.com"}},
		{"deny beats a word", Network{Mode: sandbox.NetworkProxy, Allow: []string{"@packages"}, Deny: []string{"pypi.org"}}, []string{"crates.io"}, []string{"pypi.org"}},
		{"open", Network{Mode: sandbox.NetworkOpen, Deny: []string{"evil.example"}}, []string{"anything.example"}, []string{"evil.example", "127.0.0.1", "10.0.0.1", "169.254.169.254"}},
	}
	for _, tt := range tests {
		r, err := Settings{Network: tt.network}.Rules(hosts)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, host := range tt.allowed {
			if v := r.Decide(host, 443); !v.Allowed {
				t.Errorf("%s: %s is denied: %s", tt.name, host, v.Reason)
			}
		}
		for _, host := range tt.denied {
			if v := r.Decide(host, 443); v.Allowed {
				t.Errorf("%s: %s is allowed by %s", tt.name, host, v.Rule)
			}
		}
	}
	open := Settings{Network: Network{Mode: sandbox.NetworkOpen, Allow: []string{"127.0.0.1:8443", "git.example:22"}}}
	r, err := open.Rules(nil)
	if err != nil || !r.Decide("127.0.0.1", 8443).Allowed || !r.Decide("git.example", 22).Allowed || r.Decide("other.example", 22).Allowed {
		t.Errorf("open with entries of its own: %v", err)
	}
	if _, err := (Settings{Network: Network{Mode: sandbox.NetworkProxy, Allow: []string{"@git"}}}).Rules(nil); err == nil {
		t.Error("@git gives rules, though it cannot be enforced")
	}
}

func FuzzSettingsAreReadWholeOrNotAtAll(f *testing.F) {
	for _, seed := range []string{everything, "", "[network\n", "network = {allow = [\"a\"]}", "[[network]]", "a.b.\"c\" = [{x = 1}, [2]]", "[limits]\nmemory = 1.5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var file settingsFile
		doc, err := Decode("x.toml", []byte(text), &file)
		var fault *Fault
		if err != nil {
			if !errors.As(err, &fault) || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		s, err := file.over(Default(), doc)
		if err != nil {
			if !errors.As(err, &fault) || fault.Line == 0 || fault.Field == "" {
				t.Fatalf("%q: %v has no place", text, err)
			}
			return
		}
		if _, err := s.Rules(nil); err != nil {
			t.Fatalf("%q: accepted, but its rules are not: %v", text, err)
		}
	})
}
