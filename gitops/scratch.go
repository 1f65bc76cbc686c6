package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fletch/state"
)

// Sample is a throwaway repository for the demo and the benchmarks.
type Sample struct {
	Repo   string            // where it is made; must not exist
	Bare   string            // a bare repository that has its main branch too
	Remote string            // what origin is set to; empty: no origin
	Files  map[string]string // path below Repo → content
}

// Scratch makes the two repositories of s with git at path.
func Scratch(ctx context.Context, path string, s Sample) error {
	g := Git{Path: path}
	git := func(gitDir string, args ...string) error {
		_, err := g.read(ctx, host{
			args: args, gitDir: gitDir,
			env: []string{
				"GIT_AUTHOR_NAME=fletch demo", "GIT_AUTHOR_EMAIL=demo@localhost", "GIT_COMMITTER_NAME=fletch demo", "GIT_COMMITTER_EMAIL=demo@localhost",
				"GIT_ALLOW_PROTOCOL=file",
			},
		})
		return err
	}
	for name, content := range s.Files {
		file := filepath.Join(s.Repo, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("making the sample: %w", err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return fmt.Errorf("making the sample: %w", err)
		}
	}
	dotGit := filepath.Join(s.Repo, ".git")
	steps := [][]string{
		{"", "init", "-q", "-b", "main", "--", s.Repo},
		// Whoever watches may have no identity set up yet.
		{dotGit, "config", "user.name", "fletch demo"},
		{dotGit, "config", "user.email", "demo@localhost"},
		{dotGit, "--work-tree=" + s.Repo, "add", "-A"},
		{dotGit, "--work-tree=" + s.Repo, "commit", "-q", "-m", "A shop"},
		{"", "init", "-q", "--bare", "-b", "main", "--", s.Bare},
		{dotGit, "push", "-q", s.Bare, "main"},
	}
	if s.Remote != "" {
		steps = append(steps, []string{dotGit, "remote", "add", "origin", s.Remote})
	}
	for _, step := range steps {
		if err := git(step[0], step[1:]...); err != nil {
			return fmt.Errorf("making the sample: %w", err)
		}
	}
	return nil
}

// ListRefs reads every branch of a bare repository that fletch made.
func ListRefs(ctx context.Context, path, bare string) (map[string]state.Commit, error) {
	out, err := Git{Path: path}.read(ctx, host{gitDir: bare, args: []string{"for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"}})
	if err != nil {
		return nil, fmt.Errorf("reading branches: %w", err)
	}
	refs := map[string]state.Commit{}
	for line := range strings.Lines(string(out)) {
		if id, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[ref] = state.Commit(id)
		}
	}
	return refs, nil
}

// HTTPBackend finds git's own HTTP server program for the git at path.
func HTTPBackend(path string) (string, error) {
	out, err := Git{Path: path}.read(context.Background(), host{args: []string{"--exec-path"}})
	if err != nil {
		return "", fmt.Errorf("finding git's http-backend: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), nil
}
