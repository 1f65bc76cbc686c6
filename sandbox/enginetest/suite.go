package enginetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fletch/sandbox"
)

// patience bounds a step of the suite. It is long because a loaded machine
// is no fault of an engine.
const patience = 60 * time.Second

// Suite is what every engine must do. engine gives a fresh one for each test;
// its programs must find /bin/sh and the usual Unix tools.
func Suite(t *testing.T, engine func(t *testing.T) sandbox.Engine) {
	for _, c := range []struct {
		name string
		test func(bench)
	}{
		{"ProbeAgreesThatItWorks", bench.probes},
		{"ClaimsNameEveryGuaranteeOnce", bench.claims},
		{"OutputArrivesAtTheNearEnd", bench.output},
		{"TypingArrivesAtTheProgram", bench.typing},
		{"TheProgramHasExactlyItsEnvironment", bench.environment},
		{"TheProgramStartsInItsDirectory", bench.directory},
		{"ProgramsOfBinAreFoundFirst", bench.programs},
		{"ExitCodesAreThoseOfAShell", bench.codes},
		{"EveryWaiterGetsTheSameAnswer", bench.waiters},
		{"ResizeReachesTheProgram", bench.resizes},
		{"CtrlCInterruptsTheProgramOnly", bench.interrupts},
		{"SignalReachesTheProgram", bench.signals},
		{"RemoveEndsEverything", bench.removes},
		{"WhatTheProgramLeavesBehindIsGoneAfterWait", bench.orphans},
		{"StartRefusesAProgramThatIsNotThere", bench.missing},
		{"StartRefusesAMissingSource", bench.source},
		{"StartRefusesASpecThatMakesNoSense", bench.nonsense},
		{"AnEndedContextStartsNothing", bench.late},
		{"TheStartsContextDoesNotEndTheBox", bench.outlives},
		{"AListenerIsThereOnlyWithANetwork", bench.listener},
		{"RunCarriesBytesBothWays", bench.run},
		{"RunReportsTheCodeAndTheLastWords", bench.runFails},
		{"RunEndsWithItsContext", bench.runCancelled},
		{"RunHandsOnKeptFiles", bench.keeps},
		{"RunTakesNeitherTerminalNorNetwork", bench.runSealed},
		{"ManyStartAtOnce", bench.many},
		{"NothingIsLeftOfARemovedBox", bench.leftovers},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(bench{t: t, engine: engine(t)})
		})
	}
}

// bench is one test of the suite.
type bench struct {
	t      *testing.T
	engine sandbox.Engine
}

func (b bench) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.t.Cleanup(cancel)
	return ctx
}

// spec is a shell script with a terminal in a folder of its own.
func (b bench) spec(script string) sandbox.Spec {
	b.t.Helper()
	dir, err := filepath.EvalSymlinks(b.t.TempDir())
	if err != nil {
		b.t.Fatal(err)
	}
	return sandbox.Spec{
		Agent: "agent", Store: "suite-" + rand.Text(), // no other run's boxes are looked at
		Argv: []string{"sh", "-c", script}, Dir: dir,
		Env:      []string{"PATH=/usr/bin:/bin", "TERM=xterm-256color", "HOME=" + dir},
		Mounts:   []sandbox.Mount{{Source: dir, Write: true}},
		Terminal: &sandbox.Size{Cols: 80, Rows: 24},
	}
}

// oneShot is the same without a terminal.
func (b bench) oneShot(script string) sandbox.Spec {
	s := b.spec(script)
	s.Terminal = nil
	return s
}

func (b bench) start(s sandbox.Spec) started {
	b.t.Helper()
	box, err := b.engine.Start(b.context(), s)
	if err != nil {
		b.t.Fatalf("Start: %v", err)
	}
	b.t.Cleanup(func() { _ = box.Remove() }) // again is fine
	st := started{t: b.t, Box: box}
	if box.Attach() != nil {
		st.lines = bufio.NewReader(box.Attach())
	}
	return st
}

