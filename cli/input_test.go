//go:build linux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fletch/state"
)

func TestWhatCannotStartIsRefusedWithCauseAndWayOut(t *testing.T) {
	w := newWorld(t)
	plainDir := filepath.Join(w.dir, "plain")
	empty := filepath.Join(w.dir, "empty")
	blobless := filepath.Join(w.dir, "blobless")
	if err := os.Mkdir(plainDir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.git("init", "-q", empty)
	w.git("config", "uploadpack.allowFilter", "true")
	w.git("clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+w.repo, blobless)
	for _, c := range []struct {
		name string
		args []string
		code string
	}{
		{"not a repository", []string{"--repo", plainDir}, "not-a-repository"},
		{"a directory that is not there", []string{"--repo", filepath.Join(w.dir, "nowhere")}, "not-a-repository"},
		{"no commits yet", []string{"--repo", empty}, "no-commits"},
		{"a blobless clone", []string{"--repo", blobless}, "partial-clone"},
		{"no such base", []string{"--base", "nope"}, "no-such-base"},
		{"a base that looks like an option", []string{"--base=--upload-pack=x"}, "no-such-base"},
		{"no such provider", []string{"--provider", "nobody"}, "no-such-provider"},
		{"no such engine", []string{"--engine", "warp"}, "no-such-engine"},
		{"an odd name", []string{"--name", "../../x"}, "bad-name"},
		{"too many copies", []string{"--copies", "10"}, "bad-copies"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := *w
			at.t = t
			code, message, hint := at.refused(append(append([]string{"new"}, c.args...), "--", "true")...)
			if code != c.code || message == "" || hint == "" {
				t.Errorf("code %q (want %q), message %q, hint %q", code, c.code, message, hint)
			}
		})
	}
	if agents := decode[[]state.Agent](t, w.run("ls", "--json")); len(agents) != 0 {
		t.Errorf("%d dead rows", len(agents))
	}
}

func TestAProviderThatIsNotInstalledSaysHowToInstallIt(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "PATH=/usr/bin:/bin")
	code, message, hint := w.refused("new", "--provider", "claude", "--prompt", "x")
	if code == "" || !strings.Contains(message, "claude is not on PATH") || !strings.Contains(hint, "npm install") {
		t.Errorf("%q %q %q", code, message, hint)
	}
}

func TestATakenNameIsRefused(t *testing.T) {
	w := newWorld(t)
	w.launch("true", "--name", "one")
	if code, _, _ := w.refused("new", "--name", "one", "--", "true"); code != "name-taken" {
		t.Errorf("code %q", code)
	}
}

func TestRepositoriesOfEveryKindWork(t *testing.T) {
	w := newWorld(t)
	w.write("dir/file", "x\n")
	w.commit("second")
	at := func(name string) string { return filepath.Join(w.dir, name) }
	w.git("clone", "-q", "--depth", "1", "file://"+w.repo, at("shallow"))
	w.git("clone", "-q", "--bare", w.repo, at("bare.git"))
	w.git("worktree", "add", "-q", at("linked"), "-b", "side")
	w.git("clone", "-q", w.repo, at("with space"))
	w.git("clone", "-q", w.repo, at("new\nline"))
	w.git("clone", "-q", w.repo, at("not\xffutf8"))
	w.git("init", "-q", "--object-format=sha256", "-b", "main", at("sha256"))
	w.git("-C", at("sha256"), "commit", "-q", "--allow-empty", "-m", "one")
	for _, repo := range []string{"shallow", "bare.git", "linked", "with space", "new\nline", "not\xffutf8", "sha256"} {
		t.Run(strings.ToValidUTF8(repo, "?"), func(t *testing.T) {
			at := *w
			at.t = t
			out, errOut, code := at.try(at.ctx(), "new", "--repo", filepath.Join(w.dir, repo), "--json", "--", "sh", "-c", "git --no-pager log --oneline && git status --short && echo fine")
			if code != 0 {
				// Refused with a reason is an answer too; a silent or a half-made agent is not.
				if !strings.Contains(errOut, `"hint"`) {
					t.Fatalf("exit %d: %s%s", code, out, errOut)
				}
				t.Logf("refused: %s", errOut)
				return
			}
			a := decode[state.Agent](t, out)
			at.until(a.Name, "exited", "failed")
			if logs := at.run("logs", "--text", a.Name); !strings.Contains(logs, "fine") {
				t.Errorf("it shows %q", logs)
			}
		})
	}
}

func TestAHomeThatCannotBeUsedIsRefusedWithCause(t *testing.T) {
	w := newWorld(t)
	for name, home := range map[string]string{
		"too long for a socket": filepath.Join(w.dir, strings.Repeat("x", 120)),
		"open to others":        filepath.Join(w.dir, "open"),
		"a file":                filepath.Join(w.repo, "README.md"),
	} {
		if strings.HasSuffix(home, "/open") {
			if err := os.Mkdir(home, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		out, errOut, code := w.tryEnv(w.ctx(), []string{"FLETCH_HOME=" + home}, "ls")
		if code != 1 || !strings.Contains(errOut, "error: ") {
			t.Errorf("%s: exit %d: %s%s", name, code, out, errOut)
		}
	}
}

func TestAFullDiskIsToldAndNothingIsHalfRecorded(t *testing.T) {
	w := newWorld(t)
	if os.Getuid() != 0 {
		t.Skip("SKIP a full disk: mounting a small tmpfs needs root")
	}
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", w.home, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.home, unix.MNT_DETACH) })
	w.run("ls")
	filler, err := os.Create(filepath.Join(w.home, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = filler.Write(block)
	}
	_ = filler.Close()
	if _, errOut, code := w.try(w.ctx(), "new", "--json", "--", "true"); code == 0 {
		t.Errorf("an agent started on a full disk: %s", errOut)
	}
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	w.run("log", "--verify")
	for _, a := range decode[[]state.Agent](t, w.run("ls", "--json")) {
		if a.Status.Live() {
			t.Errorf("%s is %s", a.Name, a.Status)
		}
	}
	w.run("hub", "stop")
}

func TestASettingThatIsWrongNamesFileLineAndField(t *testing.T) {
	w := newWorld(t)
	w.run("ls")
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("[network]\nallow = []\nmood = \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, message, _ := w.refused("new", "--", "true")
	for _, part := range []string{"config.toml", "3", "mood"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not name %s", message, part)
		}
	}
}

func TestUsageMistakesEndWithTwoAndAHint(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{
		{"nonsense"},
		{"show"},
		{"new", "--nope"},
		{"allow", "1"},
		{"allow", "1", "--commit", "abc"},
		{"wait", "x", "--until", "happy"},
		{"stop"},
		{"diff"},
	} {
		out, errOut, code := w.try(w.ctx(), args...)
		if code != 2 || !strings.Contains(errOut, "error: ") || !strings.Contains(errOut, "hint: ") {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errOut)
		}
	}
}

func TestWaitingEndsWithThreeWhenTimeIsUp(t *testing.T) {
	w := newWorld(t)
	w.launch("while :; do sleep 1; done", "--name", "busy")
	if _, _, code := w.try(w.ctx(), "wait", "busy", "--until", "exited", "--timeout", "1s"); code != 3 {
		t.Errorf("exit %d", code)
	}
	w.run("stop", "busy")
	if code, _, _ := w.refused("wait", "busy", "--until", "working"); code != "never" {
		t.Errorf("code %q", code)
	}
}
