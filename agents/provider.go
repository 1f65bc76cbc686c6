package agents

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fletch/profile"
	"fletch/state"
)

// Provider is one agent CLI: how it is found, started and understood.
type Provider struct {
	Name   string // the word people and scripts use: "claude"
	Title  string // for a person: "Claude Code"
	Binary string // looked up on the client's PATH
	Hint   string // how to install it, one line

	// Command starts it, Command[0] being Binary. The element that holds
	// "{task}" gets the first task, or is left out when there is none.
	Command []string
	// Resume starts it where it left off; empty when it cannot.
	Resume []string
	// RunsCommand tells that a command given by the person takes the place of
	// Command. Otherwise it is further arguments.
	RunsCommand bool

	Hosts []string // what @provider stands for, as egress.Parse reads it
	Env   []string // NAME=value; "{home}" in it is the agent's own home
	Pass  []string // variables it gets from the client, besides those all get

	// LoginReadable tells that what is in Pass is a login that the agent,
	// and what it runs, can read: a person is shown that.
	LoginReadable bool
	Login         string // how to log in, one line; empty when it needs none

	Files  []ProviderFile
	Status StatusRules

	Engines    []string // that it runs in; empty for all
	EnginesWhy string   // why not in the others, one line
	Unverified bool     // written from documentation, not run end to end
}

// ProviderFile is a file that lies in the agent's home before its first
// start, so that no first-run dialog waits for a key.
type ProviderFile struct {
	Path string // below the home, with slashes
	// Content may hold {workspace}, and {end:NAME} for the last 20 characters
	// of a variable, in quotes; the values are escaped for JSON and TOML.
	Content string
}

// StatusRules say how to tell what an agent is doing. Whatever is read from a
// terminal can be forged by what runs in it: it is for display only.
type StatusRules struct {
	// Source is "shell" (working while output flows or another than the shell
	// is in the foreground) or "activity" (working while output flows).
	Source  string
	OSC7501 bool // it reports its state itself, when asked
	// Working, Waiting and Idle are patterns (RE2) of its window title.
	Working, Waiting, Idle []*regexp.Regexp
}

// Title gives the status that a window title tells, if it tells one.
func (r StatusRules) Title(title string) (state.Status, bool) {
	for _, rule := range []struct {
		status   state.Status
		patterns []*regexp.Regexp
	}{{state.Waiting, r.Waiting}, {state.Working, r.Working}, {state.Idle, r.Idle}} {
		if slices.ContainsFunc(rule.patterns, func(p *regexp.Regexp) bool { return p.MatchString(title) }) {
			return rule.status, true
		}
	}
	return "", false
}

//go:embed providers/*.toml
var builtin embed.FS

const (
	maxProviderFile = 64 << 10
	maxProviders    = 100
)

// Providers gives the built-in providers and those in dir, <name>.toml each,
// sorted by name; one in dir takes the place of a built-in of the same name.
// dir may be missing. A file that cannot be read costs only the provider it is
// named after, and its error names file, line and field; a built-in does not
// step in for it, since it may allow more than what was written.
func Providers(dir string) ([]Provider, []error) {
	known := map[string]Provider{}
	var faults []error
	add := func(files fs.FS, at string) {
		names, err := fs.Glob(files, "*.toml")
		if err == nil && len(names) > maxProviders {
			err = fmt.Errorf("%d provider files, %d at most", len(names), maxProviders)
			names = nil
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("reading providers in %s: %w", at, err))
		}
		for _, name := range names {
			p, err := readProvider(files, name, filepath.Join(at, name))
			if err != nil {
				faults = append(faults, err)
				delete(known, strings.TrimSuffix(name, ".toml"))
				continue
			}
			known[p.Name] = p
		}
	}
	own, err := fs.Sub(builtin, "providers")
	if err != nil {
		return nil, []error{fmt.Errorf("reading the built-in providers: %w", err)}
	}
	add(own, "built-in")
	if dir != "" {
		add(os.DirFS(dir), dir)
	}
	var all []Provider
	for _, p := range known {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Provider) int { return strings.Compare(a.Name, b.Name) })
	return all, faults
}

