package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// toolchainLeaves are the places below a home where programs for work are
// installed, and nothing else is. Each is shown alone; the folders above them
// hold keys, histories and the user's own settings.
var toolchainLeaves = []string{
	".local/bin", ".local/lib/node_modules", ".local/pipx/venvs",
	".cargo/bin", ".cargo/registry", ".cargo/git", ".rustup/toolchains", ".rustup/settings.toml", ".rustup/update-hashes",
	".nvm/versions", ".nvm/alias", ".fnm/node-versions", ".volta/bin", ".volta/tools", ".n/bin", ".n/lib",
	".pyenv/bin", ".pyenv/libexec", ".pyenv/plugins", ".pyenv/shims", ".pyenv/version", ".pyenv/versions",
	".rbenv/bin", ".rbenv/libexec", ".rbenv/shims", ".rbenv/versions", ".gem/ruby",
	"go/bin", "go/pkg", "sdk", ".goenv/versions", ".goenv/shims",
	".bun/bin", ".bun/install/cache", ".bun/install/global", ".deno/bin", ".yarn/bin", ".npm-global/bin", ".npm-global/lib", ".pnpm/bin",
	".asdf/bin", ".asdf/lib", ".asdf/installs", ".asdf/shims", ".asdf/plugins",
	".local/share/mise/installs", ".local/share/mise/shims", ".local/share/uv/python", ".local/share/uv/tools",
	".local/share/pnpm", ".local/share/fnm/node-versions",
	".sdkman/candidates", ".jenv/shims", ".jenv/versions", ".m2/wrapper", ".gradle/wrapper",
	".swiftly/bin", ".ghcup/bin", ".ghcup/ghc", ".cabal/bin", ".opam/opam-init", ".elan/bin", ".elan/toolchains",
	".juliaup/bin", ".julia/juliaup", ".dotnet", ".krew/bin", ".foundry/bin", ".zig", ".tfenv/bin", ".tfenv/versions",
	".nix-profile", "bin",
}

// maxLooked bounds how many entries of a folder are looked at for links and
// sockets.
const maxLooked = 4096

// Toolchains are the read-only mounts that make the user's own tools work
// inside: a fixed table of leaves below home, what the links in ~/.local/bin
// lead to, and every other directory of path, alone. All are optional, and
// left out when they are not there, hold a socket, or would show more than a
// leaf: the home itself, a folder above it, or a folder of the system that is
// in view anyway. Both arguments come from the client that asks for an agent;
// an empty one adds nothing.
func Toolchains(home, path string) []Mount {
	t := toolchains{}
	if isAbsolute(home) {
		t.home = home
		for _, leaf := range toolchainLeaves {
			t.add(filepath.Join(home, leaf))
		}
		t.targets(filepath.Join(home, ".local/bin"))
	}
	for _, dir := range filepath.SplitList(path) {
		if isAbsolute(dir) {
			t.add(dir)
		}
	}
	return t.mounts
}

// ProgramMounts are the read-only mounts that make the program at path run
// under that name, however many links lead to where it really lives. A
// program inside a node_modules is shown with all of that, since it loads its
// neighbours.
func ProgramMounts(home, path string) []Mount {
	t := toolchains{home: home}
	if !isAbsolute(path) {
		return nil
	}
	t.add(filepath.Dir(path))
	t.target(path)
	return t.mounts
}

type toolchains struct {
	home   string
	mounts []Mount
}

// add shows dir at its own name. When it is reached through links, the place
// they lead to is opened and shown at both names.
func (t *toolchains) add(dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !t.fits(dir) {
		return
	}
	if !isSystem(real) {
		if !t.fits(real) || holdsSocket(real) {
			return
		}
		t.show(Mount{Source: real, Optional: true})
	}
	if real != dir {
		t.show(Mount{Source: real, Target: dir, Optional: true})
	}
}

func (t *toolchains) show(m Mount) {
	if !slices.Contains(t.mounts, m) {
		t.mounts = append(t.mounts, m)
	}
}

// targets shows where the links in a folder of programs lead.
func (t *toolchains) targets(dir string) {
	folder, err := os.Open(dir)
	if err != nil {
		return
	}
	defer folder.Close() // only read
	entries, err := folder.ReadDir(maxLooked)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			t.target(filepath.Join(dir, e.Name()))
		}
	}
}

// target shows what one program's name leads to: a package where it is one,
// else the program alone. Its folder may be anything.
func (t *toolchains) target(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == path {
		return
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if i := strings.LastIndex(real, "/node_modules/"); i >= 0 {
		t.add(real[:i+len("/node_modules")])
		return
	}
	// A virtual environment runs from its own bin, and needs its lib.
	if venv := filepath.Dir(filepath.Dir(real)); filepath.Base(filepath.Dir(real)) == "bin" {
		if _, err := os.Stat(filepath.Join(venv, "pyvenv.cfg")); err == nil {
			t.add(venv)
			return
		}
	}
	if t.fits(real) {
		t.show(Mount{Source: real, Optional: true})
	}
}

// tooMuch are folders of a home that are never shown whole; secret are those
// of which nothing is.
var (
	tooMuch = []string{".", ".local", ".local/share", ".local/state", ".cache", ".config"}
	secret  = []string{".ssh", ".gnupg", ".aws", ".kube", ".docker", ".config", ".fletch", ".password-store", ".mozilla"}
)

// isSystem reports whether path is in view anyway.
func isSystem(path string) bool {
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"} {
		if Under(path, dir) {
			return true
		}
	}
	return false
}

// fits reports whether path is a leaf that may be shown: neither a home nor
// one of its broad or secret folders, nor anything above them, nor a first
// folder of the system, nor what no mount may touch.
func (t *toolchains) fits(path string) bool {
	if isSystem(path) || strings.Count(path, "/") < 2 {
		return false
	}
	for _, dir := range []string{"/proc", "/sys", "/dev", "/etc", "/run/fletch"} {
		if Under(path, dir) {
			return false
		}
	}
	for _, dir := range []string{"/var/tmp", "/var/run", "/run/user", "/run/fletch"} {
		if Under(dir, path) {
			return false
		}
	}
	if t.home == "" {
		return true
	}
	for _, home := range []string{t.home, resolved(t.home)} {
		for _, dir := range tooMuch {
			if Under(filepath.Join(home, dir), path) {
				return false
			}
		}
		for _, dir := range secret {
			if Under(path, filepath.Join(home, dir)) {
				return false
			}
		}
	}
	return true
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// holdsSocket reports whether something in the folder can be talked to: a
// read-only view of a socket is no less a way out than another.
func holdsSocket(dir string) bool {
	folder, err := os.Open(dir)
	if err != nil {
		return true // what cannot be looked at is not shown
	}
	defer folder.Close() // only read
	if info, err := folder.Stat(); err != nil || !info.IsDir() {
		return err != nil
	}
	entries, err := folder.ReadDir(maxLooked)
	for _, e := range entries {
		if e.Type()&fs.ModeSocket != 0 {
			return true
		}
	}
	return err != nil && len(entries) > 0
}

func isAbsolute(path string) bool {
	return strings.HasPrefix(path, "/") && filepath.Clean(path) == path && !strings.ContainsRune(path, 0)
}
