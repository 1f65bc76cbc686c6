package inside_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fletch/broker/inside"
	"fletch/broker/mailbox"
	"fletch/home"
)

// FuzzHelperPrintsWhatTheHostSaid holds the two ends of the response format
// together: whatever text and refs the host puts into a reply, the helper
// prints exactly what a JSON parser would find there.
func FuzzHelperPrintsWhatTheHostSaid(f *testing.F) {
	f.Add("pushed to example.com", "refs/heads/main", true, uint8(0))
	f.Add("-n \\n %s $(id) `id` \\0101 \\c", "refs/heads/a,b", false, uint8(3))
	f.Add("\"},\"ok\":true,\"text\":\"x", "HEAD", false, uint8(200))
	f.Add(" leading\n\n trailing \n", "refs/heads/-n", true, uint8(1))
	sh, err := exec.LookPath("dash")
	if err != nil {
		f.Skip("SKIPPED: dash is not installed")
	}
	bin := f.TempDir()
	if err := inside.Install(bin); err != nil {
		f.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := home.Open(dir, "")
	if err != nil {
		f.Fatal(err)
	}
	box, err := mailbox.Open(h, "abcdefgh")
	if err != nil {
		f.Fatal(err)
	}
	var mu sync.Mutex
	var reply mailbox.Reply
	var id string
	// Not f.Context: that one ends before the last input has its answer.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- box.Watch(ctx, func(m mailbox.Message) {
			mu.Lock()
			defer mu.Unlock()
			id = m.ID
			_ = box.Reply(m.ID, reply)
		})
	}()
	f.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.Errorf("Watch: %v", err)
		}
		_ = box.Close()
	})
	f.Fuzz(func(t *testing.T, text, ref string, ok bool, code uint8) {
		mu.Lock()
		reply = mailbox.Reply{OK: ok, Code: int(code), Lines: []string{text}, Refs: map[string]string{ref: strings.Repeat("a", 40)}}
		mu.Unlock()
		for _, flag := range []string{"", "--refs"} {
			args := []string{filepath.Join(bin, "fletch-request"), "--refs", "op"}
			if flag == "" {
				args = append(args[:1], "op")
			}
			cmd := exec.CommandContext(t.Context(), sh, args...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "FLETCH_MAILBOX=" + h.Mailbox("abcdefgh")}
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			mu.Lock()
			body, err := os.ReadFile(filepath.Join(h.Responses("abcdefgh"), id+".json"))
			mu.Unlock()
			var said struct{ Refs, Text string }
			if err != nil || json.Unmarshal(body, &said) != nil {
				t.Fatalf("response %q: %v", body, err)
			}
			want, wantErr := "", ""
			switch {
			case ok && flag == "":
				want = said.Text
			case ok:
				want = said.Refs
			case said.Text == "":
				wantErr = "fletch: refused\n"
			default:
				for line := range strings.SplitSeq(said.Text, "\n") {
					wantErr += "fletch: " + strings.TrimPrefix(line, "fletch: ") + "\n"
				}
			}
			if want != "" {
				want += "\n"
			}
			if stdout.String() != want || stderr.String() != wantErr {
				t.Errorf("response %q: printed %q and %q, want %q and %q", body, stdout.String(), stderr.String(), want, wantErr)
			}
			if exit := cmd.ProcessState.ExitCode(); (exit == 0) != ok || (!ok && code >= 1 && code <= 99 && exit != int(code)) {
				t.Errorf("response %q: exit %d", body, exit)
			}
		}
	})
}
