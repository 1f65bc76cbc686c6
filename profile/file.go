package profile

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fletch/sandbox"
	"fletch/sandbox/egress"
)

// profileFile is a profile as it is written. Pointers tell what was set from
// what was left alone.
type profileFile struct {
	Network struct {
		Mode  *string   `toml:"mode"`
		Allow *[]string `toml:"allow"`
		Deny  *[]string `toml:"deny"`
	} `toml:"network"`
	Limits struct {
		Memory *string `toml:"memory"`
		Tmp    *string `toml:"tmp"`
	} `toml:"limits"`
	Defaults struct {
		Provider *string `toml:"provider"`
		Engine   *string `toml:"engine"`
	} `toml:"defaults"`
	Filesystem struct {
		AllowRead *[]string `toml:"allow_read"`
	} `toml:"filesystem"`
	Env struct {
		Pass *[]string `toml:"pass"`
	} `toml:"env"`
}

// settingsFile is the settings file as it is written.
type settingsFile struct {
	profileFile
	Requests struct {
		Open *string `toml:"open"`
	} `toml:"requests"`
}

// over puts what f sets over s.
func (f *profileFile) over(s Settings, doc *Document) (Settings, error) {
	for _, part := range []func(*Settings, *Document) error{f.network, f.limits, f.defaults, f.filesystem, f.env} {
		if err := part(&s, doc); err != nil {
			return Settings{}, err
		}
	}
	return s, nil
}

func (f *profileFile) network(s *Settings, doc *Document) error {
	if f.Network.Mode != nil {
		switch word := *f.Network.Mode; word {
		case "none":
			s.Network.Mode = sandbox.NetworkNone
		case "proxy":
			s.Network.Mode = sandbox.NetworkProxy
		case "open", "bridge":
			s.Network.Mode = sandbox.NetworkOpen
		case "host":
			return doc.Fault("network.mode", "the network of this machine itself is never shared with an agent", `write "proxy", "none" or "open"`)
		default:
			return doc.Fault("network.mode", unknownWord(word), `write "proxy", "none" or "open"`)
		}
	}
	for i, entry := range deref(f.Network.Allow) {
		if err := checkEntry(doc, fmt.Sprintf("network.allow[%d]", i), entry, ""); err != nil {
			return err
		}
	}
	for i, entry := range deref(f.Network.Deny) {
		if err := checkEntry(doc, fmt.Sprintf("network.deny[%d]", i), entry, "!"); err != nil {
			return err
		}
	}
	if f.Network.Allow != nil {
		s.Network.Allow = *f.Network.Allow
	}
	s.Network.Deny = slices.Concat(s.Network.Deny, deref(f.Network.Deny))
	return nil
}

// checkEntry holds an entry of a list to what egress reads; mark is "!" for
// a denial.
func checkEntry(doc *Document, field, entry, mark string) error {
	switch {
	case strings.HasPrefix(entry, "!"):
		return doc.Fault(field, "an exclamation mark has no place here", "put the host into network.deny")
	case entry == "@git":
		return doc.Fault(field, "@git needs read-only access to Git hosts, which this version cannot enforce",
			"list the host itself, like github.com: an agent that has a credential for it can then push there, past every request")
	case mark == "" && (entry == "@provider" || entry == "@packages"):
		return nil
	case strings.HasPrefix(entry, "@"):
		return doc.Fault(field, unknownWord(entry), "hosts, @provider or @packages (in allow)")
	}
	if _, err := egress.Parse([]string{mark + entry}); err != nil {
		problem := err.Error()
		if i := strings.LastIndex(problem, "): "); i >= 0 {
			problem = problem[i+len("): "):] // without the index, which the field has
		}
		return doc.Fault(field, fmt.Sprintf("%.80q: %s", entry, problem), `like "api.example.com", "*.example.com", "git.example.com:22" or "127.0.0.1:8443"`)
	}
	return nil
}

