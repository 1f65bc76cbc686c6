package inside_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fletch/broker/inside"
	"fletch/broker/mailbox"
)

func TestHalfAResponseIsNoAnswer(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		whole := `{"id":"%s","ok":true,"code":0,"refs":"","text":"one\ntwo"}` + "\n"
		most := len(fmt.Sprintf(whole, strings.Repeat("a", 32))) - 3
		for _, cut := range []int{0, 50, most} {
			w.respond(func(id, path string) {
				writeInPieces(t, path, fmt.Sprintf(whole, id)[:cut])
			})
			w.env = append(w.env, "FLETCH_WAIT=1")
			if out, code := w.run("fletch-request", "refs"); code != 3 {
				t.Errorf("cut at %d: exit %d, want 3\n%s", cut, code, out)
			}
		}
		w.respond(func(id, path string) {
			pieces := strings.SplitAfter(fmt.Sprintf(whole, id), ",")
			writeInPieces(t, path, pieces...)
		})
		w.env = append(w.env, "FLETCH_WAIT=100")
		if out := w.must("fletch-request", "refs"); out != "one\ntwo" {
			t.Errorf("read %q", out)
		}
		w.respond(func(_, path string) {
			writeInPieces(t, path, fmt.Sprintf(whole, "another"))
		})
		w.env = append(w.env, "FLETCH_WAIT=1")
		if out, code := w.run("fletch-request", "refs"); code != 3 {
			t.Errorf("the answer to another: exit %d, want 3\n%s", code, out)
		}
	})
}

// respond serves a fresh mailbox by hand: write gets a request's id and the
// path of its response.
func (w *world) respond(write func(id, path string)) {
	w.t.Helper()
	var responses string
	ready := make(chan struct{})
	w.serve(func(_ *mailbox.Box, m mailbox.Message) {
		<-ready
		write(m.ID, filepath.Join(responses, m.ID+".json"))
	})
	responses = filepath.Join(w.mail, "responses")
	close(ready)
}

func writeInPieces(t *testing.T, path string, pieces ...string) {
	file, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	for _, piece := range pieces {
		if _, err := file.WriteString(piece); err != nil {
			t.Error(err)
		}
		if err := file.Sync(); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestRefusesWhatItCannotSay(t *testing.T) {
	eachShell(t, func(t *testing.T, w *world) {
		w.hub(nil, done)
		for _, args := range [][]string{
			{},
			{"Push"},
			{"../x"},
			{"push;id"},
			{"push", "novalue"},
			{"push", "Key=v"},
			{"push", "=v"},
			{"push", `ref=a"b`},
			{"push", `ref=a\b`},
			{"push", "ref=a\nb"},
			{"push", "ref=é"},
			{"push", "ref=$(id)"},
			{"push", "ref=\x1b"},
		} {
			if out, code := w.run("fletch-request", args...); code != 2 {
				t.Errorf("%q: exit %d, want 2\n%s", args, code, out)
			}
		}
		left, err := os.ReadDir(filepath.Join(w.mail, "requests"))
		if err != nil || len(left) != 0 || len(w.asked()) != 0 {
			t.Errorf("%d files, asked %v (%v)", len(left), w.asked(), err)
		}
		if out := w.must("fletch-request", "push", "ref=a b", "force=true"); out != "pushed to example.com/acme/shop" {
			t.Errorf("said %q", out)
		}
	})
}

func TestInstallReplacesHelpersAsAWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	for range 2 {
		if err := inside.Install(dir); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(inside.Files()) {
		t.Errorf("%d files (%v), want %d", len(entries), err, len(inside.Files()))
	}
	for name, body := range inside.Files() {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o755 || info.Size() != int64(len(body)) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
