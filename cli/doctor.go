package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"fletch/gitops"
	"fletch/home"
	"fletch/hub/client"
	"fletch/hub/wire"
	"fletch/profile"
	"fletch/sandbox/engines"
	"fletch/state"
)

// check is one line of doctor.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it no agent can start
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "check everything fletch needs, with the fixes", Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error {
		checks := a.examine(c.Context())
		var broken []string
		for _, k := range checks {
			if k.Needed && !k.OK {
				broken = append(broken, k.Name)
			}
		}
		if err := a.showChecks(checks); err != nil {
			return err
		}
		if len(broken) > 0 {
			return wire.Errorf("not-ready", "the fixes stand above", "no agent can start: %s", strings.Join(broken, ", "))
		}
		return nil
	}}
}

func (a *app) showChecks(checks []check) error {
	if a.json {
		return a.print(checks)
	}
	for _, k := range checks {
		mark := "✓"
		switch {
		case !k.OK && k.Needed:
			mark = "✗"
		case !k.OK:
			mark = "○"
		}
		fmt.Fprintf(a.out, "%s %-18s %s\n", mark, k.Name, plain(k.Detail))
		if k.Fix != "" && !k.OK {
			fmt.Fprintf(a.out, "  %-18s %s\n", "", plain(k.Fix))
		}
	}
	return nil
}

// examine looks at everything without a hub, so that it works when the hub
// does not.
func (a *app) examine(ctx context.Context) []check {
	checks := []check{{Name: "system", OK: true, Detail: systemWords()}}
	add := func(name string, needed bool, err error, detail string) {
		k := check{Name: name, OK: err == nil, Needed: needed, Detail: detail}
		if err != nil {
			described := wire.Describe(err)
			k.Detail, k.Fix = described.Message, described.Way
		}
		checks = append(checks, k)
	}
	h, unusable := openHome()
	add("home", true, unusable, h.Dir())
	path, err := gitops.Find()
	add("git", true, err, path)
	for _, name := range engines.Names() {
		detail, err := probeEngine(ctx, name)
		add("engine "+name, name == "native", err, detail)
	}
	if unusable == nil {
		_, err := profile.Read(h.Config())
		add("settings", false, err, h.Config())
		checks = append(checks, examineHub(ctx, h)...)
	}
	if os.Getenv("TMUX") != "" {
		checks = append(checks, check{
			Name: "tmux", OK: true,
			Detail: "esc takes half a second with tmux's default (set -s escape-time 20); q does the same at once",
		})
	}
	return checks
}

func probeEngine(ctx context.Context, name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	engine, err := engines.New(name, self)
	if err != nil {
		return "", err
	}
	if err := engine.Probe(ctx); err != nil {
		return "", err
	}
	if detailed, ok := engine.(interface {
		Detail(context.Context) string
	}); ok {
		return detailed.Detail(ctx), nil
	}
	return "works", nil
}

// examineHub looks at a hub that runs; one that does not is no fault.
func examineHub(ctx context.Context, h home.Home) []check {
	c, err := client.Connect(ctx, h, client.Options{NoStart: true, Env: os.Environ()})
	if errors.Is(err, client.ErrNoHub) {
		return []check{{Name: "hub", OK: true, Detail: "not running; the next command starts it"}}
	}
	if err != nil {
		described := wire.Describe(err)
		return []check{{Name: "hub", Detail: described.Message, Fix: described.Way}}
	}
	defer c.Close()
	var checks []check
	if s, err := c.Status(ctx); err == nil {
		checks = append(checks, check{Name: "hub", OK: true, Detail: fmt.Sprintf("%s, pid %d, %d agents, %d live", s.Version, s.PID, s.Agents, s.Live)})
	}
	if head, err := c.Verify(ctx); err != nil {
		checks = append(checks, check{Name: "log", Detail: err.Error(), Fix: "keep a copy of state.db and state.head"})
	} else {
		checks = append(checks, check{Name: "log", OK: true, Detail: fmt.Sprintf("%d events, chain whole", head.Seq)})
	}
	if survey, err := c.Survey(ctx, ""); err == nil {
		checks = append(checks, check{Name: "providers", OK: true, Detail: providerWords(survey)})
	}
	return checks
}

func providerWords(s state.Survey) string {
	var there, missing []string
	for _, p := range s.Providers {
		if p.Usable {
			there = append(there, p.Name)
		} else {
			missing = append(missing, p.Name+" ("+p.Why+")")
		}
	}
	words := strings.Join(there, ", ")
	if len(missing) > 0 {
		words += "; not: " + strings.Join(missing, ", ")
	}
	return words
}

func systemWords() string {
	words := runtime.GOOS + "/" + runtime.GOARCH + ", fletch " + version()
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		words += ", kernel " + strings.TrimSpace(string(release))
	}
	return words
}
