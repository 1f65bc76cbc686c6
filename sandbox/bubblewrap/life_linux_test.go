package bubblewrap

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fletch/sandbox"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// waitGone waits for the end of a process that is nobody's child here.
func waitGone(t *testing.T, fd int) {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
	if err != nil || n != 1 {
		t.Errorf("the process lives on: %d, %v", n, err)
	}
}

func pidfd(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// begin starts a program that says "ready" and stays.
func begin(t *testing.T, e *Engine, s sandbox.Spec) *running {
	t.Helper()
	s.Terminal = &sandbox.Size{Cols: 80, Rows: 24}
	b, err := e.Start(withTime(t), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Remove() })
	line, err := bufio.NewReader(b.Attach()).ReadString('\n')
	if err != nil || !strings.Contains(line, "ready") {
		t.Fatalf("it says %q, %v", line, err)
	}
	return b.(*running)
}

const stays = "trap '' TERM HUP INT; echo ready; while :; do sleep 1000; done"

func TestThePIDIsTheProgram(t *testing.T) {
	r := begin(t, engine(t), spec(t, "sh", "-c", stays))
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.PID()))
	if err != nil || !strings.HasPrefix(string(raw), "sh\x00-c\x00trap") {
		t.Errorf("process %d is %q, %v", r.PID(), raw, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the program's status has no %q", want)
		}
	}
}

func TestNothingOutlivesBubblewrap(t *testing.T) {
	s := spec(t, "sh", "-c", "setsid sh -c \"trap '' TERM HUP; sleep 1000\" & "+stays)
	r := begin(t, engine(t), s)
	program := pidfd(t, r.PID())
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := r.Wait(); exit.Code != 137 || exit.Signal != "killed" {
		t.Errorf("it ended with %+v", exit)
	}
	waitGone(t, program)
	noGroups(t, s.Store)
}

