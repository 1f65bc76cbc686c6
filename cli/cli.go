// Package cli is the command line: it parses arguments, wires the parts
// together and prints errors with the way out. It has no rules of its own.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fletch/home"
	"fletch/hub/client"
	"fletch/hub/wire"
)

// Version is set by the linker from git describe.
var Version = ""

// Exit codes, as documented: every command uses these.
const (
	exitDone    = 0
	exitRefused = 1
	exitUsage   = 2
	exitWaiting = 3
)

// exitError ends a command with a code of its own; err may be nil when all
// was said.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// app is one run of the command line.
type app struct {
	in       io.Reader
	out, err io.Writer
	json     bool
}

// Main runs fletch and returns its exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	if code, hidden := inner(args); hidden {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	a := &app{in: in, out: out, err: errOut, json: wantsJSON(args)}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	return a.report(root.ExecuteContext(ctx))
}

// wantsJSON looks for --json before the flags are read, so that even a mistake
// in them is told in JSON. What comes after -- is another program's.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		if arg == "--json" {
			return true
		}
		if arg == "--" {
			return false
		}
	}
	return false
}

// report prints an error the way every command does and returns the exit
// code.
func (a *app) report(err error) int {
	if err == nil {
		return exitDone
	}
	code := exitRefused
	var exit exitError
	if errors.As(err, &exit) {
		code = exit.code
		if exit.err == nil {
			return code
		}
	}
	described := wire.Describe(err)
	if a.json {
		_ = json.NewEncoder(a.err).Encode(wire.Failure{Error: described})
		return code
	}
	fmt.Fprintf(a.err, "error: %s\n", plain(described.Message))
	if described.Way != "" {
		fmt.Fprintf(a.err, "hint: %s\n", plain(described.Way))
	}
	return code
}

// usage is a mistake in how a command was called.
func usage(hint, format string, args ...any) error {
	return exitError{exitUsage, wire.Errorf("usage", hint, format, args...)}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "fletch",
		Short:         "a fleet of sealed coding agents, and a gate for what they publish",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          a.dashboard,
	}
	root.PersistentFlags().BoolVar(&a.json, "json", a.json, "print JSON")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(c.CommandPath()+" --help", "%v", err)
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(a.helpCommand(root))
	root.AddCommand(
		a.newCommand(), a.lsCommand(), a.showCommand(), a.attachCommand(), a.sendCommand(), a.logsCommand(),
		a.waitCommand(), a.stopCommand(), a.resumeCommand(), a.rmCommand(), a.undoCommand(),
		a.requestsCommand(), a.allowCommand(), a.denyCommand(), a.diffCommand(),
		a.logCommand(), a.doctorCommand(), a.hubCommand(), a.demoCommand(), a.benchCommand(), a.versionCommand(),
	)
	return root
}

// helpCommand is "fletch help [COMMAND]", with the topic errors.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	help := &cobra.Command{Use: "help [COMMAND | errors]", Short: "help about a command, or the words that errors carry", RunE: func(_ *cobra.Command, args []string) error {
		found, _, err := root.Find(args)
		if err != nil || found == nil || found == root && len(args) > 0 {
			return usage("fletch --help lists the commands", "there is no command %q", strings.Join(args, " "))
		}
		return found.Help()
	}}
	help.AddCommand(a.errorsCommand())
	return help
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("fletch --help lists the commands", "there is no command %q", args[0])
	}
	return nil
}

// exactly is cobra.ExactArgs with this program's errors.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("fletch "+c.Name()+" "+names, "%d arguments, %d wanted", len(args), n)
		}
		return nil
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "print the version", Args: exactly(0, ""), RunE: func(*cobra.Command, []string) error {
		if a.json {
			return a.print(map[string]any{"version": version(), "protocol": wire.Protocol})
		}
		_, err := fmt.Fprintln(a.out, "fletch", version())
		return err
	}}
}

// version is what the linker was told, else what the build knows.
func version() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}

// print writes v as indented JSON.
func (a *app) print(v any) error {
	encoder := json.NewEncoder(a.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// openHome opens FLETCH_HOME, ~/.fletch when it is not set.
func openHome() (home.Home, error) {
	dir := os.Getenv("FLETCH_HOME")
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return home.Home{}, wire.Errorf("no-home", "set HOME or FLETCH_HOME", "finding your home directory: %v", err)
		}
		dir = filepath.Join(user, ".fletch")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return home.Home{}, fmt.Errorf("finding FLETCH_HOME: %w", err)
	}
	return home.Open(dir, os.Getenv("XDG_RUNTIME_DIR"))
}

// connect reaches the hub, starting it when none answers.
func (a *app) connect(ctx context.Context) (*client.Client, home.Home, error) {
	h, err := openHome()
	if err != nil {
		return nil, h, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, h, fmt.Errorf("finding fletch itself: %w", err)
	}
	c, err := client.Connect(ctx, h, client.Options{Self: self, Env: os.Environ()})
	return c, h, err
}
