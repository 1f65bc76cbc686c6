package attach

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// dialFromElsewhere connects from a process that the test started in other
// namespaces, and prints the answer.
func dialFromElsewhere() bool {
	socket := os.Getenv("ATTACH_TEST_DIAL")
	if socket == "" {
		return false
	}
	if os.Getenv("ATTACH_TEST_UNDUMPABLE") != "" {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	c, err := Dial(context.Background(), socket, Hello{Protocol: Protocol, Role: RoleHub})
	if err != nil {
		fmt.Println(err)
		return true
	}
	fmt.Println("connected")
	_ = c.Close()
	return true
}

func dialElsewhere(t *testing.T, socket string, attr *syscall.SysProcAttr, env ...string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append([]string{"ATTACH_TEST_DIAL=" + socket}, env...)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// The hub is not dumpable: an ordinary user cannot read the links of its
// namespaces.
func TestPeersOfThisUserAreAdmitted(t *testing.T) {
	w := serve(t)
	if got := dialElsewhere(t, w.socket, nil); got != "connected" {
		t.Errorf("a process like this one: %s", got)
	}
	if got := dialElsewhere(t, w.socket, nil, "ATTACH_TEST_UNDUMPABLE=1"); got != "connected" {
		t.Errorf("a process that is not dumpable: %s", got)
	}
}

func TestPeersInOtherNamespacesAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: making namespaces takes root")
	}
	w := serve(t)
	for name, flags := range map[string]uintptr{"network": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID, "user": unix.CLONE_NEWUSER} {
		attr := &syscall.SysProcAttr{Cloneflags: flags}
		if name == "user" {
			attr.UidMappings = []syscall.SysProcIDMap{{Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{Size: 1}}
		}
		if got := dialElsewhere(t, w.socket, attr); !strings.Contains(got, "another "+name+" namespace") {
			t.Errorf("from another %s namespace: %s", name, got)
		}
	}
}

// As an ordinary user the links in /proc of the hub cannot be read, since it
// is not dumpable: what stands in for them must tell the same.
func TestNamespacesAreToldApartWithoutTheirLinks(t *testing.T) {
	for _, ns := range []string{"user", "pid"} {
		if err := similar(os.Getpid(), ns); err != nil {
			t.Errorf("this process: %v", err)
		}
	}
	if err := similar(os.Getpid(), "net"); err == nil {
		t.Error("a network namespace was told by nothing")
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: making namespaces takes root")
	}
	for ns, attr := range map[string]*syscall.SysProcAttr{
		"pid":  {Cloneflags: unix.CLONE_NEWPID},
		"user": {Cloneflags: unix.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{Size: 1}}, GidMappings: []syscall.SysProcIDMap{{Size: 1}}},
	} {
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = attr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := similar(cmd.Process.Pid, ns); err == nil || !strings.Contains(err.Error(), ns+" namespace") {
			t.Errorf("another %s namespace: %v", ns, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func TestPeersOfAnotherUserAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: becoming another user takes root")
	}
	w := serve(t)
	if err := os.Chmod(w.socket, 0o777); err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSuffix(w.socket, "/k.sock")
	for at := dir; at != "/tmp" && at != "/"; at = at[:strings.LastIndexByte(at, '/')] {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := dialElsewhere(t, w.socket, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}})
	if !strings.Contains(got, "uid 12345") {
		t.Errorf("another user: %s", got)
	}
}
