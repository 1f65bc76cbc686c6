package bubblewrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fletch/sandbox"

	"golang.org/x/sys/unix"
)

// withTime bounds a test's step; long, since a loaded machine is no fault.
func withTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// spec is a program in a workspace of its own.
func spec(t *testing.T, argv ...string) sandbox.Spec {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Spec{
		Agent: "agent", Store: "test-" + strings.ToLower(randomWord()), Argv: argv, Dir: dir,
		Env:    []string{"PATH=/run/fletch/bin:/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TERM=xterm-256color", "LANG=C.UTF-8"},
		Mounts: []sandbox.Mount{{Source: dir, Write: true}},
	}
}

// attackSpec runs an attack of this test binary, which is inside anyway.
func attackSpec(t *testing.T, name string, args ...string) sandbox.Spec {
	return spec(t, append([]string{insideBox, "attack", name}, args...)...)
}

// holds runs an attack without a terminal and wants the sandbox to hold.
func holds(t *testing.T, e *Engine, s sandbox.Spec) {
	t.Helper()
	var out bytes.Buffer
	if err := e.Run(withTime(t), s, nil, &out, nil); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestTheSandboxHolds(t *testing.T) {
	e := engine(t)
	secret := "secret-" + randomWord()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "private"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	for _, c := range []struct {
		attack string
		args   []string
	}{
		{"gone", []string{
			home, filepath.Join(home, ".ssh"), filepath.Join(home, ".gitconfig"), outside, filepath.Join(outside, "private"),
			"/var/run/docker.sock", "/run/docker.sock", "/run/systemd", "/run/dbus", "/etc/shadow", "/etc/gshadow", "/etc/sudoers",
			"/etc/ssl/private", "/etc/ssh", "/etc/gitconfig", "/etc/machine-id", "/boot", "/sys", "/var/lib", "/var/log", "/var/spool",
			"/mnt", "/media", "/srv", "/home", "/root", "/work", "/.dockerenv", "/oldroot", "/newroot", "/dev/kmsg", "/dev/mem", "/dev/fuse", "/dev/kvm",
		}},
		{"readonly", nil},
		{"proc-writes", nil},
		{"proc-reads", nil},
		{"devices", nil},
		{"status", nil},
		{"init", nil},
		{"secrets", []string{secret}},
		{"descriptors", nil},
		{"calls", nil},
		{"clones", nil},
		{"sockets", nil},
		{"network", nil},
		{"signal-host", []string{fmt.Sprint(os.Getpid())}},
		{"links", []string{filepath.Join(outside, "private"), "/etc/shadow", filepath.Join(home, ".ssh"), "/proc/1/root/etc/shadow"}},
		{"move-mounts", nil},
		{"landlock", nil},
		{"suid", nil},
		{"nested", nil},
		{"second-abi", nil},
		{"hostname", nil},
		{"overwrite-me", nil},
	} {
		t.Run(c.attack, func(t *testing.T) {
			s := attackSpec(t, c.attack, c.args...)
			s.Env = append(s.Env, "TOKEN="+secret)
			holds(t, e, s)
		})
	}
}

func TestMountsAreBoundedAndWithoutPrivileges(t *testing.T) {
	s := attackSpec(t, "mounts")
	s.Argv = append(s.Argv, s.Dir)
	holds(t, engine(t), s)
}

func TestReadOnlyMountsCannotBeWritten(t *testing.T) {
	shown, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(shown, "file")
	if err := os.WriteFile(file, []byte("as it was"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := attackSpec(t, "readonly", shown)
	s.Mounts = append(s.Mounts, sandbox.Mount{Source: shown})
	holds(t, engine(t), s)
	if got, err := os.ReadFile(file); err != nil || string(got) != "as it was" {
		t.Errorf("the file is %q, %v", got, err)
	}
}

func TestALeakedDescriptorIsClosed(t *testing.T) {
	private := filepath.Join(t.TempDir(), "private")
	if err := os.WriteFile(private, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(private)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// As a library that forgets O_CLOEXEC would: every child inherits it.
	if err := unix.Dup3(int(f.Fd()), 200, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(200)
	holds(t, engine(t), attackSpec(t, "descriptors"))
}

func TestASocketOfTheHostIsOutOfReach(t *testing.T) {
	name := "fletch-test-" + randomWord()
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	holds(t, engine(t), attackSpec(t, "abstract", name))
}

func TestLimitsAreSet(t *testing.T) {
	s := attackSpec(t, "limits")
	s.Limits = sandbox.Limits{Files: 123, FileBytes: 1 << 20, CPUSecs: 100}
	holds(t, engine(t), s)
}

// terminalOf runs s in a terminal and returns all it wrote.
func terminalOf(t *testing.T, e *Engine, s sandbox.Spec) (string, sandbox.Exit) {
	t.Helper()
	s.Terminal = &sandbox.Size{Cols: 200, Rows: 50}
	box, err := e.Start(withTime(t), s)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Remove()
	out, err := io.ReadAll(box.Attach())
	if err != nil && !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
	return string(out), box.Wait()
}

func TestNothingCanBeTypedIntoTheTerminal(t *testing.T) {
	out, exit := terminalOf(t, engine(t), attackSpec(t, "tiocsti,devices"))
	if exit.Code != 0 {
		t.Errorf("%+v\n%s", exit, out)
	}
}

func TestTheListenerIsTheOnlyWayOut(t *testing.T) {
	s := attackSpec(t, "network,take-port")
	s.Network = sandbox.NetworkProxy
	out, exit := terminalOf(t, engine(t), s)
	if exit.Code != 0 {
		t.Errorf("%+v\n%s", exit, out)
	}
}

func TestTheProxyIsReachedOverTheListener(t *testing.T) {
	e := engine(t)
	s := spec(t, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3128; echo from inside >&3; read answer <&3; echo got:$answer")
	s.Network = sandbox.NetworkProxy
	s.Terminal = &sandbox.Size{Cols: 80, Rows: 24}
	box, err := e.Start(withTime(t), s)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Remove()
	conn, err := box.Listener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buffer := make([]byte, 64)
	n, err := conn.Read(buffer)
	if err != nil || string(buffer[:n]) != "from inside\n" {
		t.Fatalf("the proxy read %q, %v", buffer[:n], err)
	}
	if _, err := conn.Write([]byte("from outside\n")); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(box.Attach())
	if !strings.Contains(string(out), "got:from outside") {
		t.Errorf("the program says %q", out)
	}
}

func TestAForkBombStopsAtTheLimit(t *testing.T) {
	s := spec(t, "bash", "-c", "n=0; while [ $n -lt 500 ]; do sleep 1000 & n=$((n+1)); done 2>/dev/null; echo never")
	s.Limits.PIDs = 40
	out := &bytes.Buffer{}
	err := engine(t).Run(withTime(t), s, nil, out, nil)
	if strings.Contains(out.String(), "never") || err == nil {
		t.Errorf("500 processes were started: %v", err)
	}
}

func TestTemporaryFilesAreBounded(t *testing.T) {
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		s := spec(t, "sh", "-c", "dd if=/dev/zero of="+dir+"/big bs=65536 count=64 2>&1; test $(stat -c %s "+dir+"/big) -le 1048576")
		s.Limits.TmpBytes = 1 << 20
		var out bytes.Buffer
		if err := engine(t).Run(withTime(t), s, nil, &out, nil); err != nil {
			t.Errorf("%s holds more than a megabyte: %v", dir, err)
		}
		if !strings.Contains(out.String(), "No space left") {
			t.Errorf("writing into %s says %q", dir, out.String())
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := spec(t, "perl", "-e", `my $x = "x" x (600*1024*1024); print "had it\n"`)
	s.Limits.Memory = 128 << 20
	var out bytes.Buffer
	if err := engine(t).Run(withTime(t), s, nil, &out, nil); err == nil || out.Len() > 0 {
		t.Errorf("it had 600 MB of 128: %v, %q", err, out.String())
	}
}

func TestAFileCannotGrowOverItsBound(t *testing.T) {
	s := spec(t, "sh", "-c", "dd if=/dev/zero of=big bs=65536 count=64; test $(stat -c %s big) -eq 1048576")
	s.Limits.FileBytes = 1 << 20
	if err := engine(t).Run(withTime(t), s, nil, nil, nil); err != nil {
		t.Error(err)
	}
}