// started is a box with its terminal read line by line.
type started struct {
	t *testing.T
	sandbox.Box
	lines *bufio.Reader
}

// says waits for a line of output that contains want.
func (s started) says(want string) {
	s.t.Helper()
	guard := time.AfterFunc(patience, func() { _ = s.Remove() }) // ends the read
	defer guard.Stop()
	var all strings.Builder
	for {
		line, err := s.lines.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, want) {
			return
		}
		if err != nil {
			s.t.Fatalf("waiting for %q: %v after %q", want, err, all.String())
		}
	}
}

// ends waits for the end, reading on so that nothing blocks.
func (s started) ends() sandbox.Exit {
	s.t.Helper()
	guard := time.AfterFunc(patience, func() {
		s.t.Error("the program did not end")
		_ = s.Remove()
	})
	defer guard.Stop()
	if s.lines != nil {
		_, _ = io.Copy(io.Discard, s.lines) // ends with EIO
	}
	return s.Wait()
}

func (b bench) probes() {
	if err := b.engine.Probe(b.context()); err != nil {
		b.t.Fatalf("Probe: %v", err)
	}
}

func (b bench) claims() {
	seen := map[string]bool{}
	for _, c := range b.engine.Claims() {
		if seen[c.Name] {
			b.t.Errorf("%s is claimed twice", c.Name)
		}
		seen[c.Name] = true
		switch c.Held {
		case "enforced":
		case "partial", "unenforced":
			if c.Reason == "" {
				b.t.Errorf("%s is %s without a reason", c.Name, c.Held)
			}
		default:
			b.t.Errorf("%s is held %q", c.Name, c.Held)
		}
	}
	for _, name := range sandbox.ClaimNames() {
		if !seen[name] {
			b.t.Errorf("nothing is said about %s", name)
		}
	}
}

func (b bench) output() {
	box := b.start(b.spec("echo one; echo two >&2; tty >/dev/null && echo terminal"))
	box.says("one")
	box.says("two")
	box.says("terminal")
	if exit := box.ends(); exit.Code != 0 || exit.Err != nil {
		b.t.Errorf("ended with %+v", exit)
	}
}

func (b bench) typing() {
	box := b.start(b.spec("stty -echo; echo ready; read line; echo got:$line"))
	box.says("ready")
	if _, err := box.Attach().WriteString("hello\n"); err != nil {
		b.t.Fatal(err)
	}
	box.says("got:hello")
}

func (b bench) environment() {
	s := b.oneShot("")
	s.Argv = []string{"env"}
	s.Env = append(s.Env, "ODD=a=b c", "EMPTY=")
	var out bytes.Buffer
	if err := b.engine.Run(b.context(), s, nil, &out, nil); err != nil {
		b.t.Fatal(err)
	}
	if got, want := strings.TrimSpace(out.String()), strings.Join(s.Env, "\n"); got != want {
		b.t.Errorf("its environment is\n%s\nwant\n%s", got, want)
	}
}

func (b bench) directory() {
	s := b.oneShot("pwd -P; echo written >here")
	var out bytes.Buffer
	if err := b.engine.Run(b.context(), s, nil, &out, nil); err != nil {
		b.t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != s.Dir {
		b.t.Errorf("it started in %q, want %q", got, s.Dir)
	}
	if got, err := os.ReadFile(filepath.Join(s.Dir, "here")); err != nil || string(got) != "written\n" {
		b.t.Errorf("what it wrote is %q, %v", got, err)
	}
}

func (b bench) programs() {
	s := b.oneShot("greet")
	s.Bin = filepath.Join(b.t.TempDir(), "bin")
	if err := os.Mkdir(s.Bin, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Bin, "greet"), []byte("#!/bin/sh\necho hello from bin\n"), 0o755); err != nil {
		b.t.Fatal(err)
	}
	s.Env[0] = "PATH=/run/fletch/bin:/usr/bin:/bin"
	var out bytes.Buffer
	if err := b.engine.Run(b.context(), s, nil, &out, nil); err != nil {
		b.t.Fatal(err)
	}
	if out.String() != "hello from bin\n" {
		b.t.Errorf("got %q", out.String())
	}
}

