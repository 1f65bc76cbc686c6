package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fletch/sandbox"
	"fletch/sandbox/box"

	"golang.org/x/sys/unix"
)

// canary is a program whose first act is seen from outside.
func canary(t *testing.T) (s sandbox.Spec, ran func() bool) {
	t.Helper()
	s = spec(t, "sh", "-c", "echo >canary")
	s.Terminal = &sandbox.Size{Cols: 80, Rows: 24}
	return s, func() bool {
		_, err := os.Lstat(filepath.Join(s.Dir, "canary"))
		return err == nil
	}
}

// mustRefuse starts s, which must fail with all of words, without the program
// running and with nothing left behind.
func mustRefuse(t *testing.T, e *Engine, s sandbox.Spec, ran func() bool, words ...string) error {
	t.Helper()
	b, err := e.Start(withTime(t), s)
	if err == nil {
		b.Wait()
		b.Remove()
		t.Fatal("it started")
	}
	if ran() {
		t.Fatalf("the program ran, though Start says %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error %q does not say %q", err, w)
		}
	}
	noGroups(t, s.Store)
	return err
}

// noGroups wants no control group of the store to be left, used or not.
func noGroups(t *testing.T, store string) {
	t.Helper()
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		if entries, err := os.ReadDir(filepath.Join(h.root, parentName(store))); err == nil && len(entries) > 0 {
			t.Errorf("%s holds %v", h.root, entries)
		}
	}
}

func TestTheCanarySings(t *testing.T) {
	s, ran := canary(t)
	b, err := engine(t).Start(withTime(t), s)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Remove()
	if exit := b.Wait(); exit.Code != 0 || !ran() {
		t.Errorf("without a fault: %+v, ran %v", exit, ran())
	}
}

func TestEveryFailingStepStopsTheStart(t *testing.T) {
	for _, step := range []string{
		box.StepConfig, box.StepView, box.StepListener, box.StepStreams, box.StepProgram, box.StepLimits, box.StepUndumpable,
		box.StepPrivileges, box.StepLandlock, box.StepFilter, box.StepDescriptors, box.StepExec,
	} {
		t.Run(step, func(t *testing.T) {
			e := engine(t)
			e.testOnlyBoxArgs = []string{"fail=" + step}
			s, ran := canary(t)
			s.Network = sandbox.NetworkProxy
			err := mustRefuse(t, e, s, ran, "failed on purpose")
			if step != box.StepProgram && !strings.Contains(err.Error(), step) {
				t.Errorf("the error %q does not name the step", err)
			}
			var refusal *sandbox.Refusal
			if errors.As(err, &refusal) && (refusal.Cause == "" || refusal.Fix == "") {
				t.Errorf("the refusal %+v lacks a cause or a fix", refusal)
			}
		})
	}
}

// liars are boxes that do not do what they say; the engine must notice.
var liars = map[string]func(socket int, c box.Config) error{
	// The listening socket was asked for, and does not come.
	"no-listener": func(socket int, c box.Config) error {
		return say(socket, box.Report{TID: unix.Gettid(), Landlock: 7, Filter: "x"})
	},
	// It says that a socket comes, and none does.
	"false-listener": func(socket int, c box.Config) error {
		return say(socket, box.Report{TID: unix.Gettid(), Landlock: 7, Filter: "x", Listen: true})
	},
	// There is no system-call filter.
	"no-filter": func(socket int, c box.Config) error {
		return say(socket, box.Report{TID: unix.Gettid(), Landlock: 7, Filter: "x"})
	},
	"garbage": func(socket int, c box.Config) error { return unix.Sendmsg(socket, []byte("{"), nil, nil, 0) },
	"silence": func(socket int, c box.Config) error { return nil },
}

func say(socket int, r box.Report) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return unix.Sendmsg(socket, raw, nil, nil, 0)
}

// lie plays a box that says it is done and runs the program when it is let.
func lie(name string, args []string) int {
	socket, _ := strconv.Atoi(args[0])
	order, _ := strconv.Atoi(args[1])
	var c box.Config
	if err := json.NewDecoder(os.NewFile(uintptr(order), "order")).Decode(&c); err != nil {
		return 1
	}
	if err := liars[name](socket, c); err != nil {
		return 1
	}
	if name == "silence" {
		return 0
	}
	word := make([]byte, 1)
	if n, _, err := unix.Recvfrom(socket, word, 0); err != nil || n != 1 {
		return 1
	}
	_ = os.WriteFile(filepath.Join(c.Dir, "canary"), nil, 0o644) // what must not happen
	return 0
}

func TestABoxThatLiesIsFoundOut(t *testing.T) {
	for name, word := range map[string]string{
		"no-listener": "socket", "false-listener": "differ", "no-filter": "Seccomp", "garbage": "JSON", "silence": "before it was ready",
	} {
		t.Run(name, func(t *testing.T) {
			e := engine(t)
			e.testOnlyBoxArgs = []string{"lie=" + name}
			s, ran := canary(t)
			if name != "no-filter" {
				s.Network = sandbox.NetworkProxy
			}
			mustRefuse(t, e, s, ran, word)
		})
	}
}

