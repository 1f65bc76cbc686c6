package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fletch/agents/attach"
	"fletch/home"
	"fletch/state"
)

// versionStart measures how long the smallest command takes.
func versionStart(ctx context.Context, w World) ([]Row, error) {
	ours, theirs, err := alternate(
		func() (time.Duration, error) { return timed(exec.CommandContext(ctx, w.Self, "version").Run) },
		func() (time.Duration, error) { return timed(exec.CommandContext(ctx, "true").Run) },
	)
	return []Row{{Value: ours, Unit: "ms", Yardstick: "true", YardstickValue: theirs, Budget: "≤ 15 ms"}}, err
}

func binarySize(_ context.Context, w World) ([]Row, error) {
	info, err := os.Stat(w.Self)
	if err != nil {
		return nil, err
	}
	return []Row{{Value: float64(info.Size()) / 1e6, Unit: "MB", Budget: "≤ 30 MB"}}, nil
}

// repository makes one with files files, once per size.
func (w World) repository(ctx context.Context, files int) (string, error) {
	repo := filepath.Join(w.Dir, "repo-"+strconv.Itoa(files))
	if _, err := os.Stat(repo); err == nil {
		return repo, nil
	}
	if err := w.git(ctx, "init", "-q", "-b", "main", repo); err != nil {
		return "", err
	}
	for i := range files {
		dir := filepath.Join(repo, "d"+strconv.Itoa(i%50))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, "f"+strconv.Itoa(i)), bytes.Repeat([]byte(strconv.Itoa(i)+"\n"), 200), 0o644); err != nil {
			return "", err
		}
	}
	if err := w.git(ctx, "-C", repo, "add", "-A"); err != nil {
		return "", err
	}
	return repo, w.git(ctx, "-C", repo, "commit", "-q", "-m", "files")
}

// git runs git as the yardstick does: plainly, on repositories of the
// benchmark's own.
func (w World) git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(append([]string{}, w.Env...), "GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@b", "GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}

// spawn measures from asking for an agent until its first byte is there. Both
// sides run once before that counts: only the first agent of a repository has
// to link its objects, and only the first clone reads them from the disk.
func spawn(ctx context.Context, w World) ([]Row, error) {
	repo, err := w.repository(ctx, 2500)
	if err != nil {
		return nil, err
	}
	ours := func() (time.Duration, error) {
		var made []state.Agent
		took, err := timed(func() (err error) {
			made, err = w.Client.Launch(ctx, state.Launch{Repo: repo, Provider: "shell", Command: []string{"sh", "-c", "echo here; cat"}, Env: w.Env})
			if err != nil {
				return err
			}
			return w.firstByte(ctx, made[0].ID)
		})
		return took, errors.Join(err, w.remove(ctx, made...))
	}
	n := 0
	theirs := func() (time.Duration, error) {
		n++
		dir := filepath.Join(w.Dir, "clone-"+strconv.Itoa(n))
		defer func() { _ = os.RemoveAll(dir) }()
		return timed(func() error { return w.bareSpawn(ctx, repo, dir) })
	}
	for _, side := range []func() (time.Duration, error){ours, theirs} {
		if _, err := side(); err != nil {
			return nil, err
		}
	}
	a, b, err := alternate(ours, theirs)
	return []Row{{Value: a, Unit: "ms", Yardstick: "git clone --shared, checkout, bare bwrap", YardstickValue: b, Budget: "≤ 1.3 ×"}}, err
}

// bareSpawn is what spawning an agent comes to without fletch.
func (w World) bareSpawn(ctx context.Context, repo, dir string) error {
	if err := w.git(ctx, "clone", "-q", "--shared", "--no-checkout", repo, dir); err != nil {
		return err
	}
	if err := w.git(ctx, "-C", dir, "checkout", "-q", "--detach", "main"); err != nil {
		return err
	}
	return exec.CommandContext(ctx, "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
		"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--bind", dir, dir,
		"--", "/bin/sh", "-c", "echo here").Run()
}

// firstByte waits until an agent's screen shows something.
func (w World) firstByte(ctx context.Context, id state.AgentID) error {
	var conn *attach.Conn
	err := w.Client.Until(ctx, func(fleet state.Fleet) (bool, error) {
		a, _ := fleet.Agent(id)
		if a.Status == state.Failed {
			return false, fmt.Errorf("the agent failed: %s", a.Reason)
		}
		var err error
		conn, err = w.dial(ctx, id)
		return err == nil, nil // its keeper may not be there yet; news will tell
	})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for {
		message, err := conn.Next(ctx)
		if err != nil {
			return err
		}
		if frame, ok := message.(attach.FrameMsg); ok && frameHas(frame, "here") {
			return nil
		}
	}
}

// dial connects to an agent's keeper as a viewer.
func (w World) dial(ctx context.Context, id state.AgentID) (*attach.Conn, error) {
	h, err := home.Open(w.Home, "")
	if err != nil {
		return nil, err
	}
	return attach.Dial(ctx, h.KeeperSocket(string(id)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleViewer})
}

func frameHas(frame attach.FrameMsg, text string) bool {
	for _, line := range frame.Frame.Changed {
		var row strings.Builder
		for _, cell := range line.Cells {
			row.WriteString(cell.Text)
		}
		if strings.Contains(row.String(), text) {
			return true
		}
	}
	return false
}

// remove takes agents away again.
func (w World) remove(ctx context.Context, some ...state.Agent) error {
	var faults []error
	for _, a := range some {
		faults = append(faults, w.Client.Remove(ctx, a.ID, true))
	}
	return errors.Join(faults...)
}

// shell starts an agent that runs script, and returns when it runs.
func (w World) shell(ctx context.Context, script string) (state.Agent, error) {
	repo, err := w.repository(ctx, 10)
	if err != nil {
		return state.Agent{}, err
	}
	made, err := w.Client.Launch(ctx, state.Launch{Repo: repo, Provider: "shell", Command: []string{"sh", "-c", script}, Env: w.Env})
	if err != nil {
		return state.Agent{}, err
	}
	var now state.Agent
	err = w.Client.Until(ctx, func(fleet state.Fleet) (bool, error) {
		now, _ = fleet.Agent(made[0].ID)
		if now.Status == state.Failed {
			return false, fmt.Errorf("the agent failed: %s", now.Reason)
		}
		return now.Status != state.Starting, nil
	})
	return now, err
}

// keeperMemory measures what one live agent costs beside its own program.
func keeperMemory(ctx context.Context, w World) (_ []Row, err error) {
	a, err := w.shell(ctx, "cat")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove(ctx, a)) }()
	conn, err := w.dial(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(conn.PID()) + "/status")
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	words := strings.Fields(rest)
	if len(words) == 0 {
		return nil, fmt.Errorf("process %d does not tell its memory", conn.PID())
	}
	kb, err := strconv.ParseFloat(words[0], 64)
	return []Row{{Value: kb / 1024, Unit: "MiB RSS", Budget: "≤ 15 MiB"}}, err
}