func (b bench) codes() {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 128 + 15, "kill -KILL $$": 128 + 9} {
		exit := b.start(b.spec(script)).ends()
		if exit.Code != want || exit.Err != nil {
			b.t.Errorf("%s ended with %+v, want code %d", script, exit, want)
		}
		if (exit.Signal != "") != (want > 128) {
			b.t.Errorf("%s names the signal %q", script, exit.Signal)
		}
	}
}

func (b bench) waiters() {
	box := b.start(b.spec("read line; exit 3"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if exit := box.Wait(); exit.Code != 3 {
				b.t.Errorf("Wait says %+v", exit)
			}
		})
	}
	if _, err := box.Attach().WriteString("\n"); err != nil {
		b.t.Fatal(err)
	}
	box.ends()
	all.Wait()
}

func (b bench) resizes() {
	box := b.start(b.spec("trap 'stty size; exit 0' WINCH; stty size; echo ready; while :; do sleep 0.05; done"))
	box.says("24 80")
	box.says("ready")
	if err := box.Resize(sandbox.Size{Cols: 91, Rows: 33}); err != nil {
		b.t.Fatal(err)
	}
	box.says("33 91")
	if exit := box.ends(); exit.Code != 0 {
		b.t.Errorf("ended with %+v", exit)
	}
}

func (b bench) interrupts() {
	box := b.start(b.spec("trap 'echo interrupted' INT; echo ready; while :; do sleep 0.05; done"))
	box.says("ready")
	for range 2 {
		if _, err := box.Attach().WriteString("\x03"); err != nil {
			b.t.Fatal(err)
		}
		box.says("interrupted")
	}
}

func (b bench) signals() {
	box := b.start(b.spec("trap 'echo asked to stop; exit 5' TERM; echo ready; while :; do sleep 0.05; done"))
	box.says("ready")
	if err := box.Signal(syscall.SIGTERM); err != nil {
		b.t.Fatal(err)
	}
	box.says("asked to stop")
	if exit := box.ends(); exit.Code != 5 {
		b.t.Errorf("ended with %+v", exit)
	}
}

func (b bench) removes() {
	box := b.start(b.spec("trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"))
	box.says("ready")
	if !alive(box.PID()) {
		b.t.Errorf("its pid %d is not alive", box.PID())
	}
	if err := box.Remove(); err != nil {
		b.t.Fatal(err)
	}
	if exit := box.Wait(); exit.Code != 137 || exit.Signal != "killed" {
		b.t.Errorf("ended with %+v", exit)
	}
	if _, err := box.Attach().Write([]byte("x")); err == nil {
		b.t.Error("its terminal is still open")
	}
	if err := box.Remove(); err != nil {
		b.t.Errorf("removing it again: %v", err)
	}
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return pid > 0 && err == nil && p.Signal(syscall.Signal(0)) == nil
}

func (b bench) orphans() {
	s := b.spec("( trap '' TERM HUP; echo $$ >started; while :; do echo alive >beat; sleep 0.05; done ) & while ! test -e beat; do sleep 0.05; done; exit 0")
	box := b.start(s)
	if exit := box.ends(); exit.Code != 0 {
		b.t.Fatalf("ended with %+v", exit)
	}
	beat := filepath.Join(s.Dir, "beat")
	if err := os.Remove(beat); err != nil {
		b.t.Fatal(err)
	}
	// What is left would write it again within 0.05 s.
	timer := time.NewTimer(500 * time.Millisecond)
	defer timer.Stop()
	<-timer.C
	if _, err := os.Stat(beat); !errors.Is(err, os.ErrNotExist) {
		b.t.Error("something of it lives on")
	}
}
