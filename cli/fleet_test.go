//go:build linux

package cli_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fletch/state"
)

type hubStatus struct {
	PID, Agents, Live int
	Home, Version     string
}

func (w *world) hub() hubStatus {
	w.t.Helper()
	return decode[hubStatus](w.t, w.run("hub", "status", "--json"))
}

func TestTwentyClientsAtOnceGetOneHub(t *testing.T) {
	w := newWorld(t)
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			if out, errOut, code := w.try(w.ctx(), "ls", "--json"); code != 0 {
				t.Errorf("exit %d: %s%s", code, out, errOut)
			}
		})
	}
	clients.Wait()
	pid := strconv.Itoa(w.hub().PID)
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range procs {
		raw, _ := os.ReadFile(name) // of processes that ended meanwhile nothing can be read
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		other := filepath.Base(filepath.Dir(name))
		if bytes.Contains(raw, []byte("FLETCH_HOME="+w.home+"\x00")) && bytes.HasSuffix(cmdline, []byte("\x00hub\x00")) && other != pid {
			t.Errorf("process %s is a second hub", other)
		}
	}
}

func TestAnAgentRunsInItsOwnCheckoutAndItsOutputIsKept(t *testing.T) {
	w := newWorld(t)
	a := w.launch("cat README.md; echo two > README.md; touch ../x ~/y /usr/z; echo end")
	w.until(a.Name, "exited", "failed")
	out := w.run("logs", "--text", a.Name)
	if !strings.Contains(out, "one") || !strings.Contains(out, "end") {
		t.Errorf("the output is %q", out)
	}
	if raw, err := os.ReadFile(filepath.Join(w.repo, "README.md")); err != nil || string(raw) != "one\n" {
		t.Errorf("the user's file is now %q (%v)", raw, err)
	}
	if a.Base.Commit != state.Commit(w.git("rev-parse", "HEAD")) || a.Base.Ref != "main" {
		t.Errorf("base %+v", a.Base)
	}
}

