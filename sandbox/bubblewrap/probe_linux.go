package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"fletch/sandbox"
	"fletch/sandbox/box"
)

// probeAge is how long a probe that succeeded is believed. One that failed
// never is: the person may just have mended it.
const probeAge = time.Minute

// Probe seals /usr/bin/true, all of it, and runs it.
func (e *Engine) Probe(ctx context.Context) error {
	e.probing.Lock()
	defer e.probing.Unlock()
	if !e.worked.IsZero() && time.Since(e.worked) < probeAge {
		return nil
	}
	err := e.Run(ctx, sandbox.Spec{Agent: "probe", Store: "probe", Argv: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}, nil, nil, nil)
	var refusal *sandbox.Refusal
	switch {
	case err == nil:
		e.worked = time.Now()
		return nil
	case errors.As(err, &refusal):
		return refusal
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &sandbox.Refusal{Engine: engineName, Cause: err.Error(), Fix: "run fletch doctor for all that was found"}
}

// Detail says in one line what the engine is made of here: "bubblewrap
// 0.8.0, Landlock 7, private network". Parts that are missing are left out.
func (e *Engine) Detail(ctx context.Context) string {
	var parts []string
	if path, err := e.find(); err == nil {
		// "bubblewrap 0.8.0" is all it prints.
		if out, err := exec.CommandContext(ctx, path, "--version").Output(); err == nil {
			parts = append(parts, strings.TrimSpace(string(out)))
		}
	}
	if abi, err := box.LandlockABI(); err == nil {
		parts = append(parts, fmt.Sprintf("Landlock %d", abi))
	}
	return strings.Join(append(parts, "private network"), ", ")
}

// needsGroup reports whether a control group must bound the processes:
// RLIMIT_NPROC does nothing for the user that is root of the whole machine.
func needsGroup() bool {
	if os.Getuid() != 0 {
		return false
	}
	raw, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "0" {
			return f[1] == "0"
		}
	}
	return true
}

// explain finds the cause that a person can do something about. It asks the
// settings only after a failure: whether the engine works is found by doing.
func (e *Engine) explain(ctx context.Context, st *start, err error) error {
	var refusal *sandbox.Refusal
	if errors.As(err, &refusal) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the start was cut off: %w", ctx.Err())
	}
	var step *stepError
	if errors.As(err, &step) {
		return stepRefusal(step)
	}
	words := ""
	if tail, ok := st.cmd.Stderr.(*sandbox.Tail); ok {
		words = strings.TrimSpace(tail.String())
	}
	if words == "" {
		return err
	}
	if r := classify(words, hostFacts()); r != nil {
		return r
	}
	return fmt.Errorf("%w: %s", err, firstLine(words))
}

// stepRefusal names the steps of box that a machine, not a Spec, makes fail.
func stepRefusal(step *stepError) error {
	refusal := &sandbox.Refusal{Engine: engineName, Cause: step.Error()}
	switch step.report.Step {
	case box.StepLandlock:
		refusal.Fix = "use Linux 5.19 or newer, and have landlock in the boot parameter lsm="
	case box.StepFilter:
		refusal.Fix = "use a kernel with seccomp filters, on amd64 or arm64"
	default:
		return step
	}
	return refusal
}

// facts are the settings of the host that make bubblewrap fail.
type facts struct {
	clone     string // kernel.unprivileged_userns_clone, empty where there is none
	apparmor  string // kernel.apparmor_restrict_unprivileged_userns, the same
	max       string // user.max_user_namespaces
	container bool
}

func hostFacts() facts {
	read := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(raw))
	}
	f := facts{
		clone:    read("/proc/sys/kernel/unprivileged_userns_clone"),
		apparmor: read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		max:      read("/proc/sys/user/max_user_namespaces"),
	}
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			f.container = true
		}
	}
	return f
}

// classify turns bwrap's last words into a cause and a fix, nil when it does
// not know them.
func classify(words string, f facts) *sandbox.Refusal {
	has := func(all ...string) bool {
		for _, w := range all {
			if strings.Contains(words, w) {
				return true
			}
		}
		return false
	}
	say := func(cause, fix string) *sandbox.Refusal {
		return &sandbox.Refusal{Engine: engineName, Cause: cause, Fix: fix}
	}
	noNamespace := has("No permissions to create new namespace", "Creating new namespace failed", "No permissions to create a new namespace", "kernel does not support user namespaces", "unshare")
	switch {
	case has("Unknown option"):
		return say("bubblewrap is too old: "+firstLine(words), "install bubblewrap 0.8.0 of Debian 12 or newer")
	case noNamespace && f.clone == "0":
		return say("user namespaces are off (kernel.unprivileged_userns_clone=0)", "sudo sysctl -w kernel.unprivileged_userns_clone=1")
	case f.max == "0" && (noNamespace || has("No space left on device")):
		return say("user namespaces are off (user.max_user_namespaces=0)", "sudo sysctl -w user.max_user_namespaces=10000")
	case has("No space left on device") && has("namespace"):
		return say("no more user namespaces are allowed (user.max_user_namespaces="+f.max+")", "sudo sysctl -w user.max_user_namespaces=10000")
	case f.apparmor == "1" && (noNamespace || has("uid map: Permission denied", "RTM_NEWADDR", "gid map: Permission denied")):
		return say("AppArmor keeps bubblewrap from using user namespaces (kernel.apparmor_restrict_unprivileged_userns=1)",
			"sudo apt-get install apparmor-profiles && sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo systemctl reload apparmor")
	case f.container && has("Can't mount proc", "mount proc"):
		return say("a container that hides parts of /proc cannot hold a sandbox", "start the container with --security-opt systempaths=unconfined, or run fletch outside of it")
	case f.container && noNamespace:
		return say("this container may not make namespaces", "start the container with --security-opt seccomp=unconfined, or run fletch outside of it")
	case has("uid map: Operation not permitted"):
		return say("root may not set up a user namespace here (CAP_SETFCAP is missing)", "run fletch as an ordinary user")
	case noNamespace:
		return say("user namespaces cannot be used: "+firstLine(words), "run fletch as a user that may make user namespaces")
	}
	return nil
}

func firstLine(words string) string {
	line, _, _ := strings.Cut(words, "\n")
	return strings.TrimPrefix(line, "bwrap: ")
}
