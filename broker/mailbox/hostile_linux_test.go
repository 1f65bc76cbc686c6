package mailbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// plants are things an agent may leave under requests with a legible id. None
// may stop what comes after it, and each is answered.
var plants = map[string]func(t *testing.T, path string){
	"fifo": func(t *testing.T, path string) { ok(t, unix.Mkfifo(path, 0o600)) },
	"link out": func(t *testing.T, path string) {
		secret := filepath.Join(t.TempDir(), "secret")
		ok(t, os.WriteFile(secret, []byte(letter("link-out", "push")), 0o600))
		ok(t, os.Symlink(secret, path))
	},
	"link inside": func(t *testing.T, path string) {
		ok(t, os.WriteFile(path+".body", []byte(letter("link-inside", "push")), 0o600))
		ok(t, os.Symlink(filepath.Base(path)+".body", path))
	},
	"link to proc": func(t *testing.T, path string) { ok(t, os.Symlink("/proc/self/fd/0", path)) },
	"link loop":    func(t *testing.T, path string) { ok(t, os.Symlink(filepath.Base(path), path)) },
	"hard link": func(t *testing.T, path string) {
		other := filepath.Join(filepath.Dir(path), "other-name")
		ok(t, os.WriteFile(other, []byte(letter("hard-link", "push")), 0o600))
		ok(t, os.Link(other, path))
	},
	"directory": func(t *testing.T, path string) { ok(t, os.Mkdir(path, 0o700)) },
	"full directory": func(t *testing.T, path string) {
		ok(t, os.MkdirAll(filepath.Join(path+".d", "a", "b"), 0o700))
		ok(t, os.Rename(path+".d", path))
	},
	"sparse 10 GB": func(t *testing.T, path string) {
		ok(t, os.WriteFile(path, nil, 0o600))
		ok(t, os.Truncate(path, 10<<30))
	},
	"one byte too many": func(t *testing.T, path string) {
		ok(t, os.WriteFile(path, []byte(strings.Repeat(" ", maxLetter+1)), 0o600))
	},
	"socket": func(t *testing.T, path string) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
		ok(t, err)
		t.Cleanup(func() { _ = l.Close() })
		l.SetUnlinkOnClose(false)
		ok(t, os.Rename(l.Addr().String(), path))
	},
	"device": func(t *testing.T, path string) {
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil { // /dev/zero
			// Only root can; a FIFO stands in for it elsewhere.
			ok(t, unix.Mkfifo(path, 0o600))
		}
	},
	"half a letter, old":  old(`{"id":"half-a-letter--old","op":`),
	"empty, old":          old(""),
	"nul bytes, old":      old(strings.Repeat("\x00", 4096)),
	"deep, old":           old(strings.Repeat("[", 500_000)),
	"another id, old":     old(letter("else", "push")),
	"id twice, old":       old(`{"id":"id-twice--old","id":"id-twice--old","op":"push"}`),
	"ID in capitals, old": old(`{"ID":"ID-in-capitals--old","op":"push"}`),
	"more fields, old":    old(`{"id":"more-fields--old","op":"push","args":{},"as":"root"}`),
	"two letters, old":    old(letter("two-letters--old", "push") + letter("two-letters--old", "push")),
	"odd operation, old":  old(`{"id":"odd-operation--old","op":"../push"}`),
	"args a list, old":    old(`{"id":"args-a-list--old","op":"push","args":[]}`),
	"bad bytes, old":      old("{\"id\":\"bad-bytes--old\",\"op\":\"push\",\"args\":{\"a\":\"\xff\"}}"),
}