func readProvider(files fs.FS, name, shown string) (Provider, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return Provider{}, fmt.Errorf("reading %s: %w", shown, err)
	}
	if !info.Mode().IsRegular() {
		return Provider{}, &profile.Fault{File: shown, Problem: "not a regular file"}
	}
	file, err := files.Open(name)
	if err != nil {
		return Provider{}, fmt.Errorf("reading %s: %w", shown, err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxProviderFile+1))
	if err != nil {
		return Provider{}, fmt.Errorf("reading %s: %w", shown, err)
	}
	if len(data) > maxProviderFile {
		return Provider{}, &profile.Fault{File: shown, Problem: fmt.Sprintf("larger than %d bytes", maxProviderFile)}
	}
	return parseProvider(shown, strings.TrimSuffix(path.Base(name), ".toml"), data)
}

// Find gives the absolute path of the provider's binary on path, a PATH of
// absolute directories; empty and relative ones are passed over, since they
// would mean whatever lies in the current directory. The error is a
// [*NotInstalled].
func (p Provider) Find(path string) (string, error) {
	if filepath.IsAbs(p.Binary) {
		if runnable(p.Binary) {
			return p.Binary, nil
		}
		return "", &NotInstalled{Provider: p}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if at := filepath.Join(dir, p.Binary); runnable(at) {
			return at, nil
		}
	}
	return "", &NotInstalled{Provider: p}
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// NotInstalled is a provider whose binary is nowhere on the client's PATH.
type NotInstalled struct{ Provider Provider }

func (e *NotInstalled) Error() string { return e.Provider.Binary + " is not on PATH" }

// Hint is how to install it.
func (e *NotInstalled) Hint() string { return e.Provider.Hint }

// Code is the stable word for scripts.
func (e *NotInstalled) Code() string { return "provider-missing" }

// Runs refuses an engine that the provider does not run in, with the reason.
func (p Provider) Runs(engine string) error {
	if len(p.Engines) == 0 || slices.Contains(p.Engines, engine) {
		return nil
	}
	return &WrongEngine{Provider: p, Engine: engine}
}

// WrongEngine is an engine that a provider does not run in.
type WrongEngine struct {
	Provider Provider
	Engine   string
}

func (e *WrongEngine) Error() string {
	text := fmt.Sprintf("%s does not run in the engine %s", e.Provider.Title, e.Engine)
	if e.Provider.EnginesWhy != "" {
		text += ": " + e.Provider.EnginesWhy
	}
	return text
}

// Hint names the engines it does run in.
func (e *WrongEngine) Hint() string {
	return "use --engine " + strings.Join(e.Provider.Engines, " or --engine ")
}

// Code is the stable word for scripts.
func (e *WrongEngine) Code() string { return "wrong-engine" }

// taskMark stands for the first task in a command.
const taskMark = "{task}"

// Argv is what to run for a first task, which may be empty, and a command or
// further arguments given by the person. The caller may put what [Provider.Find]
// gave in place of the first element.
func (p Provider) Argv(task string, command []string) []string {
	if p.RunsCommand && len(command) > 0 {
		return slices.Clone(command)
	}
	var argv []string
	extra := command
	for _, element := range p.Command {
		if !strings.Contains(element, taskMark) {
			argv = append(argv, element)
			continue
		}
		// Before the task: behind it, some would not be read as options.
		argv = append(argv, extra...)
		extra = nil
		if task == "" {
			continue
		}
		text := task
		if element == taskMark && strings.HasPrefix(task, "-") {
			text = " " + task // a list in a task is no option
		}
		argv = append(argv, strings.ReplaceAll(element, taskMark, text))
	}
	return append(argv, extra...)
}

// plant puts the provider's files into an agent's home before its first
// start; env is the environment that {end:NAME} reads. Later starts must not:
// the agent may have put links in the way. A file that is there stays.
func (p Provider) plant(home, workspace string, env ...string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return fmt.Errorf("preparing %s: %w", p.Name, err)
	}
	defer func() { _ = root.Close() }()
	for _, f := range p.Files {
		if err := plantFile(root, f.Path, f.fill(workspace, env)); err != nil {
			return fmt.Errorf("preparing %s: %w", p.Name, err)
		}
	}
	return nil
}

func plantFile(root *os.Root, name, content string) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, content)
	return errors.Join(err, file.Close())
}
