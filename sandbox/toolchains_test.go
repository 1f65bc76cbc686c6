package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// aHome makes a home with these entries; one that ends in a slash is a
// folder, "a -> b" a link.
func aHome(t *testing.T, entries ...string) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home = filepath.Join(home, "ada")
	for _, e := range entries {
		name, to, isLink := strings.Cut(e, " -> ")
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case isLink:
			err = os.Symlink(strings.ReplaceAll(to, "~", home), path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// shown lists what the mounts show, relative to home.
func shown(home string, mounts []Mount) []string {
	var out []string
	for _, m := range mounts {
		word := strings.TrimPrefix(m.Source, home+"/")
		if m.Target != "" {
			word += " at " + strings.TrimPrefix(m.Target, home+"/")
		}
		out = append(out, word)
	}
	slices.Sort(out)
	return out
}

func TestToolchainsShowLeavesAndNothingElseOfAHome(t *testing.T) {
	home := aHome(t, ".ssh/id_ed25519", ".aws/credentials", ".bash_history", ".config/gh/hosts.yml", ".local/share/keyrings/login",
		".cargo/bin/cargo", ".cargo/credentials.toml", ".rustup/toolchains/stable/bin/rustc", "go/bin/gopls", "go/src/secret/x.go",
		".local/bin/tool", "work/tools/x")
	path := strings.Join([]string{
		home, home + "/.ssh", home + "/.config/gh", home + "/.local/share", home + "/.local", filepath.Dir(home), "/", "/usr/bin", "/opt",
		home + "/work/tools", "relative", home + "/work/../.ssh", "",
	}, ":")
	got := shown(home, Toolchains(home, path))
	want := []string{".cargo/bin", ".local/bin", ".rustup/toolchains", "go/bin", "work/tools"}
	if !slices.Equal(got, want) {
		t.Errorf("shown are %q, want %q", got, want)
	}
	for _, m := range Toolchains(home, path) {
		if m.Write || !m.Optional {
			t.Errorf("%s is shown to write, or must exist", m.Source)
		}
	}
}

func TestToolchainsShowWhereLinksLead(t *testing.T) {
	home := aHome(t,
		".local/share/secret/key", ".local/share/tools/one", ".local/bin/one -> ~/.local/share/tools/one",
		".local/share/venvs/two/pyvenv.cfg", ".local/share/venvs/two/bin/two", ".local/bin/two -> ~/.local/share/venvs/two/bin/two",
		"lib/node_modules/three/cli.js", ".local/bin/three -> ~/lib/node_modules/three/cli.js",
		".local/bin/four -> /etc/passwd", ".local/bin/five -> ~/.ssh/key", ".ssh/key",
		"real/cargo/bin/", ".cargo -> ~/real/cargo")
	got := shown(home, Toolchains(home, ""))
	want := []string{
		".local/bin", ".local/share/tools/one", ".local/share/venvs/two", "lib/node_modules",
		"real/cargo/bin", "real/cargo/bin at .cargo/bin",
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("shown are %q, want %q", got, want)
	}
}

func TestToolchainsShowNoSocket(t *testing.T) {
	home := aHome(t, "a/bin/x", "b/x")
	short, err := os.MkdirTemp("", "s") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	l, err := net.Listen("unix", short+"/agent.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := Toolchains(home, short+":"+home+"/a/bin")
	if want := []string{"a/bin"}; !slices.Equal(shown(home, got), want) {
		t.Errorf("shown are %v", got)
	}
}

func TestAProgramIsShownUnderItsNameAndWhereItLives(t *testing.T) {
	home := aHome(t, "p/lib/node_modules/claude/cli.js", "p/bin/claude -> ../lib/node_modules/claude/cli.js",
		"v/2/bin/tool", "v/latest -> ~/v/2")
	if got, want := shown(home, ProgramMounts(home, home+"/p/bin/claude")), []string{"p/bin", "p/lib/node_modules"}; !slices.Equal(got, want) {
		t.Errorf("shown are %q, want %q", got, want)
	}
	if got, want := shown(home, ProgramMounts(home, home+"/v/latest/bin/tool")), []string{"v/2/bin", "v/2/bin at v/latest/bin", "v/2/bin/tool"}; !slices.Equal(got, want) {
		t.Errorf("shown are %q, want %q", got, want)
	}
}

func TestAnEmptyHomeAndPathShowNothing(t *testing.T) {
	if got := Toolchains("", ""); len(got) > 0 {
		t.Errorf("shown are %v", got)
	}
	if got := Toolchains("/", "/:/home:/usr/bin:/bin"); len(got) > 0 {
		t.Errorf("shown are %v", got)
	}
}