func old(body string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		ok(t, os.WriteFile(path+".tmp", []byte(body), 0o600))
		past := time.Now().Add(-time.Minute)
		ok(t, os.Chtimes(path+".tmp", past, past))
		ok(t, os.Rename(path+".tmp", path))
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var notID = strings.NewReplacer(" ", "-", ",", "-")

func TestNothingAnAgentPlantsStopsItsOrOthersMail(t *testing.T) {
	for _, way := range []string{"kernel", "os.Root"} {
		for name, plant := range plants {
			t.Run(way+"/"+name, func(t *testing.T) {
				b, a := open(t)
				if way == "os.Root" {
					ok(t, b.requests.Close())
					root, err := openRootFolder(a.requests)
					ok(t, err)
					b.requests = root
				}
				id := notID.Replace(name)
				path := filepath.Join(a.requests, id+".json")
				messages := watching(t, b)
				plant(t, path)
				a.send("after", "push")
				if m := next(t, messages); m.ID != "after" {
					t.Fatalf("dispatched %+v", m)
				}
				// The plant may have been looked at only after the letter.
				a.send("marker", "push")
				if m := next(t, messages); m.ID != "marker" {
					t.Fatalf("dispatched %+v", m)
				}
				got := a.answered(id)
				if got.OK || got.Code != CodeRefused || got.Text == "" {
					t.Errorf("answered %+v", got)
				}
				if name != "full directory" {
					gone(t, path)
				}
			})
		}
	}
}

func TestNoNameLeadsOutOfADirectory(t *testing.T) {
	_, a := open(t)
	secret := filepath.Join(filepath.Dir(a.requests), "secret")
	ok(t, os.WriteFile(secret, []byte("x"), 0o600))
	ok(t, os.Symlink("..", filepath.Join(a.requests, "up")))
	ok(t, os.Symlink(fmt.Sprintf("/proc/%d/cwd", os.Getpid()), filepath.Join(a.requests, "magic")))
	dir, err := os.Open(a.requests)
	ok(t, err)
	defer dir.Close()
	for _, name := range []string{"../secret", secret, "up/secret", "magic/go.mod", "magic"} {
		if fd, err := beneath(int(dir.Fd()), name, unix.O_RDONLY); err == nil {
			_ = unix.Close(fd)
			t.Errorf("%s was opened", name)
		}
	}
}

func TestHalfWrittenLetterIsReadWhenItIsWhole(t *testing.T) {
	b, a := open(t)
	messages := watching(t, b)
	path := filepath.Join(a.requests, "slow.json")
	whole := letter("slow", "push")
	file, err := os.Create(path)
	ok(t, err)
	for i, piece := range []string{whole[:7], whole[7:20], whole[20:]} {
		_, err := file.WriteString(piece)
		ok(t, err)
		if i < 2 {
			a.send(fmt.Sprint("marker", i), "refs") // b has looked at all by then
			next(t, messages)
		}
	}
	ok(t, file.Close())
	if m := next(t, messages); m.ID != "slow" {
		t.Errorf("got %+v", m)
	}
}

func TestLetterThatStaysHalfIsAnsweredInTime(t *testing.T) {
	b, a := open(t)
	w := &watch{box: b, handle: func(m Message) { t.Errorf("dispatched %+v", m) }, late: map[string]time.Time{}}
	ok(t, os.WriteFile(filepath.Join(a.requests, "half.json"), []byte(`{"id":"half"`), 0o600))
	w.take("half.json")
	if b.Answered("half") || len(w.late) != 1 {
		t.Fatal("a fresh half was not left for later")
	}
	if due := w.due(); time.Until(due) > grace {
		t.Errorf("looked at again only at %v", due)
	}
	w.late["half.json"] = time.Now().Add(-grace)
	w.take("half.json")
	if got := a.answered("half"); got.OK || len(w.late) != 0 {
		t.Errorf("after its grace: %+v", got)
	}
}

func TestLetterThatGrowsIsNotRead(t *testing.T) {
	// A file of proc says it has no bytes and has some: what a file is that
	// grows between being measured and being read.
	proc, err := openFolder(fmt.Sprint("/proc/", os.Getpid()))
	ok(t, err)
	defer proc.Close()
	if body, _, err := proc.read("status"); err == nil || errors.Is(err, errUnfit) {
		t.Errorf("read %d bytes: %v", len(body), err)
	}
	root, err := openRootFolder(fmt.Sprint("/proc/", os.Getpid()))
	ok(t, err)
	defer root.Close()
	if body, _, err := root.read("status"); err == nil || errors.Is(err, errUnfit) {
		t.Errorf("by os.Root: read %d bytes: %v", len(body), err)
	}
}

func TestCrowdedDirectoryHidesNoMessage(t *testing.T) {
	b, a := open(t)
	for i := range 3_000 {
		f, err := os.Create(filepath.Join(a.requests, fmt.Sprintf("junk%06d", i)))
		ok(t, err)
		ok(t, f.Close())
	}
	for i := range 3 * batch { // cannot be removed, would fill every listing
		ok(t, os.MkdirAll(filepath.Join(a.requests, fmt.Sprintf("stuck%06d.json", i), "x"), 0o700))
	}
	w := &watch{box: b, late: map[string]time.Time{}, handle: func(Message) {}}
	for range 3 {
		names, _, err := b.requests.list(w.fresh, batch)
		ok(t, err)
		if len(names) != batch {
			t.Fatalf("listed %d", len(names))
		}
		for _, name := range names {
			w.take(name)
		}
	}
	a.send("real", "push")
	messages := watching(t, b)
	if m := next(t, messages); m.ID != "real" {
		t.Errorf("got %+v", m)
	}
}

func TestMessageBehindAFloodOfNoticesIsFound(t *testing.T) {
	limit, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	ok(t, err)
	most, err := strconv.Atoi(strings.TrimSpace(string(limit)))
	ok(t, err)
	if most > 1<<17 {
		t.Skipf("SKIPPED: the kernel queues %d notices, too many to flood here", most)
	}
	b, a := open(t)
	messages := make(chan Message, 4)
	busy, flooded := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- b.Watch(ctx, func(m Message) {
			if m.ID == "first" {
				close(busy)
				<-flooded
			}
			messages <- m
		})
	}()
	a.send("first", "push")
	<-busy
	junk := filepath.Join(a.requests, "junk")
	ok(t, os.WriteFile(junk, nil, 0o600))
	for range most/2 + 10 {
		ok(t, os.Rename(junk, junk+"2"))
		ok(t, os.Rename(junk+"2", junk))
	}
	a.send("lost", "push") // the queue is full: no notice of this one
	close(flooded)
	for _, want := range []string{"first", "lost"} {
		if m := next(t, messages); m.ID != want {
			t.Errorf("got %+v, want %s", m, want)
		}
	}
	cancel()
	ok(t, <-done)
}

