package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/creack/pty"

	"fletch/agents/attach"
	"fletch/home"
	"fletch/state"
)

// versionStart measures how long the smallest command takes.
func versionStart(ctx context.Context, w World) (Row, error) {
	ours, theirs, err := alternate(
		func() (time.Duration, error) { return timed(exec.CommandContext(ctx, w.Self, "version").Run) },
		func() (time.Duration, error) { return timed(exec.CommandContext(ctx, "true").Run) },
	)
	return Row{Value: ours, Unit: "ms", Yardstick: "true", YardstickValue: theirs, Budget: "≤ 15 ms"}, err
}

func binarySize(_ context.Context, w World) (Row, error) {
	info, err := os.Stat(w.Self)
	if err != nil {
		return Row{}, err
	}
	return Row{Value: float64(info.Size()) / 1e6, Unit: "MB", Budget: "≤ 30 MB"}, nil
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

// spawn measures from asking for an agent until its first byte is there.
func spawn(ctx context.Context, w World) (Row, error) {
	repo, err := w.repository(ctx, 2500)
	if err != nil {
		return Row{}, err
	}
	n := 0
	ours := func() (time.Duration, error) {
		return timed(func() error {
			made, err := w.Client.Launch(ctx, state.Launch{Repo: repo, Provider: "shell", Command: []string{"sh", "-c", "echo here; cat"}, Env: w.Env})
			if err != nil {
				return err
			}
			defer func() { _ = w.Client.Remove(ctx, made[0].ID, true) }()
			return w.firstByte(ctx, made[0].ID)
		})
	}
	theirs := func() (time.Duration, error) {
		n++
		dir := filepath.Join(w.Dir, "clone-"+strconv.Itoa(n))
		defer func() { _ = os.RemoveAll(dir) }()
		return timed(func() error {
			if err := w.git(ctx, "clone", "-q", "--shared", "--no-checkout", repo, dir); err != nil {
				return err
			}
			if err := w.git(ctx, "-C", dir, "checkout", "-q", "--detach", "main"); err != nil {
				return err
			}
			return exec.CommandContext(ctx, "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
				"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--bind", dir, dir,
				"--", "/bin/sh", "-c", "echo here").Run()
		})
	}
	a, b, err := alternate(ours, theirs)
	return Row{Value: a, Unit: "ms", Yardstick: "git clone --shared, checkout, bare bwrap", YardstickValue: b, Budget: "≤ 1.3 ×"}, err
}

// firstByte waits until an agent's screen shows something.
func (w World) firstByte(ctx context.Context, id state.AgentID) error {
	h, err := home.Open(w.Home, "")
	if err != nil {
		return err
	}
	fleet, events, err := w.Client.Watch(ctx)
	if err != nil {
		return err
	}
	for {
		a, ok := fleet.Agent(id)
		if ok && a.Status != state.Starting {
			break
		}
		conn, err := attach.Dial(ctx, h.KeeperSocket(string(id)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleViewer})
		if err == nil {
			return untilText(ctx, conn, "here")
		}
		e, ok := <-events
		if !ok {
			return errors.New("the hub ended")
		}
		fleet = fleet.Apply(e)
	}
	conn, err := attach.Dial(ctx, h.KeeperSocket(string(id)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleViewer})
	if err != nil {
		return err
	}
	return untilText(ctx, conn, "here")
}

// untilText reads frames until one shows text, and closes the connection.
func untilText(ctx context.Context, conn *attach.Conn, text string) error {
	defer func() { _ = conn.Close() }()
	for {
		message, err := conn.Next(ctx)
		if err != nil {
			return err
		}
		frame, ok := message.(attach.FrameMsg)
		if !ok {
			continue
		}
		for _, line := range frame.Frame.Changed {
			var row strings.Builder
			for _, cell := range line.Cells {
				row.WriteString(cell.Text)
			}
			if strings.Contains(row.String(), text) {
				return nil
			}
		}
	}
}

// shell starts an agent that echoes, and returns when it runs.
func (w World) shell(ctx context.Context, script string) (state.Agent, error) {
	repo, err := w.repository(ctx, 10)
	if err != nil {
		return state.Agent{}, err
	}
	made, err := w.Client.Launch(ctx, state.Launch{Repo: repo, Provider: "shell", Command: []string{"sh", "-c", script}, Env: w.Env})
	if err != nil {
		return state.Agent{}, err
	}
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	fleet, events, err := w.Client.Watch(watch)
	if err != nil {
		return state.Agent{}, err
	}
	for {
		a, _ := fleet.Agent(made[0].ID)
		if a.Status == state.Failed {
			return a, fmt.Errorf("the agent failed: %s", a.Reason)
		}
		if a.Status != state.Starting {
			return a, nil
		}
		e, ok := <-events
		if !ok {
			return a, errors.New("the hub ended")
		}
		fleet = fleet.Apply(e)
	}
}

// keeperMemory measures what one live agent costs beside its own program.
func keeperMemory(ctx context.Context, w World) (Row, error) {
	a, err := w.shell(ctx, "cat")
	if err != nil {
		return Row{}, err
	}
	defer func() { _ = w.Client.Remove(ctx, a.ID, true) }()
	pids, err := processes(w.Self, "keeper")
	if err != nil || len(pids) == 0 {
		return Row{}, errors.Join(errors.New("no keeper was found"), err)
	}
	var most float64
	for _, pid := range pids {
		kb, err := statusKB(pid, "VmRSS:")
		if err != nil {
			return Row{}, err
		}
		most = max(most, kb/1024)
	}
	return Row{Value: most, Unit: "MiB RSS", Budget: "≤ 15 MiB"}, nil
}

// processes lists pids of a role of this very program.
func processes(self, role string) ([]int, error) {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		raw, _ := os.ReadFile(name) // one that ended meanwhile is none of ours
		if string(raw) == self+"\x00"+role+"\x00" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func statusKB(pid int, field string) (float64, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), field)
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0, fmt.Errorf("process %d has no %s", pid, field)
	}
	return strconv.ParseFloat(words[0], 64)
}

