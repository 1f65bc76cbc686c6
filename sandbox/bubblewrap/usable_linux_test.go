package bubblewrap

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fletch/sandbox"
)

// TestOrdinaryWorkWorks runs what agents run. A sandbox that breaks one of
// these is switched off by the people it protects.
func TestOrdinaryWorkWorks(t *testing.T) {
	e := engine(t)
	race := " -race"
	if testing.Short() {
		race = "" // it compiles half of the library
	}
	for _, c := range []struct {
		name   string
		needs  string // a program of the host
		script string
		want   string // in the output
	}{
		{"git", "git", `git init -q . && git config user.email a@b && git config user.name a && echo x >f && git add . && git commit -qm one &&
			git checkout -qb two && git mv f g && git commit -qam two && git worktree add -q ../work-tree-of-$$ 2>/dev/null; git status --porcelain && git log --oneline | wc -l`, "2"},
		{"git clone", "git", `git init -q a && cd a && git -c user.email=a@b -c user.name=a commit -q --allow-empty -m one && cd .. && git clone -q a b && git -C b log --oneline`, "one"},
		{"go test" + race, "go", `cat >go.mod <<X
module x
go 1.22
X
cat >x_test.go <<X
package x
import ("testing";"os/exec";"sync")
func TestX(t *testing.T) {
	var all sync.WaitGroup
	for range 100 { all.Add(1); go all.Done() }
	all.Wait()
	if err := exec.Command("true").Run(); err != nil { t.Fatal(err) }
}
X
GOFLAGS=-mod=mod GOTOOLCHAIN=local go test` + race + ` ./...`, "ok"},
		{"C compiler", "gcc", `echo 'int main(){return 0;}' >x.c && gcc x.c -o x && ./x && echo compiled`, "compiled"},
		{"node with a watcher, a worker and a local socket", "node", `cat >x.js <<'X'
const fs = require('fs'), net = require('net'), { Worker } = require('worker_threads'), os = require('os');
const done = new Set(), want = 3;
function ok(n) { done.add(n); if (done.size === want) { console.log('all of it', os.userInfo().uid === process.getuid()); process.exit(0); } }
const w = fs.watch('.', () => ok('watch'));
const again = setInterval(() => fs.writeFileSync('seen', String(Math.random())), 50);
new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true }).on('message', () => ok('worker'));
const s = net.createServer(c => { c.end(); ok('socket'); }).listen('/tmp/x.sock', () => net.connect('/tmp/x.sock'));
X
node x.js`, "all of it true"},
		{"python with processes, locks and a name", "/usr/bin/python3", `cat >x.py <<'X'
import multiprocessing as m, getpass, pwd, os, tempfile, threading, socket, ssl, time
def f(n): return n * n
if __name__ == "__main__":
    with m.Pool(3) as p: assert p.map(f, [1, 2, 3]) == [1, 4, 9]
    assert pwd.getpwuid(os.getuid()).pw_dir == os.environ["HOME"]
    assert socket.gethostbyname("localhost") == "127.0.0.1"
    assert len(ssl.create_default_context().get_ca_certs()) > 10
    with tempfile.NamedTemporaryFile() as t: t.write(b"x")
    print("python", getpass.getuser() != "")
X
/usr/bin/python3 x.py`, "python True"},
		{"a terminal inside", "script", `script -qec 'tty && stty size' /dev/null`, "/dev/pts/0"},
		{"a terminal for node", "/usr/bin/python3", `/usr/bin/python3 -c 'import pty; pty.spawn(["echo", "spawned"])'`, "spawned"},
		{"processes are listed", "ps", `ps -ef | grep -c 'ps -ef'`, ""},
		{"a login shell", "bash", `bash -lc 'greet; echo "$PATH"'`, "hello from bin\n/run/fletch/bin:"},
		{"a login shell of sh", "sh", `sh -lc 'greet'`, "hello from bin"},
		{"its streams by name", "sh", `echo one >/dev/stdout; echo two >/dev/stderr; echo three | cat /dev/stdin; cat <(echo four) 2>/dev/null || bash -c 'cat <(echo four)'; echo >/dev/null`, "one\ntwo\nthree\nfour"},
		{"names and places", "getent", `getent passwd $(id -u) >/dev/null && getent group $(id -g) >/dev/null && getent hosts localhost >/dev/null && getent services https && date +%Z && locale >/dev/null && whoami`, "443"},
		{"perl", "perl", `perl -MSocket -MIO::Select -MFile::Temp -e 'print "perl\n"'`, "perl"},
		{"npm", "npm", `npm init -y >/dev/null && npm --offline run 2>&1 | head -1; npm --version`, "."},
		{"renaming between folders", "mv", `mkdir a b && echo x >a/f && mv a/f b/f && ln b/f a/g && mv a c && cat c/g && mv /tmp/. /tmp/x 2>/dev/null; echo y >/tmp/y && mv /tmp/y ./y && cat y`, "x\ny"},
		{"shared memory", "/usr/bin/python3", `/usr/bin/python3 -c 'from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=1024); m.unlink(); print("shared")'`, "shared"},
		{"a server of its own", "/usr/bin/python3", `/usr/bin/python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & for i in $(seq 200); do (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null && break; sleep 0.05; done; exec 3<>/dev/tcp/127.0.0.1/8000 && echo served; kill %1`, "served"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("%s is not installed", c.needs)
			}
			s := spec(t, "bash", "-c", "exec 2>&1; "+c.script)
			s.Env[0] = "PATH=/run/fletch/bin:/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"
			s.Bin = filepath.Join(t.TempDir(), "bin")
			if err := os.Mkdir(s.Bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(s.Bin, "greet"), []byte("#!/bin/sh\necho hello from bin\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			// The race detector compiles the library first, on a loaded machine.
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
			defer cancel()
			err := e.Run(ctx, s, nil, &out, nil)
			if err != nil || !strings.Contains(out.String(), c.want) {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

func TestStreamsByNameWorkInATerminal(t *testing.T) {
	out, exit := terminalOf(t, engine(t), spec(t, "bash", "-c", "echo one >/dev/stdout && echo two >/dev/stderr && echo three >/dev/tty && test -t 2 && echo four"))
	if exit.Code != 0 || out != "one\r\ntwo\r\nthree\r\nfour\r\n" {
		t.Errorf("%+v: %q", exit, out)
	}
}

func TestJobControlWorks(t *testing.T) {
	s := spec(t, "bash", "-i")
	s.Terminal = &sandbox.Size{Cols: 80, Rows: 24}
	b, err := engine(t).Start(withTime(t), s)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Remove()
	// Ctrl-Z, back to the front, Ctrl-C: the shell lives through all of it.
	const job = `perl -e '$|=1; $SIG{CONT}=sub{print "ba","ck\n"}; $SIG{INT}=sub{print "ask","ed\n"; exit 3}; print "fr","ont\n"; sleep 1 while 1'`
	if _, err := b.Attach().WriteString(job + "\n"); err != nil {
		t.Fatal(err)
	}
	typed := []struct{ wait, then string }{
		{"front", "\x1a"}, {"Stopped", "fg\n"}, {"back", "\x03"}, {"asked", "echo still-$((40+2))\n"}, {"still-42", "exit 6\n"},
	}
	var all strings.Builder
	buffer := make([]byte, 4096)
	from := 0
	for _, step := range typed {
		for !strings.Contains(all.String()[from:], step.wait) {
			n, err := b.Attach().Read(buffer)
			if err != nil {
				t.Fatalf("waiting for %q: %v after %q", step.wait, err, all.String())
			}
			all.Write(buffer[:n])
		}
		from += strings.Index(all.String()[from:], step.wait) + len(step.wait)
		if _, err := b.Attach().WriteString(step.then); err != nil {
			t.Fatal(err)
		}
	}
	if exit := b.Wait(); exit.Code != 6 {
		t.Errorf("the shell ended with %+v", exit)
	}
	if strings.Contains(all.String(), "no job control") {
		t.Errorf("it says %q", all.String())
	}
}

func TestTheUsersToolchainsWork(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	s := spec(t, "sh", "-c", "for p in python3 cargo node; do command -v $p && $p --version; done 2>&1; command -v go && go version; ls -A "+home+"; cat "+home+"/.gitconfig")
	s.Env = []string{"PATH=" + path, "HOME=" + s.Dir, "PYENV_ROOT=" + home + "/.pyenv", "RUSTUP_HOME=" + home + "/.rustup"}
	s.Mounts = append(sandbox.Toolchains(home, path), s.Mounts...)
	var out bytes.Buffer
	err = engine(t).Run(withTime(t), s, nil, &out, nil)
	if err == nil {
		t.Errorf("the user's settings can be read: %s", out.String())
	}
	for _, name := range []string{"python3", "cargo", "go", "node"} {
		at, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if !strings.Contains(out.String(), at+"\n") {
			t.Errorf("%s is not found inside:\n%s", at, out.String())
		}
	}
	for _, hidden := range []string{".bashrc", ".ssh", ".claude", ".npmrc", ".cache", ".config"} {
		if strings.Contains(out.String(), hidden+"\n") {
			t.Errorf("%s of the home is seen", hidden)
		}
	}
	if strings.Contains(out.String(), "Read-only file system") {
		t.Errorf("a tool wants to write:\n%s", out.String())
	}
}
