//go:build linux

package hub

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestTheLogTurnsOverAndKeepsThreeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.log")
	l := &rotated{path: path, limit: 10}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"one 567\n", "two 567\n", "three 7\n", "four 67\n", "5\n"} {
		if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("%d %v", n, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "four 67\n5\n", ".1": "three 7\n", ".2": "two 567\n"} {
		raw, err := os.ReadFile(path + name)
		if err != nil || string(raw) != want {
			t.Errorf("hub.log%s holds %q, want %q (%v)", name, raw, want, err)
		}
	}
	if all, _ := filepath.Glob(path + "*"); len(all) != logFiles {
		t.Errorf("there are %q", all)
	}
}

func TestALogGoesOnWhereTheLastHubStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.log")
	if err := os.WriteFile(path, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &rotated{path: path, limit: 10}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := l.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path + ".1"); err != nil || string(raw) != "12345678" {
		t.Errorf("what was there is %q (%v)", raw, err)
	}
}

func TestTheLogSaysMoreWhenAsked(t *testing.T) {
	for level, want := range map[string][]string{
		"": {"info", "warn"}, "nonsense": {"info", "warn"}, "debug": {"debug", "info", "warn"}, "WARN": {"warn"},
	} {
		path := filepath.Join(t.TempDir(), "hub.log")
		log, file, err := openLog(path, level)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("debug")
		log.Info("info")
		log.Warn("warn")
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, word := range []string{"debug", "info", "warn"} {
			if strings.Contains(string(raw), `"msg":"`+word+`"`) {
				said = append(said, word)
			}
		}
		if !slices.Equal(said, want) {
			t.Errorf("FLETCH_LOG=%s logs %v, want %v", level, said, want)
		}
	}
}

func TestACrashIsWrittenDownAndKeptAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir, cmd.Env = dir, []string{crashVariable + "=1"}
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		t.Fatalf("it did not crash: %v", err)
	}
	name := filepath.Join(dir, "crash-hub.txt")
	raw, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(raw), "panic: on purpose") {
		t.Fatalf("%q %v", raw, err)
	}
	t.Cleanup(func() { _ = debug.SetCrashOutput(nil, debug.CrashOptions{}) })
	crashOutput(dir)
	if raw, err := os.ReadFile(name); err != nil || len(raw) != 0 {
		t.Errorf("the new file holds %q (%v)", raw, err)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "crash-hub-*T*.txt"))
	if len(kept) != 1 {
		t.Fatalf("kept are %q", kept)
	}
	if raw, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(raw), "panic: on purpose") {
		t.Errorf("%q %v", raw, err)
	}
	// A start after a good end leaves nothing more behind.
	crashOutput(dir)
	if all, _ := filepath.Glob(filepath.Join(dir, "*")); len(all) != 2 {
		t.Errorf("there are %q", all)
	}
}