func TestOddNamesAreNoMessages(t *testing.T) {
	b, a := open(t)
	messages := watching(t, b)
	for _, name := range []string{"x.json.tmp", ".json", "a b.json", "a.b.json", "é.json", "x.JSON", strings.Repeat("a", 65) + ".json", "-\x1b[2J.json", "a\n.json"} {
		ok(t, os.WriteFile(filepath.Join(a.requests, name), []byte(letter("x", "push")), 0o600))
	}
	a.send("marker", "push")
	if m := next(t, messages); m.ID != "marker" {
		t.Errorf("got %+v", m)
	}
	none(t, messages)
	left, err := os.ReadDir(a.responses)
	if err != nil || len(left) != 0 {
		t.Errorf("%d responses (%v)", len(left), err)
	}
}

func TestAgentCannotLockTheHostOutOfItsMailbox(t *testing.T) {
	b, a := open(t)
	messages := watching(t, b)
	a.send("m1", "push")
	next(t, messages)
	ok(t, os.Chmod(a.requests, 0o300)) // as root this changes nothing
	a.send("m2", "push")
	if m := next(t, messages); m.ID != "m2" {
		t.Errorf("got %+v", m)
	}
	ok(t, os.Chmod(a.requests, 0))
	if _, _, err := b.requests.list(func(string) bool { return true }, batch); err != nil {
		t.Errorf("listing: %v", err)
	}
	ok(t, os.Chmod(a.requests, 0))
	ok(t, b.Reply("m1", Reply{OK: true}))
	gone(t, filepath.Join(a.requests, "m1.json"))
}

func TestLeaseHoldsNobodyUp(t *testing.T) {
	b, a := open(t)
	path := a.write("leased.json", letter("leased", "push"))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	ok(t, err)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("SKIPPED: this file system has no leases: %v", err)
	}
	var got []string
	w := &watch{box: b, late: map[string]time.Time{}, handle: func(m Message) { got = append(got, m.ID) }}
	begun := time.Now()
	w.take("leased.json")
	if spent := time.Since(begun); spent > 20*time.Second { // the kernel breaks a lease after 45
		t.Errorf("waited %v for a lease", spent)
	}
	if len(got) != 0 || len(w.late) != 1 {
		t.Errorf("dispatched %v, %d left for later", got, len(w.late))
	}
	ok(t, unix.Close(fd))
	w.take("leased.json")
	if len(got) != 1 {
		t.Error("not read after the lease was over")
	}
}

func TestPollingFindsWhatTheKernelDoesNotTell(t *testing.T) {
	b, a := open(t)
	news := &poll{folder: b.requests}
	messages := make(chan Message, 1)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		w := &watch{box: b, handle: func(m Message) { messages <- m }, late: map[string]time.Time{}}
		done <- w.run(ctx, news)
	}()
	a.send("m1", "push")
	if m := next(t, messages); m.ID != "m1" {
		t.Errorf("got %+v", m)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("polling ended with %v", err)
	}
}