func (f *profileFile) limits(s *Settings, doc *Document) error {
	if f.Limits.Memory != nil {
		n, err := parseSize(*f.Limits.Memory, 64<<20)
		if err != nil && *f.Limits.Memory != "none" {
			return doc.Fault("limits.memory", err.Error(), `like "4g" or "512m", or "none"`)
		}
		s.Limits.Memory = n
	}
	if f.Limits.Tmp != nil {
		n, err := parseSize(*f.Limits.Tmp, 1<<20)
		if err != nil {
			return doc.Fault("limits.tmp", err.Error(), `like "4g" or "512m"`)
		}
		s.Limits.Tmp = n
	}
	return nil
}

var sizeForm = regexp.MustCompile(`^([0-9]{1,6})([kmgtKMGT])(i?[bB])?$`)

// parseSize reads a size like "4g", "512m", "2GiB"; units are powers of 1024.
func parseSize(text string, least int64) (int64, error) {
	part := sizeForm.FindStringSubmatch(text)
	if part == nil {
		return 0, fmt.Errorf("%.40q is not a size", text)
	}
	n, _ := strconv.ParseInt(part[1], 10, 64) // six digits fit
	n <<= 10 * (1 + strings.Index("kmgt", strings.ToLower(part[2])))
	if n < least {
		return 0, fmt.Errorf("%.40q is too small to work with, %d MiB at least", text, least>>20)
	}
	return n, nil
}

var word = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

func (f *profileFile) defaults(s *Settings, doc *Document) error {
	for _, d := range []struct {
		field string
		from  *string
		to    *string
	}{{"defaults.provider", f.Defaults.Provider, &s.Defaults.Provider}, {"defaults.engine", f.Defaults.Engine, &s.Defaults.Engine}} {
		if d.from == nil {
			continue
		}
		if !word.MatchString(*d.from) {
			return doc.Fault(d.field, unknownWord(*d.from), "a name of lower-case letters, digits and hyphens")
		}
		*d.to = *d.from
	}
	return nil
}

func (f *profileFile) filesystem(s *Settings, doc *Document) error {
	for i, path := range deref(f.Filesystem.AllowRead) {
		if problem := checkPath(path); problem != "" {
			return doc.Fault(fmt.Sprintf("filesystem.allow_read[%d]", i), fmt.Sprintf("%.80q %s", path, problem), `like "/opt/sdk" or "~/.config/tool"`)
		}
	}
	if f.Filesystem.AllowRead != nil {
		s.Filesystem.AllowRead = *f.Filesystem.AllowRead
	}
	return nil
}

// checkPath says what is wrong with a path to show, or nothing.
func checkPath(path string) string {
	rest, below := strings.CutPrefix(path, "~/")
	switch {
	case path == "~" || path == "~/" || path == "/":
		return "is all there is: name what is needed of it"
	case !below && !filepath.IsAbs(path):
		return "is neither absolute nor below ~/"
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "has a control byte in it"
	case below && filepath.Clean(rest) != strings.TrimSuffix(rest, "/") || !below && filepath.Clean(path) != strings.TrimSuffix(path, "/"):
		return "has empty, . or .. steps in it"
	case strings.HasPrefix(rest, "..") && below:
		return "leaves the home"
	}
	return ""
}

func (f *profileFile) env(s *Settings, doc *Document) error {
	for i, name := range deref(f.Env.Pass) {
		field := fmt.Sprintf("env.pass[%d]", i)
		if !variable.MatchString(name) {
			return doc.Fault(field, fmt.Sprintf("%.80q is not the name of a variable", name), "names only, each on its own: no values, no stars")
		}
		if Never(name) {
			return doc.Fault(field, name+" is never passed to an agent", "it gives away your identity or reaches out of the sandbox")
		}
	}
	if f.Env.Pass != nil {
		s.Env.Pass = *f.Env.Pass
	}
	return nil
}

func unknownWord(text string) string { return fmt.Sprintf("unknown word %.40q", text) }

func deref(list *[]string) []string {
	if list == nil {
		return nil
	}
	return *list
}
