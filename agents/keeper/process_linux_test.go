package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"fletch/agents/attach"
	"fletch/sandbox"
	"fletch/sandbox/enginetest"
)

// actAs makes the test binary a keeper or a viewer for tests of processes.
func actAs() bool {
	switch os.Getenv("KEEPER_TEST_ROLE") {
	case "keeper":
		os.Exit(serve(func(string, string) (sandbox.Engine, error) { return enginetest.New(), nil }))
	case "viewer":
		c, err := attach.Dial(context.Background(), os.Getenv("KEEPER_TEST_SOCKET"), attach.Hello{Protocol: attach.Protocol, Role: attach.RoleViewer})
		if err == nil {
			_, err = c.Next(context.Background())
		}
		fmt.Println("watching", err)
		select {} // until it is killed
	default:
		return false
	}
	return true
}

// keeperProcess starts "fletch keeper" with the fake engine. It gives the
// process and its answer.
func (w *world) keeperProcess(order any, wrap ...string) (*exec.Cmd, string) {
	w.Helper()
	body, err := json.Marshal(order)
	if err != nil {
		w.Fatal(err)
	}
	in, give, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	hear, out, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	argv := append(wrap, self)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"KEEPER_TEST_ROLE=keeper", "PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles = []*os.File{in, out}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_, _ = in.Close(), out.Close()
	_, _ = give.Write(body)
	_ = give.Close()
	line, _ := bufio.NewReader(hear).ReadString('\n')
	_ = hear.Close()
	return cmd, line
}

func TestAKeeperAnswersItsStarter(t *testing.T) {
	w := prepare(t, "exit 0")
	cmd, line := w.keeperProcess(w.order)
	if line != `{"ok":true}`+"\n" {
		t.Errorf("answer = %q", line)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("keeper: %v", err)
	}
	w.order.Spec.Argv = []string{"no-such-program"}
	if _, line := w.keeperProcess(w.order); !strings.HasPrefix(line, `{"ok":false,"error":"`) || !strings.Contains(line, "no-such-program") {
		t.Errorf("answer = %q", line)
	}
	if _, line := w.keeperProcess("nonsense"); !strings.HasPrefix(line, `{"ok":false,"error":"reading the order`) {
		t.Errorf("answer = %q", line)
	}
}

func TestAClosedTerminalEndsNothing(t *testing.T) {
	// The hub ignores the signal, and so does what it starts; the agent's
	// program must not.
	w := prepare(t, `grep SigIgn /proc/self/status; while read x; do echo "<$x>"; done`)
	cmd, line := w.keeperProcess(w.order, "sh", "-c", `trap "" HUP; exec "$0"`)
	if line != `{"ok":true}`+"\n" {
		t.Fatalf("answer = %q", line)
	}
	c := w.dial(attach.RoleViewer)
	shows(t, c, "SigIgn:")
	// The highest bit is a signal that the C library keeps for itself; what
	// runs the tests may ignore it.
	_, mask, _ := strings.Cut(w.transcript(), "SigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\r")
	if ignored, err := strconv.ParseUint(mask, 16, 64); err != nil || ignored&^(1<<31) != 0 {
		t.Errorf("the program ignores signals: %q %v", mask, err)
	}
	for range 3 {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Input([]byte("alive\r")); err != nil {
		t.Fatal(err)
	}
	shows(t, c, "<alive>")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("keeper: %v", err)
	}
	if e := w.exitFile(); e.Reason != "stopped" {
		t.Errorf("exit = %+v", e)
	}
}

func TestNothingOfTheKeeperCanBeReadOrInherited(t *testing.T) {
	w := prepare(t, `ls -l /proc/self/fd; while read x; do :; done`)
	cmd, line := w.keeperProcess(w.order)
	if line != `{"ok":true}`+"\n" {
		t.Fatalf("answer = %q", line)
	}
	if info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("environ: %+v, %v", info, err)
	}
	c := w.dial(attach.RoleViewer)
	shows(t, c, "total")
	// What this test inherited itself is not the keeper's.
	out := w.transcript()
	for _, fd := range []int{orderFD, readyFD} {
		if strings.Contains(out, fmt.Sprintf(" %d -> 'pipe:", fd)) || strings.Contains(out, fmt.Sprintf(" %d -> pipe:", fd)) {
			t.Errorf("the program inherited descriptor %d:\n%s", fd, out)
		}
	}
	if strings.Contains(out, "socket:") || strings.Contains(out, "transcript") {
		t.Errorf("the program inherited:\n%s", out)
	}
}

func TestKillingAViewerCostsTheAgentNothing(t *testing.T) {
	w := prepare(t, `while read x; do echo "<$x>"; done`).run()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	viewer := exec.Command(self)
	viewer.Env = []string{"KEEPER_TEST_ROLE=viewer", "KEEPER_TEST_SOCKET=" + w.home.KeeperSocket(w.order.Agent)}
	out, err := viewer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := viewer.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "watching <nil>\n" {
		t.Fatalf("viewer: %q, %v", line, err)
	}
	if err := viewer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = viewer.Wait()
	c := w.dial(attach.RoleViewer)
	if err := c.Input([]byte("alive\r")); err != nil {
		t.Fatal(err)
	}
	shows(t, c, "<alive>")
}