// typingPause is between two keystrokes: somebody typing fast.
const typingPause = 60 * time.Millisecond

// echo measures a keystroke from typing until it is on the screen, beside a
// bare PTY.
func echo(ctx context.Context, w World) (Row, error) {
	a, err := w.shell(ctx, "stty -echo; echo ready; cat")
	if err != nil {
		return Row{}, err
	}
	defer func() { _ = w.Client.Remove(ctx, a.ID, true) }()
	h, err := home.Open(w.Home, "")
	if err != nil {
		return Row{}, err
	}
	conn, err := attach.Dial(ctx, h.KeeperSocket(string(a.ID)), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleViewer})
	if err != nil {
		return Row{}, err
	}
	defer func() { _ = conn.Close() }()
	ours, err := throughKeeper(ctx, conn, 100)
	if err != nil {
		return Row{}, err
	}
	theirs, err := throughPTY(ctx, 100)
	return Row{Value: ms(median(ours)), Unit: "ms p50", Yardstick: "bare PTY echo", YardstickValue: ms(median(theirs)), Budget: "≤ 3 ms over it"}, err
}

func throughKeeper(ctx context.Context, conn *attach.Conn, n int) ([]time.Duration, error) {
	var all []time.Duration
	for i := range n {
		word := "k" + strconv.Itoa(i) + "."
		time.Sleep(typingPause)
		start := time.Now()
		if err := conn.Input([]byte(word + "\n")); err != nil {
			return nil, err
		}
		for shown := false; !shown; {
			message, err := conn.Next(ctx)
			if err != nil {
				return nil, err
			}
			if frame, ok := message.(attach.FrameMsg); ok {
				shown = frameHas(frame, word)
			}
		}
		all = append(all, time.Since(start))
	}
	return all, nil
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

func throughPTY(ctx context.Context, n int) ([]time.Duration, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", "stty -echo; echo ready; cat")
	tty, err := pty.Start(cmd)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = tty.Close() }()
	var all []time.Duration
	buf := make([]byte, 4096)
	seen := ""
	read := func(word string) error {
		for !strings.Contains(seen, word) {
			n, err := tty.Read(buf)
			if err != nil {
				return err
			}
			seen += string(buf[:n])
		}
		seen = ""
		return nil
	}
	if err := read("ready"); err != nil {
		return nil, err
	}
	for i := range n {
		word := "k" + strconv.Itoa(i) + "."
		time.Sleep(typingPause)
		start := time.Now()
		if _, err := io.WriteString(tty, word+"\n"); err != nil {
			return nil, err
		}
		if err := read(word); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start))
	}
	return all, nil
}
