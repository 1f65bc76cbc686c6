package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"fletch/profile"
	"fletch/sandbox/egress"
)

// providerFile is a provider as it is written.
type providerFile struct {
	Name          string   `toml:"name"`
	Title         string   `toml:"title"`
	Binary        string   `toml:"binary"`
	Hint          string   `toml:"hint"`
	Command       []string `toml:"command"`
	Resume        []string `toml:"resume"`
	RunsCommand   bool     `toml:"runs_command"`
	Hosts         []string `toml:"hosts"`
	Env           []string `toml:"env"`
	Pass          []string `toml:"pass"`
	LoginReadable bool     `toml:"login_readable"`
	Login         string   `toml:"login"`
	Files         []struct {
		Path    string `toml:"path"`
		Content string `toml:"content"`
	} `toml:"files"`
	Status struct {
		Source  string   `toml:"source"`
		OSC7501 bool     `toml:"osc7501"`
		Working []string `toml:"working"`
		Waiting []string `toml:"waiting"`
		Idle    []string `toml:"idle"`
	} `toml:"status"`
	Engines    []string `toml:"engines"`
	EnginesWhy string   `toml:"engines_why"`
	Unverified bool     `toml:"unverified"`
}

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	binaryName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)
)

// providerCheck holds one part of a file to its rules.
type providerCheck func(f *providerFile, doc *profile.Document) *profile.Fault

// parseProvider reads one file; stem is its name without ".toml", which must
// be the provider's.
func parseProvider(file, stem string, data []byte) (Provider, error) {
	var f providerFile
	doc, err := profile.Decode(file, data, &f)
	if err != nil {
		return Provider{}, err
	}
	if f.Name != stem {
		return Provider{}, doc.Fault("name", fmt.Sprintf("%.40q is not the file's name", f.Name), "rename the file or the provider")
	}
	for _, check := range []providerCheck{checkWords, checkCommands, checkHosts, checkVariables, checkFiles} {
		if fault := check(&f, doc); fault != nil {
			return Provider{}, fault
		}
	}
	status, fault := f.statusRules(doc)
	if fault != nil {
		return Provider{}, fault
	}
	p := Provider{
		Name: f.Name, Title: f.Title, Binary: f.Binary, Hint: f.Hint,
		Command: f.Command, Resume: f.Resume, RunsCommand: f.RunsCommand,
		Hosts: f.Hosts, Env: f.Env, Pass: f.Pass, LoginReadable: f.LoginReadable, Login: f.Login,
		Status: status, Engines: f.Engines, EnginesWhy: f.EnginesWhy, Unverified: f.Unverified,
	}
	if p.Title == "" {
		p.Title = p.Name
	}
	for _, file := range f.Files {
		p.Files = append(p.Files, ProviderFile{Path: file.Path, Content: file.Content})
	}
	return p, nil
}

func checkWords(f *providerFile, doc *profile.Document) *profile.Fault {
	if !providerName.MatchString(f.Name) {
		return doc.Fault("name", "a name has 1 to 32 lower-case letters, digits and hyphens", "")
	}
	for field, text := range map[string]string{"title": f.Title, "hint": f.Hint, "login": f.Login, "engines_why": f.EnginesWhy} {
		if len(text) > 200 || text != oneLine(text) {
			return doc.Fault(field, "must be one line of 200 bytes at most", "")
		}
	}
	for i, engine := range f.Engines {
		if !providerName.MatchString(engine) {
			return doc.Fault(fmt.Sprintf("engines[%d]", i), fmt.Sprintf("%.40q is not the name of an engine", engine), `like "native" or "docker"`)
		}
	}
	return nil
}

func checkCommands(f *providerFile, doc *profile.Document) *profile.Fault {
	if !binaryName.MatchString(f.Binary) && !(filepath.IsAbs(f.Binary) && filepath.Clean(f.Binary) == f.Binary && f.Binary == oneLine(f.Binary)) {
		return doc.Fault("binary", "must be the name of a program, or an absolute path to one", "")
	}
	if len(f.Command) == 0 {
		return doc.Fault("command", "is missing", fmt.Sprintf(`like ["%s", "{task}"]`, f.Binary))
	}
	marks := 0
	for field, argv := range map[string][]string{"command": f.Command, "resume": f.Resume} {
		for i, element := range argv {
			at := fmt.Sprintf("%s[%d]", field, i)
			switch {
			case i == 0 && element != f.Binary:
				return doc.Fault(at, "must be the binary", fmt.Sprintf("write %q", f.Binary))
			case strings.ContainsRune(element, 0):
				return doc.Fault(at, "has a zero byte in it", "")
			case field == "resume" && strings.Contains(element, taskMark):
				return doc.Fault(at, "a resumed agent has its task already", "")
			}
			marks += strings.Count(element, taskMark)
		}
	}
	if marks > 1 {
		return doc.Fault("command", "names the task more than once", "")
	}
	return nil
}

