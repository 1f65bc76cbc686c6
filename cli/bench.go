package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fletch/bench"
	"fletch/home"
	"fletch/hub/client"
)

func (a *app) benchCommand() *cobra.Command {
	return &cobra.Command{Use: "bench [NAME…]", Short: "measure fletch beside its yardsticks", RunE: func(c *cobra.Command, names []string) error {
		for _, n := range names {
			if !slices.Contains(bench.Names(), n) {
				return usage("choose from "+strings.Join(bench.Names(), ", "), "there is no measurement %q", n)
			}
		}
		return a.bench(c.Context(), names)
	}}
}

// bench measures in a home of its own, with a hub of its own.
func (a *app) bench(ctx context.Context, names []string) (err error) {
	// Not below /tmp: a home's sockets need a short path, and tmpfs is not
	// what people's repositories are on.
	dir, err := os.MkdirTemp("/var/tmp", "fletch-bench-")
	if err != nil {
		return fmt.Errorf("making a place to measure in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding fletch itself: %w", err)
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/sh",
		"FLETCH_HOME=" + filepath.Join(dir, "home"),
	}
	h, err := home.Open(filepath.Join(dir, "home"), "")
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, h, client.Options{Self: self, Env: env})
	if err != nil {
		return err
	}
	defer c.Close()
	defer func() { err = errors.Join(err, c.StopHub(context.WithoutCancel(ctx))) }()
	all := []bench.Row{}
	faults := bench.Run(ctx, bench.World{Self: self, Home: h.Dir(), Dir: dir, Env: env, Client: c}, names, func(r bench.Row) {
		all = append(all, r)
		if !a.json {
			fmt.Fprintf(a.err, "%s: %.3g %s\n", r.Name, r.Value, r.Unit)
		}
	})
	if a.json {
		return errors.Join(a.print(all), faults)
	}
	return errors.Join(bench.Write(a.out, all), faults)
}
