package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fletch/sandbox"

	"golang.org/x/sys/unix"
)

// hierarchy is one mounted tree of control groups.
type hierarchy struct {
	root        string
	unified     bool // version 2
	controllers []string
}

func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }

// hierarchies finds what is mounted, as /proc/self/mountinfo says.
func hierarchies() ([]hierarchy, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("looking for control groups: %w", err)
	}
	var out []hierarchy
	for line := range strings.Lines(string(raw)) {
		before, after, ok := strings.Cut(line, " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 5 || len(tail) < 3 || head[3] != "/" {
			continue
		}
		switch tail[0] {
		case "cgroup2":
			have, err := os.ReadFile(filepath.Join(head[4], "cgroup.controllers"))
			if err == nil {
				out = append(out, hierarchy{root: head[4], unified: true, controllers: strings.Fields(string(have))})
			}
		case "cgroup":
			out = append(out, hierarchy{root: head[4], controllers: strings.Split(tail[2], ",")})
		}
	}
	return out, nil
}

// group is the control group of one box: a folder in each hierarchy it needs.
type group struct {
	dirs   []groupDir
	pids   bool // the number of processes is bounded here
	memory bool // and the memory
}

type groupDir struct {
	path    string
	unified bool
}

// newGroup makes the group of one box, called as its mark, and sets its
// limits.
func newGroup(s sandbox.Spec, mark string) (*group, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	limits := s.Limits.Or()
	g := &group{}
	var causes []error
	for _, h := range all {
		want := map[string]int64{}
		if h.has("pids") && !g.pids {
			want["pids"] = int64(limits.PIDs)
		}
		if h.has("memory") && !g.memory && limits.Memory > 0 {
			want["memory"] = limits.Memory
		}
		if len(want) == 0 {
			continue
		}
		path := filepath.Join(h.root, mark)
		err := makeGroup(h, path, want)
		// Another box that ends may take the store's empty folder away in
		// between: making it is tried again, a bounded number of times.
		for try := 0; errors.Is(err, fs.ErrNotExist) && try < 100; try++ {
			err = makeGroup(h, path, want)
		}
		if err != nil {
			_ = unix.Rmdir(path) // it may not have been made
			causes = append(causes, err)
			continue
		}
		g.dirs = append(g.dirs, groupDir{path: path, unified: h.unified})
		_, bounds := want["pids"]
		g.pids = g.pids || bounds
		_, bounds = want["memory"]
		g.memory = g.memory || bounds
	}
	if !g.pids {
		_ = g.remove(context.Background()) // nothing runs in it yet
		return nil, &sandbox.Refusal{
			Engine: engineName, Cause: "the number of processes cannot be bounded for root: " + because(causes),
			Fix: "run fletch as an ordinary user, or make the pids control group writable",
		}
	}
	return g, nil
}

func because(causes []error) string {
	if len(causes) == 0 {
		return "no pids control group is mounted"
	}
	return errors.Join(causes...).Error()
}

// makeGroup makes the folder and writes each limit, reading it back.
func makeGroup(h hierarchy, path string, want map[string]int64) error {
	parent := filepath.Dir(path)
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if h.unified {
		for controller := range want {
			for _, dir := range []string{h.root, parent} {
				if err := writeControl(dir, "cgroup.subtree_control", "+"+controller); err != nil {
					return err
				}
			}
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	for controller, n := range want {
		file := map[string]string{"pids": "pids.max", "memory": "memory.max"}[controller]
		if controller == "memory" && !h.unified {
			file = "memory.limit_in_bytes"
		}
		if err := writeControl(path, file, strconv.FormatInt(n, 10)); err != nil {
			return err
		}
		if controller == "memory" && h.unified {
			// Without swap control there is nothing to bound.
			if err := writeControl(path, "memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		said, err := os.ReadFile(filepath.Join(path, file))
		if err != nil {
			return err
		}
		if got, err := strconv.ParseInt(strings.TrimSpace(string(said)), 10, 64); err != nil || got > n {
			return fmt.Errorf("%s of %s says %q", file, path, strings.TrimSpace(string(said)))
		}
	}
	return nil
}

func writeControl(dir, file, value string) error {
	// Without O_CREAT: a file that is not there is a controller that is not.
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// enter puts a process into the group. All it starts later is in it too.
func (g *group) enter(pid int) error {
	for _, d := range g.dirs {
		if err := writeControl(d.path, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("entering the control group: %w", err)
		}
	}
	return nil
}

// holds reports whether the process is in the group, as the kernel says.
func (g *group) holds(pid int) error {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return err
	}
	for _, d := range g.dirs {
		name := "/" + filepath.Base(filepath.Dir(d.path)) + "/" + filepath.Base(d.path)
		if !slices.ContainsFunc(strings.Split(string(raw), "\n"), func(l string) bool { return strings.HasSuffix(l, name) }) {
			return errors.New("it is not in its control group")
		}
	}
	return nil
}

// kill ends whatever is in the group.
func (g *group) kill() {
	for _, d := range g.dirs {
		if d.unified && writeControl(d.path, "cgroup.kill", "1") == nil {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(d.path, "cgroup.procs"))
		if err != nil {
			continue // it is gone already
		}
		for _, word := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
				_ = unix.Kill(pid, unix.SIGKILL) // gone already is fine
			}
		}
	}
}

// remove kills and takes the folders away. The kernel lets go of one a moment
// after its last process.
func (g *group) remove(ctx context.Context) error {
	var faults []error
	for _, d := range g.dirs {
		if err := g.removeDir(ctx, d.path); err != nil {
			faults = append(faults, fmt.Errorf("removing the control group %s: %w", d.path, err))
		}
		_ = unix.Rmdir(filepath.Dir(d.path)) // stays while other boxes of the store are in it
	}
	return errors.Join(faults...)
}

func (g *group) removeDir(ctx context.Context, path string) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := unix.Rmdir(path)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		g.kill()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}