// keeper starts a box, says its pids and stays, for a test that kills it.
func keeper(args []string) int {
	self, _ := os.Executable()
	e, err := New(self)
	if err != nil {
		return 1
	}
	if len(args) > 1 {
		e.testOnlyBwrap = args[1]
	}
	b, err := e.Start(context.Background(), sandbox.Spec{
		Agent: "agent", Store: args[0], Argv: []string{"sleep", "1000"}, Dir: "/", Env: []string{"PATH=/usr/bin"},
		Network: sandbox.NetworkProxy, Terminal: &sandbox.Size{Cols: 80, Rows: 24},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(b.PID())
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	return 0
}

func TestNothingOutlivesItsKeeper(t *testing.T) {
	e := engine(t)
	store := "test-" + randomWord()
	cmd := exec.Command(e.self, "keeper", store)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the keeper says %q", line)
	}
	program := pidfd(t, pid)

	// While it lives, what it uses is no leftover.
	if left, err := e.List(withTime(t), store); err != nil || len(left) > 0 {
		t.Errorf("in use, List says %v, %v", left, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	waitGone(t, program)

	if !needsGroup() {
		return // there is nothing to leave behind
	}
	left, err := e.List(withTime(t), store)
	left = slices.DeleteFunc(left, func(l sandbox.Leftover) bool { return l.What == "process" }) // on its way out
	if err != nil || len(left) != 1 || left[0].Agent != "agent" || left[0].What != "cgroup" {
		t.Fatalf("List says %v, %v", left, err)
	}
	if other, err := e.List(withTime(t), store+"-other"); err != nil || len(other) > 0 {
		t.Errorf("of another store List says %v, %v", other, err)
	}
	for range 2 { // what is gone already is no error
		if err := e.Remove(withTime(t), left[0]); err != nil {
			t.Fatal(err)
		}
	}
	noGroups(t, store)
}

func TestRemoveTakesOnlyItsOwnLeftovers(t *testing.T) {
	e := engine(t)
	start, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"", "/", "system.slice", "../../x", "fletch-a/b", "fletch-a/../b-aaaaaaaa-1-1", "docker/agent-aaaaaaaa-1-1",
		fmt.Sprintf("fletch-a/agent-aaaaaaaa-%d-%d", os.Getpid(), start), // in use
	} {
		if err := e.Remove(withTime(t), sandbox.Leftover{What: "cgroup", Name: name}); err == nil {
			t.Errorf("%q was taken for its own", name)
		}
	}
}

// early is a bwrap whose child waits for a word that never comes: what is left
// of one that is killed at that moment. $1 onwards is its argv.
func early(t *testing.T, e *Engine, then string) (bwrap, pidFile string) {
	t.Helper()
	pidFile = filepath.Join(t.TempDir(), "pid")
	return script(t, "bash -c 'exec -a bwrap \"$0\" \"$@\"' "+e.self+" \"$@\" >/dev/null 2>&1 </dev/null &\necho $! >"+pidFile+"\n"+then), pidFile
}

func childOf(t *testing.T, pidFile string) int {
	t.Helper()
	raw, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestAStartThatIsCutOffEarlyLeavesNoChild(t *testing.T) {
	e := engine(t)
	bwrap, pidFile := early(t, e, "wait")
	e.testOnlyBwrap = bwrap
	s, ran := canary(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if b, err := e.Start(ctx, s); err == nil || ran() {
		b.Remove()
		t.Fatal("it started")
	}
	if fd, err := unix.PidfdOpen(childOf(t, pidFile), 0); err == nil {
		waitGone(t, fd)
		unix.Close(fd)
	}
}

func TestAChildThatADeadKeeperLeftIsFound(t *testing.T) {
	e := engine(t)
	store := "test-" + randomWord()
	bwrap, pidFile := early(t, e, "exit 1")
	cmd := exec.Command(e.self, "keeper", store, bwrap)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("it started: %s", out)
	}
	child := pidfd(t, childOf(t, pidFile))
	var left []sandbox.Leftover
	for len(left) == 0 && withTime(t).Err() == nil { // until it has become what it plays
		var err error
		if left, err = e.List(withTime(t), store); err != nil {
			t.Fatal(err)
		}
	}
	if len(left) != 1 || left[0].What != "process" || left[0].Agent != "agent" {
		t.Fatalf("List says %v", left)
	}
	if err := e.Remove(withTime(t), left[0]); err != nil {
		t.Fatal(err)
	}
	waitGone(t, child)
	if left, err := e.List(withTime(t), store); err != nil || len(left) > 0 {
		t.Errorf("afterwards List says %v, %v", left, err)
	}
}

func TestFiftyStartAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := engine(t)
	const n = 50
	base := spec(t, "sh", "-c", "echo ready; read line; exit 7")
	base.Terminal = &sandbox.Size{Cols: 80, Rows: 24}
	base.Network = sandbox.NetworkProxy
	var all sync.WaitGroup
	pids := make([]int, n)
	began := time.Now()
	ctx := withTime(t)
	for i := range n {
		s := base
		s.Agent = fmt.Sprintf("agent-%d", i)
		all.Go(func() {
			b, err := e.Start(ctx, s)
			if err != nil {
				t.Errorf("start %d: %v", i, err)
				return
			}
			defer b.Remove()
			pids[i] = b.PID()
			if b.Listener() == nil {
				t.Errorf("start %d has no listener", i)
			}
			if _, err := b.Attach().WriteString("\n"); err != nil {
				t.Errorf("start %d: %v", i, err)
			}
			if exit := b.Wait(); exit.Code != 7 {
				t.Errorf("start %d ended with %+v", i, exit)
			}
		})
	}
	all.Wait()
	t.Logf("%d starts to their end took %v", n, time.Since(began).Round(time.Millisecond))
	seen := map[int]bool{}
	for _, pid := range pids {
		if seen[pid] {
			t.Errorf("two boxes have the pid %d", pid)
		}
		seen[pid] = true
	}
	noGroups(t, base.Store)
}

func TestAStartLeavesNoDescriptorOpen(t *testing.T) {
	e := engine(t)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	once := func() {
		s, ran := canary(t)
		b, err := e.Start(withTime(t), s)
		if err != nil {
			t.Fatal(err)
		}
		b.Wait()
		b.Remove()
		if !ran() {
			t.Fatal("it did not run")
		}
		e.testOnlyBoxArgs = []string{"fail=landlock"}
		defer func() { e.testOnlyBoxArgs = nil }()
		if b, err := e.Start(withTime(t), s); err == nil {
			b.Remove()
			t.Fatal("it started")
		}
		s.Mounts = append(s.Mounts, sandbox.Mount{Source: "/nowhere"})
		if b, err := e.Start(withTime(t), s); err == nil {
			b.Remove()
			t.Fatal("it started")
		}
	}
	once() // the runtime opens some of its own
	before := count()
	for range 5 {
		once()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors were open before, %d are after", before, after)
	}
}

func TestRemoveMayRaceWithTheEnd(t *testing.T) {
	e := engine(t)
	for range 5 {
		s, _ := canary(t)
		b, err := e.Start(withTime(t), s)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := b.Remove(); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() { b.Wait() })
			all.Go(func() { _ = b.Signal(syscall.SIGTERM) }) // may be gone
			all.Go(func() { _ = b.Resize(sandbox.Size{Cols: 90, Rows: 30}) })
		}
		all.Wait()
	}
}

func TestTheAgentIsNotDeafToWhatItsStarterIgnores(t *testing.T) {
	// A hub ignores SIGHUP; children inherit that.
	var out bytes.Buffer
	e := engine(t)
	cmd := exec.Command("sh", "-c", `trap '' HUP INT PIPE; exec "$0" run grep SigIgn /proc/self/status`, e.self)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if !strings.Contains(out.String(), "SigIgn:\t0000000000000000") {
		t.Errorf("it ignores %q", out.String())
	}
}

// runOne is the engine as a program, for tests of what it inherits.
func runOne(args []string) int {
	self, _ := os.Executable()
	e, err := New(self)
	if err == nil {
		err = e.Run(context.Background(), sandbox.Spec{Argv: args, Dir: "/", Env: []string{"PATH=/usr/bin"}}, nil, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestTheAttestationSaysWhatHolds(t *testing.T) {
	s := spec(t, "sh", "-c", stays)
	s.Limits.PIDs = 99
	r := begin(t, engine(t), s)
	said := map[string]sandbox.Fact{}
	for _, f := range r.Attestation().Facts {
		said[f.Name] = f
	}
	for name, want := range map[string]string{"capabilities": "none", "processes": "99", "network": "private", "landlock": "version"} {
		if f := said[name]; !strings.Contains(f.Value, want) || f.Known == "" {
			t.Errorf("of %s it says %+v", name, f)
		}
	}
}
