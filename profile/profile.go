// Package profile reads what a person has set: the settings file, and named
// profiles that overlay it. It turns them into network rules, limits and an
// environment. It only ever reads; a file it cannot read whole is refused
// whole, so that no denial in it is lost.
package profile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fletch/sandbox"
	"fletch/sandbox/egress"
)

// maxFile bounds a settings file.
const maxFile = 256 << 10

// Settings is everything a person can set. The zero value allows nothing:
// no network, nothing to read, no variable of theirs to pass. See [Default].
type Settings struct {
	Network    Network
	Limits     Limits
	Requests   Requests
	Defaults   Defaults
	Filesystem Filesystem
	Env        Env
}

// Network says what an agent may reach.
type Network struct {
	// Mode is NetworkNone, NetworkProxy (the lists below decide) or
	// NetworkOpen (every public host, and what the lists add).
	Mode sandbox.Network
	// Allow and Deny hold entries as [egress.Parse] reads them, without "!",
	// and the words @provider and @packages; deny beats allow.
	Allow []string
	Deny  []string
}

// Limits bound what an agent may use, in bytes.
type Limits struct {
	Memory int64 // 0: unlimited
	Tmp    int64 // 0: the engine's own default
}

// Requests says how a request comes before the person.
type Requests struct {
	Open string // "auto": its sheet opens by itself when nothing else does; "bar": never
}

// Defaults are what a new agent gets when nothing else is said. Empty words
// leave the choice to fletch.
type Defaults struct {
	Provider string
	Engine   string
}

// Filesystem says what an agent sees beside its own.
type Filesystem struct {
	// AllowRead are paths to show read-only: absolute, or "~/…" for below the
	// person's home, as they were written.
	AllowRead []string
}

// Env says which variables an agent gets.
type Env struct {
	Pass []string // names, beside those that are always passed; see [Environment]
}

// Default is what holds without any file.
func Default() Settings {
	return Settings{
		Network:  Network{Mode: sandbox.NetworkProxy, Allow: []string{"@provider", "@packages"}},
		Limits:   Limits{Memory: 4 << 30, Tmp: 2 << 30},
		Requests: Requests{Open: "auto"},
		Defaults: Defaults{Engine: "native"},
	}
}

// SandboxLimits is what the limits are for an engine.
func (s Settings) SandboxLimits() sandbox.Limits {
	return sandbox.Limits{Memory: s.Limits.Memory, TmpBytes: s.Limits.Tmp}.Or()
}

// Read reads the settings file at path over the defaults; a file that does
// not exist leaves them. A list in the file takes the place of the default
// one: an empty network.allow allows nothing. An error is a [*Fault] where
// the content is at fault, and the Settings are zero then.
func Read(path string) (Settings, error) {
	data, err := load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Settings{}, err
	}
	var f settingsFile
	doc, err := Decode(path, data, &f)
	if err != nil {
		return Settings{}, err
	}
	s, err := f.over(Default(), doc)
	if err != nil {
		return Settings{}, err
	}
	if f.Requests.Open != nil {
		if !slices.Contains([]string{"auto", "bar"}, *f.Requests.Open) {
			return Settings{}, doc.Fault("requests.open", unknownWord(*f.Requests.Open), `write "auto" or "bar"`)
		}
		s.Requests.Open = *f.Requests.Open
	}
	return s, nil
}

var profileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Named reads the user's profile <name>.toml in dir, the agents directory of
// FLETCH_HOME, over the settings in config.toml beside that directory. It has
// the same sections but requests. A list in a profile takes the place of the
// settings' list, except network.deny, which adds to it: what is denied once
// stays denied. Profiles of a repository (.fletch/agents) are not read by
// this version and are refused when given by path.
func Named(dir, name string) (Settings, error) {
	if strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".toml") {
		return Settings{}, &Missing{
			Name: name, problem: "a profile is given by name, and profiles of a repository are not read by this version",
			fix: "put it into " + dir + " as NAME.toml after reading it",
		}
	}
	if !profileName.MatchString(name) {
		return Settings{}, &Missing{Name: name, problem: "not a profile name", fix: "use letters, digits, dot, dash and underscore"}
	}
	base, err := Read(filepath.Join(filepath.Dir(filepath.Clean(dir)), "config.toml"))
	if err != nil {
		return Settings{}, err
	}
	path := filepath.Join(dir, name+".toml")
	data, err := load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, &Missing{Name: name, problem: "there is no such profile of yours, and profiles of a repository are not read by this version", fix: listed(dir)}
	}
	if err != nil {
		return Settings{}, err
	}
	var f profileFile
	doc, err := Decode(path, data, &f)
	if err != nil {
		return Settings{}, err
	}
	return f.over(base, doc)
}

// Missing is a profile that cannot be had.
type Missing struct {
	Name         string
	problem, fix string
}

func (m *Missing) Error() string {
	return fmt.Sprintf("profile %.80q: %s", m.Name, m.problem)
}

// Hint is the way out, for the line after the error.
func (m *Missing) Hint() string { return m.fix }

// Code is the stable word for scripts.
func (m *Missing) Code() string { return "no-such-profile" }

// listed names the profiles that are in dir.
func listed(dir string) string {
	found, _ := filepath.Glob(filepath.Join(dir, "*.toml")) // only a bad pattern is an error
	if len(found) == 0 {
		return "write " + filepath.Join(dir, "NAME.toml")
	}
	for i, path := range found {
		found[i] = printable(strings.TrimSuffix(filepath.Base(path), ".toml"))
	}
	return "there are: " + strings.Join(found, ", ")
}

// load reads a settings file: a regular file of bounded size.
func load(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Fault{File: path, Problem: "not a regular file"}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	if len(data) > maxFile {
		return nil, &Fault{File: path, Problem: fmt.Sprintf("larger than %d bytes", maxFile)}
	}
	return data, nil
}

// Rules are the network rules of an agent whose provider needs these hosts.
func (s Settings) Rules(provider []string) (egress.Rules, error) {
	return egress.Parse(s.Entries(provider))
}
