package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"fletch/agents/keeper"
	"fletch/gitops"
	"fletch/hub"
	"fletch/sandbox/box"
)

// inner runs the roles that fletch starts of itself. They are not for people
// and take their orders over descriptors, so they are found before anything
// else is set up.
func inner(args []string) (code int, hidden bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch {
	case args[0] == "box":
		return box.Main(args[1:]), true
	case args[0] == "keeper" && len(args) == 1:
		return keeper.Main(), true
	case args[0] == "hub" && len(args) == 1:
		return runHub(), true
	case args[0] == "internal" && len(args) > 1 && args[1] == "upload-pack":
		return gitops.UploadPack(args[2:]), true
	case args[0] == "internal" && len(args) > 1 && args[1] == "credential":
		return gitops.Credential(args[2:]), true
	}
	return 0, false
}

// runHub is "fletch hub": the daemon, started by a client with a pipe on
// descriptor 3, or by hand without one.
func runHub() int {
	// A closed terminal or window must end nothing.
	signal.Ignore(syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	config, err := hubConfig()
	if err == nil {
		err = hub.Main(ctx, config)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %s\n", plain(err.Error()))
		return exitRefused
	}
	return exitDone
}

func hubConfig() (hub.Config, error) {
	h, err := openHome()
	if err != nil {
		return hub.Config{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return hub.Config{}, fmt.Errorf("finding fletch itself: %w", err)
	}
	c := hub.Config{
		Home: h, RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), Self: self, Version: version(), Env: os.Environ(),
		Idle: idleTime(),
	}
	if pipe := os.NewFile(3, "ready"); pipe != nil {
		if info, err := pipe.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
			c.Ready = pipe
		}
	}
	return c, nil
}

// idleTime is how long an idle hub stays: FLETCH_HUB_IDLE, a duration, or 0
// for the hub's own choice.
func idleTime() time.Duration {
	d, err := time.ParseDuration(os.Getenv("FLETCH_HUB_IDLE"))
	if err != nil || d <= 0 {
		return 0
	}
	return d
}
