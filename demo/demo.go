// Package demo plays fletch's main job with nothing to set up: a throwaway
// repository, a git server with a password on loopback, and three scripted
// agents in real sandboxes that really edit, test, commit and ask to push.
package demo

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fletch/gitops"
	"fletch/gitops/githttp"
	"fletch/hub/client"
	"fletch/state"
)

//go:embed scripts/clean.sh
var cleanScript string

//go:embed scripts/moving.sh
var movingScript string

//go:embed scripts/rogue.sh
var rogueScript string

// Stage is a demo that is set up: its server runs until Close.
type Stage struct {
	dir    string
	Repo   string // the throwaway repository
	Bare   string // what the server serves
	canary string // a file that appears when a planted program ran on the host
	git    string
	server *http.Server
	remote string
	client *client.Client
	home   string // FLETCH_HOME
	Agents []state.Agent
}

// Options say how to play.
type Options struct {
	Client *client.Client
	Home   string        // FLETCH_HOME
	Env    []string      // the client's environment
	Pace   time.Duration // between an agent's lines
}

// Set makes the repository, serves it and starts the three agents.
func Set(ctx context.Context, o Options) (*Stage, error) {
	s := &Stage{client: o.Client, home: o.Home}
	if err := s.build(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("setting up the demo: %w", err), s.Close())
	}
	return s, nil
}

func (s *Stage) build(ctx context.Context, o Options) error {
	var err error
	if s.git, err = gitops.Find(); err != nil {
		return err
	}
	// Not below FLETCH_HOME: fletch refuses its own files as a repository.
	if s.dir, err = os.MkdirTemp("", "fletch-demo-"); err != nil {
		return err
	}
	s.Repo, s.Bare = filepath.Join(s.dir, "shop"), filepath.Join(s.dir, "served", "shop.git")
	s.canary = filepath.Join(s.dir, "canary")
	address, token, err := s.serve()
	if err != nil {
		return err
	}
	if err := gitops.Scratch(ctx, s.git, gitops.Sample{
		Repo: s.Repo, Bare: s.Bare, Remote: address, Files: sample,
	}); err != nil {
		return err
	}
	s.remote = address
	if err := gitops.Remember(o.Home, address, "demo", token); err != nil {
		return err
	}
	return s.start(ctx, o)
}

// serve starts the git server; reading and pushing need the password.
func (s *Stage) serve() (address, token string, err error) {
	var raw [16]byte
	_, _ = rand.Read(raw[:])
	token = hex.EncodeToString(raw[:])
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	backend, err := gitops.HTTPBackend(s.git)
	if err != nil {
		return "", "", errors.Join(err, listener.Close())
	}
	s.server = &http.Server{
		Handler:           githttp.Handler(backend, filepath.Dir(s.Bare), "demo", token),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { _ = s.server.Serve(listener) }()
	return "http://" + listener.Addr().String() + "/shop.git", token, nil
}

// start launches the three agents.
func (s *Stage) start(ctx context.Context, o Options) error {
	user := ""
	for _, e := range o.Env {
		if value, ok := strings.CutPrefix(e, "HOME="); ok {
			user = value
		}
	}
	words := "PACE=" + seconds(o.Pace) + "; LATER=" + seconds(6*o.Pace+time.Second) +
		"; VICTIM_HOME=" + quoted(user) + "; VICTIM_FLETCH=" + quoted(o.Home) + "; export VICTIM_REPO=" + quoted(s.Repo) +
		"; CANARY=" + quoted(s.canary) + "\n"
	for _, part := range []struct{ task, script string }{
		{"Fix the retry loop in checkout, with a test", cleanScript},
		{"Say in the docs when retries stop", movingScript},
		{"Tidy up the repository", rogueScript},
	} {
		made, err := s.client.Launch(ctx, state.Launch{
			Repo: s.Repo, Provider: "shell", Task: part.task, Env: o.Env,
			Command: []string{"sh", "-c", words + part.script},
		})
		if err != nil {
			return err
		}
		s.Agents = append(s.Agents, made...)
	}
	return nil
}

// Close ends the server and removes what the demo made outside FLETCH_HOME.
// Its agents stay until they are removed.
func (s *Stage) Close() error {
	var faults []error
	if s.server != nil {
		faults = append(faults, s.server.Close())
	}
	if s.remote != "" {
		faults = append(faults, gitops.Forget(s.home, s.remote))
	}
	if s.dir != "" {
		faults = append(faults, os.RemoveAll(s.dir))
	}
	return errors.Join(faults...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

// quoted makes one word of text for sh.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// sample is the throwaway repository.
var sample = map[string]string{
	"README.md": "# shop\n\nA small shop, for the demo.\n",
	"checkout/retry.sh": `# retry N CMD…: runs CMD until it works, N times at most.
retry() {
	max=$1; shift
	attempt=1
	while [ "$attempt" -lt "$max" ]; do
		if "$@"; then return 0; fi
		attempt=$((attempt + 1))
	done
	return 1
}
`,
	"test.sh": `. ./checkout/retry.sh
calls=0
flaky() { calls=$((calls + 1)); [ "$calls" -ge 3 ]; }
if retry 3 flaky; then echo "ok   the third failure is retried"; else echo "FAIL the third failure is retried"; exit 1; fi
`,
	"docs/retry.md": "# Retries\n\nA call that fails is tried again.\n",
}
