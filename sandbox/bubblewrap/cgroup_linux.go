package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
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

// newGroup makes the group of one box and sets its limits. Its name carries
// who started it, so that what a dead keeper leaves can be told from what is
// in use.
func newGroup(s sandbox.Spec) (*group, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	owner, err := startTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%s-%d-%d", label(s.Agent, "oneshot"), randomWord(), os.Getpid(), owner)
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
		path := filepath.Join(h.root, parentName(s.Store), name)
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

func parentName(store string) string { return "fletch-" + label(store, "none") }

func label(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
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

// leftoverForm is a group's name: agent, random word, owner's pid and start.
var leftoverForm = regexp.MustCompile(`^(fletch-[A-Za-z0-9_-]{1,64})/([A-Za-z0-9_-]{1,64})-[a-z2-7]{8}-([0-9]{1,10})-([0-9]{1,20})$`)

// leftovers names the groups of store whose starter is gone.
func leftovers(store string) ([]sandbox.Leftover, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var out []sandbox.Leftover
	for _, h := range all {
		entries, err := os.ReadDir(filepath.Join(h.root, parentName(store)))
		if err != nil {
			continue // nothing was ever started for it here
		}
		for _, entry := range entries {
			name := parentName(store) + "/" + entry.Name()
			m := leftoverForm.FindStringSubmatch(name)
			if m == nil || !entry.IsDir() || isAlive(m[3], m[4]) {
				continue
			}
			l := sandbox.Leftover{Agent: m[2], What: "cgroup", Name: name}
			if !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// removeLeftover takes such a group away from every hierarchy.
func removeLeftover(ctx context.Context, l sandbox.Leftover) error {
	m := leftoverForm.FindStringSubmatch(l.Name)
	if l.What != "cgroup" || m == nil {
		return fmt.Errorf("removing %s %q: it is none of this engine's", l.What, l.Name)
	}
	if isAlive(m[3], m[4]) {
		return fmt.Errorf("removing %s: it is in use", l.Name)
	}
	all, err := hierarchies()
	if err != nil {
		return err
	}
	g := &group{}
	for _, h := range all {
		g.dirs = append(g.dirs, groupDir{path: filepath.Join(h.root, l.Name), unified: h.unified})
	}
	return g.remove(ctx)
}

// isAlive reports whether the process with this pid still is the one that
// started then.
func isAlive(pid, since string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return false
	}
	start, err := startTime(n)
	return err == nil && strconv.FormatUint(start, 10) == since
}

// startTime is when a process started, in clock ticks since the machine did.
func startTime(pid int) (uint64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name that may hold anything, in parentheses.
	i := strings.LastIndexByte(string(raw), ')')
	fields := strings.Fields(string(raw[i+1:]))
	if i < 0 || len(fields) < 20 {
		return 0, fmt.Errorf("reading the start of process %d: %w", pid, syscall.EINVAL)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
