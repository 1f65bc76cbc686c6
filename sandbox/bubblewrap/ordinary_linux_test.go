package bubblewrap

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// anyUser is a user id that no account has.
const anyUser = 54321

// TestAllOfItAsAnOrdinaryUser runs this package's tests once more, as a user
// who is not root: another way of bounding processes, other rights.
func TestAllOfItAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("these tests run as an ordinary user already")
	}
	if testing.Short() {
		t.Skip("short: the ordinary user is left out")
	}
	dir, err := os.MkdirTemp("/var/tmp", "fletch-ordinary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, anyUser, anyUser); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o755); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "bubblewrap.test")
	copyProgram(t, binary)

	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.v", "-test.short", "-test.timeout=7m")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + dir, "PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: anyUser, Gid: anyUser}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, faultsOf(string(out)))
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "--- SKIP") && !strings.Contains(line, t.Name()) {
			t.Errorf("as an ordinary user: %s", line)
		}
	}
	if n := strings.Count(string(out), "--- PASS"); n < 50 {
		t.Errorf("as an ordinary user only %d tests ran", n)
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// faultsOf leaves out what passed.
func faultsOf(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "--- PASS") && !strings.HasPrefix(line, "=== ") {
			b.WriteString(line)
		}
	}
	return b.String()
}
