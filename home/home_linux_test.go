package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// short makes a directory whose path leaves room for sockets, whatever TMPDIR
// is.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func long(t *testing.T) string {
	t.Helper()
	return filepath.Join(short(t), strings.Repeat("long", 25))
}

func mustOpen(t *testing.T, dir, runtimeDir string) Home {
	t.Helper()
	h, err := Open(dir, runtimeDir)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustRefuse(t *testing.T, dir, runtimeDir, why string) {
	t.Helper()
	h, err := Open(dir, runtimeDir)
	if err == nil {
		t.Fatalf("opened %s", h.Dir())
	}
	if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), why) {
		t.Fatalf("got %q, want it to name %s and say %q", err, dir, why)
	}
}

func TestNewHomeAdmitsNobodyElse(t *testing.T) {
	dir := filepath.Join(short(t), "deep", "home")
	mustOpen(t, dir, "")
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, "") // and again
}

func TestHomeThatLetsOthersInIsRefused(t *testing.T) {
	for _, mode := range []os.FileMode{0o750, 0o705, 0o710, 0o701, 0o720, 0o777} {
		dir := short(t)
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, dir, "", "lets others in (chmod 700)")
	}
}

func TestHomeOfAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: giving a directory away needs root")
	}
	dir := short(t)
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, "", "belongs to uid 12345")
}

func TestHomeThatCannotBeMadeIsRefused(t *testing.T) {
	dir := short(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, file, "", "not a directory")
	mustRefuse(t, filepath.Join(file, "home"), "", "not a directory")
	mustRefuse(t, "relative/home", "", "not an absolute path")
	mustRefuse(t, "", "", "not an absolute path")
}

// TestUnwritableHomeIsRefused needs what stops root too: a read-only file
// system.
func TestUnwritableHomeIsRefused(t *testing.T) {
	dir := short(t)
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, dir, "", "permission denied")
		return
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "mode=700"); err != nil {
		t.Skip("SKIPPED: cannot mount a read-only tmpfs here: " + err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	mustRefuse(t, dir, "", "read-only file system")
}

func TestLinkToAHomeIsResolved(t *testing.T) {
	base := short(t)
	real, link := filepath.Join(base, "real"), filepath.Join(base, "link")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if got := mustOpen(t, link, "").Dir(); got != real {
		t.Fatalf("opened %s, want %s", got, real)
	}
	// Who could lead the link elsewhere gains nothing: what counts is the
	// directory itself.
	if err := os.Chmod(real, 0o770); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, link, "", "lets others in")
}

func TestSocketsAreInTheHomeWhileTheirPathsFit(t *testing.T) {
	dir := filepath.Join(short(t), "home")
	h := mustOpen(t, dir, short(t))
	if h.HubSocket() != filepath.Join(dir, "hub.sock") || h.KeeperSocket("abcd2345") != filepath.Join(dir, "run", "abcd2345", "keeper.sock") {
		t.Fatalf("%s, %s", h.HubSocket(), h.KeeperSocket("abcd2345"))
	}
}

func TestSocketsOfALongHomeMoveToTheRuntimeDirectory(t *testing.T) {
	runtime, dir := short(t), long(t)
	h := mustOpen(t, dir, runtime)
	for _, path := range []string{h.HubSocket(), h.KeeperSocket(longestAgent)} {
		if !strings.HasPrefix(path, runtime+"/fletch-") || len(path) > maxSocketPath {
			t.Errorf("%s (%d bytes)", path, len(path))
		}
	}
	info, err := os.Stat(filepath.Dir(h.HubSocket()))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	if again := mustOpen(t, dir, runtime); again.HubSocket() != h.HubSocket() {
		t.Errorf("one home has two places: %s, %s", again.HubSocket(), h.HubSocket())
	}
	if other := mustOpen(t, long(t), runtime); other.HubSocket() == h.HubSocket() {
		t.Errorf("two homes share %s", h.HubSocket())
	}
	if h.State() != filepath.Join(dir, "state.db") {
		t.Errorf("the store moved too: %s", h.State())
	}
}

func TestLongHomeWithoutARuntimeDirectoryIsRefused(t *testing.T) {
	mustRefuse(t, long(t), "", "XDG_RUNTIME_DIR is not set")
	mustRefuse(t, long(t), long(t), "XDG_RUNTIME_DIR is too long")
}

func TestSocketDirectoryThatAnotherPreparedIsRefused(t *testing.T) {
	runtime, dir := short(t), long(t)
	sockets := filepath.Dir(mustOpen(t, dir, runtime).HubSocket())
	if err := os.Chmod(sockets, 0o777); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, runtime, "lets others in")
	if err := os.Remove(sockets); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(short(t), sockets); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, runtime, "not a directory")
}

func TestEveryPathIsUnderTheHome(t *testing.T) {
	dir := filepath.Join(short(t), "home")
	h := mustOpen(t, dir, "")
	paths := []string{
		h.State(), h.Head(), h.Config(), h.Profiles(), h.Providers(), h.HubLock(), h.StartLock(), h.HubLog(), h.HubSocket(),
		h.Run("a"), h.RunRoot(), h.KeeperSocket("a"), h.Workspace("a"), h.Workspaces(), h.Mailbox("a"), h.Requests("a"),
		h.Responses("a"), h.AgentHome("a"), h.Pools(), h.Quarantine("a"), h.Audit("a"), h.Trash(),
	}
	seen := map[string]bool{}
	for _, path := range paths {
		if !strings.HasPrefix(path, dir+"/") {
			t.Errorf("%s is outside %s", path, dir)
		}
		if seen[path] {
			t.Errorf("%s has two meanings", path)
		}
		seen[path] = true
	}
}
