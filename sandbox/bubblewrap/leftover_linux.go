package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"fletch/sandbox"

	"golang.org/x/sys/unix"
)

// A mark names one box on the machine: the store, the agent, a random word,
// and who started it, so that what a dead keeper left can be told from what is
// in use. Its control groups are called by it, and bwrap has it in its argv.
//
// Processes need it because of one moment: between the birth of the sandbox's
// first process and bwrap's word to go on, nothing kills that process when
// bwrap is killed. It waits for ever, before it has run anything.
var markForm = regexp.MustCompile(`^(fletch-[A-Za-z0-9_-]{1,64})/([A-Za-z0-9_-]{1,64})-[a-z2-7]{8}-([0-9]{1,10})-([0-9]{1,20})$`)

func newMark(s sandbox.Spec) (string, error) {
	since, err := startTime(os.Getpid())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%s-%s-%d-%d", parentName(s.Store), label(s.Agent, "oneshot"), randomWord(), os.Getpid(), since), nil
}

func parentName(store string) string { return "fletch-" + label(store, "none") }

func label(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}

// abandoned takes a mark apart and reports whether its starter is gone.
func abandoned(mark string) (agent string, gone bool) {
	m := markForm.FindStringSubmatch(mark)
	if m == nil || isAlive(m[3], m[4]) {
		return "", false
	}
	return m[2], true
}

// leftovers names the control groups and processes of store whose starter is
// gone.
func leftovers(store string) ([]sandbox.Leftover, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var out []sandbox.Leftover
	add := func(what, mark string) {
		agent, gone := abandoned(mark)
		l := sandbox.Leftover{Agent: agent, What: what, Name: mark}
		if gone && filepath.Dir(mark) == parentName(store) && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	for _, h := range all {
		entries, err := os.ReadDir(filepath.Join(h.root, parentName(store)))
		if err != nil {
			continue // nothing was ever started for it here
		}
		for _, entry := range entries {
			if entry.IsDir() {
				add("cgroup", parentName(store)+"/"+entry.Name())
			}
		}
	}
	for _, mark := range marked() {
		add("process", mark)
	}
	return out, nil
}

// removeLeftover ends and takes away what carries a mark.
func removeLeftover(ctx context.Context, l sandbox.Leftover) error {
	if markForm.FindStringSubmatch(l.Name) == nil || l.What != "cgroup" && l.What != "process" {
		return fmt.Errorf("removing %s %q: it is none of this engine's", l.What, l.Name)
	}
	if _, gone := abandoned(l.Name); !gone {
		return fmt.Errorf("removing %s: it is in use", l.Name)
	}
	var faults []error
	for pid, mark := range marked() {
		if mark == l.Name {
			faults = append(faults, endMarked(ctx, pid, mark))
		}
	}
	all, err := hierarchies()
	if err != nil {
		return err
	}
	g := &group{}
	for _, h := range all {
		g.dirs = append(g.dirs, groupDir{path: filepath.Join(h.root, l.Name), unified: h.unified})
	}
	return errors.Join(append(faults, g.remove(ctx))...)
}

// marked finds the processes that are bwrap with a mark. A program can
// imitate that, and only gets itself killed when its mark's starter is gone.
func marked() map[int]string {
	out := map[int]string{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return out
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if mark := markOf(pid); mark != "" {
			out[pid] = mark
		}
	}
	return out
}

// markOf reads the mark in a process's argv, as launch makes it.
func markOf(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "" // it ended, or is another's
	}
	words := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	if len(words) < 9 || words[0] != "bwrap" || words[1] != "--args" || words[3] != "--" || words[4] != insideBox || words[5] != "box" {
		return ""
	}
	if markForm.FindStringSubmatch(words[8]) == nil {
		return ""
	}
	return words[8]
}

// endMarked kills one process, made sure of by a handle, and waits.
func endMarked(ctx context.Context, pid int, mark string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it is gone already
	}
	handle := os.NewFile(uintptr(fd), "process")
	defer handle.Close() // a handle only
	if markOf(pid) != mark {
		return nil // the number is another's by now
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("ending process %d of %s: %w", pid, mark, err)
	}
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return nil
		}
	}
	return ctx.Err()
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
