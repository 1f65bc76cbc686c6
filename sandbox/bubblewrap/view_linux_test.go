package bubblewrap

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fletch/sandbox"
)

// tree makes files and links below a folder; "a -> b" is a link.
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, to, isLink := strings.Cut(e, " -> ")
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if isLink {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestAMountNeverFollowsALink(t *testing.T) {
	root := tree(t, "real/file", "link -> real", "ws/planted -> ../real", "ws/inner/up -> /etc")
	for name, source := range map[string]string{
		"the last part": root + "/link", "a part on the way": root + "/link/file", "planted in a workspace": root + "/ws/planted",
		"out of it": root + "/ws/inner/up/ssh",
	} {
		t.Run(name, func(t *testing.T) {
			s, ran := canary(t)
			s.Mounts = append(s.Mounts, sandbox.Mount{Source: source})
			mustRefuse(t, engine(t), s, ran, "link")

			s.Mounts[1].Write, s.Mounts[1].Optional = true, true
			mustRefuse(t, engine(t), s, ran, "link")
		})
	}
}

func TestAnOptionalMountThroughALinkIsLeftOut(t *testing.T) {
	root := tree(t, "real/file", "link -> real")
	s := spec(t, "sh", "-c", "! test -e "+root+"/link")
	s.Mounts = append(s.Mounts, sandbox.Mount{Source: root + "/link", Optional: true})
	if err := engine(t).Run(withTime(t), s, nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// A link planted where a mount is to go made bubblewrap 0.8 create files on
// the host (GHSA-pxhw-h44j-8pfx).
func TestNothingIsMountedInsideWhatAnAgentWrites(t *testing.T) {
	root := tree(t, "ws/there/file", "other/file", "victim/file")
	if err := os.Symlink("/oldroot"+root+"/victim", root+"/ws/d"); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{root + "/ws/d/made", root + "/ws/new", root + "/ws/there"} {
		s, ran := canary(t)
		s.Mounts = append(s.Mounts, sandbox.Mount{Source: root + "/ws", Write: true}, sandbox.Mount{Source: root + "/other", Target: target})
		mustRefuse(t, engine(t), s, ran, "may be written")
	}
	// The same where this program may not write, but another may have.
	for _, target := range []string{root + "/ws/d/made", root + "/ws/new"} {
		s, ran := canary(t)
		s.Mounts = append(s.Mounts, sandbox.Mount{Source: root + "/ws"}, sandbox.Mount{Source: root + "/other", Target: target})
		mustRefuse(t, engine(t), s, ran, "inside")
	}
	if _, err := os.Lstat(root + "/victim/made"); err == nil {
		t.Error("something was made on the host")
	}
	s, ran := canary(t)
	s.Mounts = append(s.Mounts, sandbox.Mount{Source: root + "/ws", Write: true})
	s.Files = []sandbox.File{{Target: root + "/ws/d/made", Content: []byte("x")}}
	mustRefuse(t, engine(t), s, ran, "inside")
}

func TestTheSystemsPlacesAreTaken(t *testing.T) {
	root := tree(t, "dir/file")
	for name, m := range map[string]sandbox.Mount{
		"the whole system":       {Source: "/"},
		"over the whole system":  {Source: root, Target: "/"},
		"processes":              {Source: "/proc"},
		"over processes":         {Source: root, Target: "/proc/sys"},
		"devices":                {Source: "/dev", Write: true},
		"the kernel's settings":  {Source: "/sys"},
		"programs to write":      {Source: "/usr", Write: true},
		"over programs":          {Source: root, Target: "/usr/bin"},
		"over names":             {Source: root + "/dir/file", Target: "/etc/passwd"},
		"over fletch's programs": {Source: root, Target: "/run/fletch/bin"},
		"over fletch's place":    {Source: root, Target: "/run"},
		"a device":               {Source: "/dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			s, ran := canary(t)
			s.Mounts = append(s.Mounts, m)
			mustRefuse(t, engine(t), s, ran, "showing")
		})
	}
}

func TestASocketIsNeverShown(t *testing.T) {
	e := engine(t)
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	listenUnix(t, dir+"/agent")
	s, ran := canary(t)
	s.Mounts = append(s.Mounts, sandbox.Mount{Source: dir + "/agent"})
	mustRefuse(t, e, s, ran, "neither a file nor a directory")
}

func TestLaterMountsLieOnTop(t *testing.T) {
	root := tree(t, "a/file", "a/inner/file", "b/file", "c/file")
	s := spec(t, "sh", "-c", `cat "$1"/a/file; cat "$1"/a/inner/file; cat "$1"/b/file; cat "$1"/elsewhere/file`, "sh", root)
	s.Mounts = append(
		s.Mounts,
		sandbox.Mount{Source: root + "/a"},
		sandbox.Mount{Source: root + "/c", Target: root + "/a/inner"}, // inside what is only read
		sandbox.Mount{Source: root + "/a", Target: root + "/b"},
		sandbox.Mount{Source: root + "/b"}, // over the one before
		sandbox.Mount{Source: root + "/a/inner", Target: root + "/elsewhere"},
		sandbox.Mount{Source: root + "/a/inner/file"}, // hidden by c: refused below
	)
	s.Mounts = s.Mounts[:len(s.Mounts)-1]
	var out bytes.Buffer
	if err := engine(t).Run(withTime(t), s, nil, &out, nil); err != nil {
		t.Fatal(err)
	}
	if want := "a/filec/fileb/filea/inner/file"; out.String() != want {
		t.Errorf("it reads %q, want %q", out.String(), want)
	}
}

func TestASingleFileCanBeShownToWrite(t *testing.T) {
	root := tree(t, "one", "two")
	s := spec(t, "sh", "-c", `echo changed >"$1"/one; ! echo changed >"$1"/two 2>/dev/null; ls "$1"`, "sh", root)
	s.Mounts = append(s.Mounts, sandbox.Mount{Source: root + "/one", Write: true}, sandbox.Mount{Source: root + "/two"})
	var out bytes.Buffer
	if err := engine(t).Run(withTime(t), s, nil, &out, nil); err != nil {
		t.Fatal(err)
	}
	one, _ := os.ReadFile(root + "/one")
	two, _ := os.ReadFile(root + "/two")
	if string(one) != "changed\n" || string(two) != "two" || out.String() != "one\ntwo\n" {
		t.Errorf("one is %q, two %q, it sees %q", one, two, out.String())
	}
}

func TestMadeUpFilesAreThereAndReadOnly(t *testing.T) {
	s := spec(t, "sh", "-c", `cat /etc/ssl/certs/ca-certificates.crt /tmp/made /opt/x/made; /opt/x/run
		! rm -f /tmp/made 2>/dev/null && ! mv /tmp/made /tmp/x 2>/dev/null && ! echo x 2>/dev/null >/tmp/made; cat /tmp/made`)
	s.Files = []sandbox.File{
		{Target: "/etc/ssl/certs/ca-certificates.crt", Content: []byte("authority\n")},
		{Target: "/tmp/made", Content: []byte("temporary\n")},
		{Target: "/opt/x/made", Content: []byte("ordinary\n")},
		{Target: "/opt/x/run", Content: []byte("#!/bin/sh\necho runs\n"), Exec: true},
	}
	var out bytes.Buffer
	if err := engine(t).Run(withTime(t), s, nil, &out, nil); err != nil {
		t.Fatal(err)
	}
	if want := "authority\ntemporary\nordinary\nruns\ntemporary\n"; out.String() != want {
		t.Errorf("it reads %q", out.String())
	}
}

func TestNothingIsLeftInTheWorkspaceByTheView(t *testing.T) {
	s := spec(t, "sh", "-c", "ls -A")
	var out bytes.Buffer
	if err := engine(t).Run(withTime(t), s, nil, &out, nil); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil || out.Len() > 0 || len(entries) > 0 {
		t.Errorf("inside there is %q, outside %v, %v", out.String(), entries, err)
	}
}

func TestNothingSecretIsInArgv(t *testing.T) {
	secret := "secret-" + randomWord()
	s := spec(t, "sh", "-c", stays)
	s.Env = append(s.Env, "TOKEN="+secret)
	s.Files = []sandbox.File{{Target: "/tmp/key", Content: []byte(secret)}}
	r := begin(t, engine(t), s)
	for _, pid := range []string{"self", itoa(r.cmd.Process.Pid)} {
		for _, name := range []string{"cmdline", "environ"} {
			raw, err := os.ReadFile("/proc/" + pid + "/" + name)
			if err == nil && bytes.Contains(raw, []byte(secret)) {
				t.Errorf("/proc/%s/%s shows the secret", pid, name)
			}
		}
	}
}