func TestUncommittedFilesAreCountedAndSaid(t *testing.T) {
	w := newWorld(t)
	w.write("new.txt", "x")
	w.write("README.md", "changed\n")
	_, errOut, code := w.try(w.ctx(), "new", "--", "true")
	if code != 0 || !strings.Contains(errOut, "2 uncommitted files are not included") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

func TestWhatAnAgentPrintsSurvivesTheHubAndComesBackWhole(t *testing.T) {
	w := newWorld(t)
	a := w.launch("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; cat go; echo END", "--name", "printer")
	_ = a
	first := w.hub().PID
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitGone(first)
	w.until("printer", "exited", "failed")
	if second := w.hub().PID; second == first {
		t.Fatal("the hub was not killed")
	}
	raw := w.run("logs", "--raw", "printer")
	for i := range 3000 {
		if !strings.Contains(raw, "line "+strconv.Itoa(i)+"\r\n") {
			t.Fatalf("line %d is lost", i)
		}
	}
}

func TestAHangUpAndATermEndNoAgent(t *testing.T) {
	w := newWorld(t)
	w.launch("while :; do sleep 1; done", "--name", "stays")
	pid := w.hub().PID
	for _, child := range w.keepers() {
		if err := syscall.Kill(child, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitGone(pid)
	if a := w.agent("stays"); !a.Status.Live() {
		t.Errorf("it is %s: %s", a.Status, a.Reason)
	}
	if w.hub().PID == pid {
		t.Error("the hub did not end")
	}
}

// keepers lists the keepers of this world by their sockets' owners.
func (w *world) keepers() map[string]int {
	w.t.Helper()
	found := map[string]int{}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range procs {
		raw, _ := os.ReadFile(name)
		if !bytes.HasPrefix(raw, []byte(fletchBinary)) || !bytes.HasSuffix(raw, []byte("\x00keeper\x00")) {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "environ"))
		if !bytes.Contains(environ, []byte("FLETCH_HOME="+w.home+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			w.t.Fatal(err)
		}
		found[filepath.Base(filepath.Dir(name))] = pid
	}
	return found
}

func TestAKilledKeeperIsAFailedAgentThatCanBeContinued(t *testing.T) {
	w := newWorld(t)
	w.launch("echo started >> log; while :; do sleep 1; done", "--name", "lost")
	keepers := w.keepers()
	if len(keepers) != 1 {
		t.Fatalf("keepers: %v", keepers)
	}
	for _, pid := range keepers {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	w.until("lost", "failed")
	if a := w.agent("lost"); a.Reason != "its keeper died" {
		t.Errorf("reason %q", a.Reason)
	}
	w.run("resume", "lost")
	w.until("lost", "working", "idle")
	w.run("stop", "lost")
	if a := w.agent("lost"); a.Status != state.Stopped {
		t.Errorf("it is %s (%s)", a.Status, a.Reason)
	}
}

func TestAProgramThatExitsAtOnceIsNotADeadRow(t *testing.T) {
	w := newWorld(t)
	for script, want := range map[string]state.Status{"exit 0": state.Exited, "exit 7": state.Failed, "kill -9 $$": state.Failed} {
		a := w.launch(script)
		w.until(a.Name, "exited", "failed")
		if now := w.agent(a.Name); now.Status != want || want == state.Failed && now.Reason == "" {
			t.Errorf("%s: %s %q", script, now.Status, now.Reason)
		}
	}
}

func TestARemovedAgentComesBackWithItsWork(t *testing.T) {
	w := newWorld(t)
	w.launch("echo precious > work.txt", "--name", "gone")
	w.until("gone", "exited")
	a := w.agent("gone")
	w.run("rm", "gone")
	if _, err := os.Lstat(a.Workspace); err == nil {
		t.Error("the workspace is still there")
	}
	if code, _, _ := w.refused("show", "gone"); code != "no-such-agent" {
		t.Errorf("code %q", code)
	}
	w.run("undo")
	if raw, err := os.ReadFile(filepath.Join(a.Workspace, "work.txt")); err != nil || string(raw) != "precious\n" {
		t.Errorf("%q %v", raw, err)
	}
}

func TestTextSentToAnAgentArrives(t *testing.T) {
	w := newWorld(t)
	w.launch("read line; echo got:$line", "--name", "ear")
	w.run("send", "ear", "hello there")
	w.until("ear", "exited")
	if out := w.run("logs", "--text", "ear"); !strings.Contains(out, "got:hello there") {
		t.Errorf("%q", out)
	}
}

func TestTheLogsChainVerifies(t *testing.T) {
	w := newWorld(t)
	w.launch("true", "--name", "one")
	w.until("one", "exited")
	w.run("hub", "stop")
	if head := w.run("log", "--verify"); strings.TrimSpace(head) == "" {
		t.Error("no head")
	}
	var seqs []uint64
	for line := range strings.SplitSeq(strings.TrimSpace(w.run("log", "--json")), "\n") {
		var e state.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, e.Seq)
	}
	for i, s := range seqs {
		if s != uint64(i+1) {
			t.Fatalf("event %d has number %d", i, s)
		}
	}
}

// TestSoak kills the dashboard's stand-in, the hub and one keeper at random
// while agents print; what the others print must come back byte for byte.
func TestSoak(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("FLETCH_SOAK_ROUNDS")); err == nil {
		rounds = n
	}
	const agents, lines = 10, 400
	for round := range rounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			w := newWorld(t)
			script := `i=0; while [ $i -lt ` + strconv.Itoa(lines) + ` ]; do echo "$FLETCH_AGENT line $i"; i=$((i+1)); case $i in *00) sleep 0.2;; esac; done`
			w.run("new", "--name", "p", "--copies", strconv.Itoa(agents-1), "--no-wait", "--", "sh", "-c", script)
			w.launch("while :; do sleep 1; done", "--name", "victim")
			watch := w.background("requests", "--follow", "--json")
			victim := w.keeperOf(w.agent("victim").ID)
			for _, pid := range []int{w.hub().PID, victim, watch} {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Errorf("killing %d: %v", pid, err)
				}
				waitGone(pid)
				w.run("ls")
			}
			w.until("victim", "failed")
			for i := 1; i < agents; i++ {
				name := "p-" + strconv.Itoa(i)
				w.until(name, "exited", "failed")
				want := sha256.New()
				for n := range lines {
					want.Write([]byte(name + " line " + strconv.Itoa(n) + "\r\n"))
				}
				got := sha256.Sum256([]byte(w.run("logs", "--raw", name)))
				if hex.EncodeToString(got[:]) != hex.EncodeToString(want.Sum(nil)) {
					t.Errorf("the output of %s is not what it printed", name)
				}
			}
			if n := len(decode[[]state.Agent](t, w.run("ls", "--json"))); n != agents {
				t.Errorf("%d agents on record, %d started", n, agents)
			}
			w.run("log", "--verify")
		})
	}
}

// keeperOf finds the process that holds an agent's keeper socket, by the pid
// that its run directory names.
func (w *world) keeperOf(id state.AgentID) int {
	w.t.Helper()
	for _, pid := range w.keepers() {
		maps, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, fd := range maps {
			if target, err := os.Readlink(fd); err == nil && strings.Contains(target, "/run/"+string(id)+"/") {
				return pid
			}
		}
	}
	w.t.Fatalf("no keeper holds a file of %s", id)
	return 0
}