// script makes a stand-in for bwrap.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMissingBubblewrapIsSaidWithTheFix(t *testing.T) {
	e := engine(t)
	e.testOnlyBwrap = filepath.Join(t.TempDir(), "bwrap")
	s, ran := canary(t)
	for what, err := range map[string]error{"Start": mustRefuse(t, e, s, ran), "Probe": e.Probe(withTime(t))} {
		var refusal *sandbox.Refusal
		if !errors.As(err, &refusal) || refusal.Cause != "bubblewrap is missing" || refusal.Fix != "apt-get install bubblewrap" {
			t.Errorf("%s says %#v", what, err)
		}
	}
	if got := e.Detail(withTime(t)); strings.Contains(got, "bubblewrap") {
		t.Errorf("its detail is %q", got)
	}
}

func TestAFailingBubblewrapStartsNothing(t *testing.T) {
	for name, c := range map[string]struct{ body, word string }{
		"fails":              {"echo 'bwrap: Something new' >&2; exit 1", "Something new"},
		"fails in silence":   {"exit 1", "before it was ready"},
		"says nonsense":      {"echo nonsense >&3; echo nonsense >&4; echo nonsense >&5; exit 0", "sandbox"},
		"names another pid":  {`for n in 3 4 5 6 7; do echo '{"child-pid": 1}' >&$n; done 2>/dev/null; sleep 1; exit 0`, "sandbox"},
		"cannot be executed": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine(t)
			e.testOnlyBwrap = script(t, c.body)
			if c.body == "" {
				if err := os.WriteFile(e.testOnlyBwrap, []byte("\x7fELF"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			s, ran := canary(t)
			mustRefuse(t, e, s, ran, c.word)
		})
	}
}

func TestAStartThatHangsEndsWithItsContext(t *testing.T) {
	e := engine(t)
	e.testOnlyBwrap = script(t, "exec sleep 1000")
	s, ran := canary(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	b, err := e.Start(ctx, s)
	if err == nil {
		b.Remove()
		t.Fatal("it started")
	}
	if !errors.Is(err, context.DeadlineExceeded) || ran() {
		t.Errorf("Start says %v, ran %v", err, ran())
	}
	noGroups(t, s.Store)
}

func TestAFailedProbeIsNotRemembered(t *testing.T) {
	e := engine(t)
	e.testOnlyBwrap = script(t, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
	var refusal *sandbox.Refusal
	if err := e.Probe(withTime(t)); !errors.As(err, &refusal) || refusal.Cause == "" || refusal.Fix == "" {
		t.Fatalf("Probe says %v", err)
	}
	e.testOnlyBwrap = ""
	if err := e.Probe(withTime(t)); err != nil {
		t.Errorf("mended, Probe says %v", err)
	}
}

func TestADirectoryOutOfViewStopsTheStart(t *testing.T) {
	s, ran := canary(t)
	s.Dir = "/home/nobody-here"
	mustRefuse(t, engine(t), s, ran, "working directory")
}

func TestClassifyNamesCauseAndFix(t *testing.T) {
	const noNamespace = "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces."
	for _, c := range []struct {
		words      string
		facts      facts
		cause, fix string
	}{
		{noNamespace, facts{clone: "0"}, "user namespaces are off (kernel.unprivileged_userns_clone=0)", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{noNamespace, facts{clone: "1", max: "0"}, "user namespaces are off (user.max_user_namespaces=0)", "sudo sysctl -w user.max_user_namespaces"},
		{"bwrap: Creating new namespace failed: No space left on device", facts{max: "5"}, "user.max_user_namespaces=5", "sudo sysctl -w user.max_user_namespaces"},
		{"bwrap: setting up uid map: Permission denied", facts{apparmor: "1"}, "AppArmor", "bwrap-userns-restrict"},
		{"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", facts{apparmor: "1"}, "AppArmor", "bwrap-userns-restrict"},
		{"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", facts{container: true}, "/proc", "systempaths=unconfined"},
		{noNamespace, facts{container: true}, "container", "seccomp=unconfined"},
		{"bwrap: setting up uid map: Operation not permitted", facts{}, "CAP_SETFCAP", "ordinary user"},
		{"bwrap: Unknown option --ro-bind-fd", facts{}, "too old", "0.8.0"},
		{noNamespace, facts{}, "user namespaces cannot be used", "user that may make"},
	} {
		got := classify(c.words, c.facts)
		if got == nil || !strings.Contains(got.Cause, c.cause) || !strings.Contains(got.Fix, c.fix) {
			t.Errorf("%q with %+v gives %+v", c.words, c.facts, got)
		}
		if got != nil && strings.ContainsAny(got.Cause+got.Fix, "\n") {
			t.Errorf("%q gives more than a line", c.words)
		}
	}
	if got := classify("bwrap: Can't find source path /x", facts{}); got != nil {
		t.Errorf("an unknown fault gives %+v", got)
	}
}