func checkHosts(f *providerFile, doc *profile.Document) *profile.Fault {
	for i, host := range f.Hosts {
		at := fmt.Sprintf("hosts[%d]", i)
		if strings.HasPrefix(host, "!") {
			return doc.Fault(at, "a provider denies nothing", "put the host into network.deny of the settings")
		}
		if _, err := egress.Parse([]string{host}); err != nil {
			return doc.Fault(at, fmt.Sprintf("%.80q is no entry of network rules", host), `like "api.example.com" or "127.0.0.1:11434"`)
		}
	}
	return nil
}

func checkVariables(f *providerFile, doc *profile.Document) *profile.Fault {
	for i, text := range f.Env {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !variableName.MatchString(name) || strings.ContainsRune(value, 0) || profile.Never(name) {
			return doc.Fault(fmt.Sprintf("env[%d]", i), "must be NAME=value, and no variable that is never passed", "")
		}
	}
	for i, name := range f.Pass {
		if !variableName.MatchString(name) || profile.Never(name) {
			return doc.Fault(fmt.Sprintf("pass[%d]", i), fmt.Sprintf("%.40q is no variable that can be passed", name), "forge tokens, git and agent sockets are never passed")
		}
	}
	return nil
}

func checkFiles(f *providerFile, doc *profile.Document) *profile.Fault {
	for i, file := range f.Files {
		at := fmt.Sprintf("files[%d].", i)
		if file.Path == "" || !filepath.IsLocal(file.Path) || path.Clean(file.Path) != file.Path || file.Path == "." || file.Path != oneLine(file.Path) || strings.Contains(file.Path, `\`) {
			return doc.Fault(at+"path", "must be a plain path below the agent's home", `like ".config/tool/settings.json"`)
		}
		filled := ProviderFile{Path: file.Path, Content: file.Content}.fill(`/a "b"\c`, []string{`A=x"y`})
		var err error
		var into map[string]any
		switch path.Ext(file.Path) {
		case ".json":
			err = json.Unmarshal([]byte(filled), &into)
		case ".toml":
			err = toml.Unmarshal([]byte(filled), &into)
		default:
			if filled != file.Content {
				return doc.Fault(at+"content", "only .json and .toml files have placeholders", "")
			}
		}
		if err != nil {
			return doc.Fault(at+"content", "is not what its name says it is: "+oneLine(err.Error()), "")
		}
	}
	return nil
}

// statusRules compiles the title patterns.
func (f *providerFile) statusRules(doc *profile.Document) (StatusRules, *profile.Fault) {
	rules := StatusRules{Source: f.Status.Source, OSC7501: f.Status.OSC7501}
	if rules.Source == "" {
		rules.Source = "activity"
	}
	if rules.Source != "shell" && rules.Source != "activity" {
		return StatusRules{}, doc.Fault("status.source", fmt.Sprintf("unknown word %.40q", rules.Source), `write "shell" or "activity"`)
	}
	fields := map[string][]string{"working": f.Status.Working, "waiting": f.Status.Waiting, "idle": f.Status.Idle}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		for i, text := range fields[field] {
			pattern, err := regexp.Compile(text)
			if err != nil {
				return StatusRules{}, doc.Fault(fmt.Sprintf("status.%s[%d]", field, i), oneLine(err.Error()), "patterns are RE2: https://github.com/google/re2/wiki/Syntax")
			}
			switch field {
			case "working":
				rules.Working = append(rules.Working, pattern)
			case "waiting":
				rules.Waiting = append(rules.Waiting, pattern)
			case "idle":
				rules.Idle = append(rules.Idle, pattern)
			}
		}
	}
	return rules, nil
}

var placeholder = regexp.MustCompile(`\{workspace\}|\{end:[A-Za-z_][A-Za-z0-9_]*\}`)

// endLength is how much of an API key Claude Code records as approved.
const endLength = 20

// fill puts the values in place of the placeholders, escaped as a JSON string
// is, which TOML's basic strings read the same way.
func (f ProviderFile) fill(workspace string, env []string) string {
	return placeholder.ReplaceAllStringFunc(f.Content, func(mark string) string {
		value := workspace
		if name, ok := strings.CutPrefix(mark, "{end:"); ok {
			value = lookup(env, strings.TrimSuffix(name, "}"))
			value = value[max(0, len(value)-endLength):]
		}
		quoted, err := json.Marshal(strings.ToValidUTF8(value, "\uFFFD"))
		if err != nil {
			return "" // a string always has a form
		}
		return string(quoted[1 : len(quoted)-1])
	})
}
