package hub

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// askAs has another process look and act.
func askAs(t *testing.T, socket string, cmd *exec.Cmd) answers {
	t.Helper()
	cmd.Env = []string{dialVariable + "=" + socket}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("asking as another process: %v", err)
	}
	var got answers
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("reading %q: %v", out, err)
	}
	return got
}

// itself is this test binary.
func itself(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func TestAProcessOfThePersonsMayLookAndAct(t *testing.T) {
	got := askAs(t, serving(t, newHub(t)), exec.Command(itself(t)))
	if got.Look.Status != http.StatusOK || got.Act.Status != http.StatusOK {
		t.Errorf("%+v", got)
	}
}

func TestWhatAnAgentStartedMayLookButNotAct(t *testing.T) {
	cmd := exec.Command(itself(t), "keeper")
	got := askAs(t, serving(t, newHub(t)), cmd)
	if got.Look.Status != http.StatusOK {
		t.Errorf("looking: %+v", got.Look)
	}
	if got.Act.Status != http.StatusForbidden || got.Act.Code != "peer-refused" || !strings.Contains(got.Act.Message, "started by an agent") {
		t.Errorf("acting: %+v", got.Act)
	}
}

func TestAPeerInOtherNamespacesIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIP peers in other namespaces: needs root")
	}
	socket := serving(t, newHub(t))
	for name, flag := range map[string]uintptr{"user": unix.CLONE_NEWUSER, "pid": unix.CLONE_NEWPID, "net": unix.CLONE_NEWNET} {
		cmd := exec.Command(itself(t))
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
		got := askAs(t, socket, cmd)
		for what, a := range map[string]answer{"looking": got.Look, "acting": got.Act} {
			if a.Status != http.StatusForbidden || a.Code != "peer-refused" || !strings.Contains(a.Message, "another "+name+" namespace") {
				t.Errorf("%s from another %s namespace: %+v", what, name, a)
			}
		}
	}
}

func TestAnotherUserIsRefusedEvenWhenTheSocketLetsThemIn(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIP a peer of another user: needs root")
	}
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for path, mode := range map[string]os.FileMode{dir: 0o755, dir + "/s": 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	// The test binary's own directory is closed to others.
	raw, err := os.ReadFile(itself(t))
	if err == nil {
		err = os.WriteFile(dir+"/test", raw, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir + "/test")
	cmd.Env = []string{dialVariable + "=" + dir + "/s"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if p := identify(conn); p.fault == nil || !strings.Contains(p.fault.Error(), "uid 65534 is not the hub's") {
		t.Errorf("%+v", p)
	}
}

func TestAConnectionThatIsNoSocketOfTheSystemIsRefused(t *testing.T) {
	one, two := net.Pipe()
	defer func() { _, _ = one.Close(), two.Close() }()
	if p := identify(one); p.fault == nil {
		t.Errorf("%+v", p)
	}
}

func TestAProgramsNameCannotForgeItsAncestry(t *testing.T) {
	got, err := parseStat([]byte("42 (a) S 1 7 7 0 (b) R 99 1 88 34817 88 0 0\n"))
	if err != nil || got != (procStat{parent: 99, session: 88, ttyNumber: 34817}) {
		t.Errorf("%+v %v", got, err)
	}
	if got.tty() != "pts/1" {
		t.Errorf("tty %q", got.tty())
	}
	for _, odd := range []string{"", ")", "42 (sh", "42 (sh) S", "42 (sh) S x y z a b"} {
		if got, err := parseStat([]byte(odd)); err == nil {
			t.Errorf("%q is %+v", odd, got)
		}
	}
}

func TestTheTerminalIsNamedAsPeopleKnowIt(t *testing.T) {
	for number, want := range map[int]string{0: "", 136<<8 | 3: "pts/3", 4<<8 | 1: "4:1"} {
		if got := (procStat{ttyNumber: number}).tty(); got != want {
			t.Errorf("%d is %q, want %q", number, got, want)
		}
	}
}

func FuzzStatFilesAreReadOrRefused(f *testing.F) {
	f.Add([]byte("1 (x) S 0 1 1 0 -1"))
	f.Add([]byte(") ) )"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if s, err := parseStat(raw); err == nil {
			_ = s.tty()
		}
	})
}
