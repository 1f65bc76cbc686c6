//go:build linux

package cli_test

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"
)

// awaitLine reads lines until one has text in it.
func (w *world) awaitLine(lines io.Reader, text string) {
	w.t.Helper()
	reader, ok := lines.(*bufio.Reader)
	if !ok {
		// One byte at a time: what follows is the next call's.
		var line strings.Builder
		for one := make([]byte, 1); ; {
			if _, err := lines.Read(one); err != nil {
				w.t.Fatalf("no line with %q: %v", text, err)
			}
			if one[0] != '\n' {
				line.WriteByte(one[0])
				continue
			}
			if strings.Contains(line.String(), text) {
				return
			}
			line.Reset()
		}
	}
	for {
		line, err := reader.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			w.t.Fatalf("no line with %q: %v", text, err)
		}
	}
}

func TestARepositoryThatIsGoneIsSaidAndItsAgentsKeepTheirWork(t *testing.T) {
	w := newWorld(t)
	w.write("draft.txt", "not committed\n")
	out, errOut, code := w.try(w.ctx(), "new", "--name", "left", "--", "sh", "-c", "echo mine > mine.txt")
	if code != 0 || !strings.Contains(out, "from main@"+w.git("rev-parse", "--short=7", "HEAD")+", read just now") || !strings.Contains(errOut, "1 uncommitted file is not included") {
		t.Errorf("exit %d, %q, %q", code, out, errOut)
	}
	w.until("left", "exited")
	if out := w.run("show", "left"); !strings.Contains(out, "1 uncommitted file is") || strings.Contains(out, "gone") {
		t.Errorf("show says\n%s", out)
	}
	if err := os.Rename(w.repo, w.repo+"-moved"); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := w.try(w.ctx(), "ls"); code != 0 || !strings.Contains(errOut, "the repository "+w.repo+" is gone") {
		t.Errorf("ls: exit %d, %q", code, errOut)
	}
	if out := w.run("show", "left"); !strings.Contains(out, w.repo+" (gone; the agent keeps its work)") {
		t.Errorf("show says\n%s", out)
	}
	if out := w.run("diff", "left"); !strings.Contains(out, "+mine") {
		t.Errorf("diff says\n%s", out)
	}
}

func TestFollowingTheOutputOfAnEndedAgentEnds(t *testing.T) {
	w := newWorld(t)
	w.launch("echo all there is", "--name", "over")
	w.until("over", "exited")
	if out := w.run("logs", "-f", "over"); !strings.Contains(out, "all there is") {
		t.Errorf("%q", out)
	}
	w.launch("read x; echo last words", "--name", "soon")
	w.run("send", "soon", "x")
	if out := w.run("logs", "--follow", "soon"); !strings.Contains(out, "last words") {
		t.Errorf("%q", out)
	}
}

func TestTextSentToAProgramThatKnowsPastesIsOnePaste(t *testing.T) {
	w := newWorld(t)
	// Shows every byte that it is given until carriage return.
	w.launch(`stty raw -echo; printf '\033[?2004h'; dd bs=1 count=23 2>/dev/null | od -An -c | tr -d ' \n'; echo`, "--name", "modern")
	w.run("send", "modern", "two\nlines\n")
	w.until("modern", "exited")
	if out := w.run("logs", "--text", "modern"); !strings.Contains(out, `033[200~two`) || !strings.Contains(out, `033[201~\r`) {
		t.Errorf("it was given %q", out)
	}
}
