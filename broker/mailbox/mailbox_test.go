package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fletch/home"
	"fletch/state"
)

// patience is far beyond what any step needs on a loaded machine.
const patience = 60 * time.Second

// agent is the other side: it has the two directories and nothing else.
type agent struct {
	t                   *testing.T
	requests, responses string
}

func newHome(t *testing.T) home.Home {
	t.Helper()
	// t.TempDir carries the test's name: too long for a home's sockets.
	dir, err := os.MkdirTemp("", "box")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := home.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func open(t *testing.T) (*Box, agent) {
	t.Helper()
	h := newHome(t)
	b, err := Open(h, "abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b, agent{t, h.Requests("abcdefgh"), h.Responses("abcdefgh")}
}

// watching runs Watch until the test ends and returns what it dispatches.
func watching(t *testing.T, b *Box) <-chan Message {
	t.Helper()
	messages := make(chan Message, 4*maxOpen)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Watch(ctx, func(m Message) { messages <- m }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch: %v", err)
		}
	})
	return messages
}

func (a agent) write(name, body string) string {
	a.t.Helper()
	path := filepath.Join(a.requests, name)
	if err := os.WriteFile(path+".tmp", []byte(body), 0o600); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		a.t.Fatal(err)
	}
	return path
}

func (a agent) send(id, op string) { a.write(id+".json", letter(id, op)) }

func letter(id, op string) string {
	return fmt.Sprintf(`{"id":%q,"op":%q,"args":{"ref":"refs/heads/x"}}`, id, op)
}

type answer struct {
	ID   string `json:"id"`
	OK   bool   `json:"ok"`
	Code int    `json:"code"`
	Refs string `json:"refs"`
	Text string `json:"text"`
}

// answered reads the response to id, which is there.
func (a agent) answered(id string) answer {
	a.t.Helper()
	body, err := os.ReadFile(filepath.Join(a.responses, id+".json"))
	if err != nil {
		a.t.Fatalf("no response to %s: %v", id, err)
	}
	var got answer
	if err := json.Unmarshal(body, &got); err != nil {
		a.t.Fatalf("response to %s: %v in %s", id, err, body)
	}
	return got
}

func next(t *testing.T, messages <-chan Message) Message {
	t.Helper()
	select {
	case m := <-messages:
		return m
	case <-time.After(patience):
		t.Fatal("no message")
		return Message{}
	}
}

func none(t *testing.T, messages <-chan Message) {
	t.Helper()
	select {
	case m := <-messages:
		t.Errorf("dispatched %+v", m)
	default:
	}
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", filepath.Base(path), err)
	}
}

func TestMessageGoesInAndItsAnswerComesOut(t *testing.T) {
	b, a := open(t)
	a.send("before", "refs") // waits while no hub runs
	messages := watching(t, b)
	if m := next(t, messages); m.ID != "before" || m.Op != "refs" {
		t.Errorf("got %+v", m)
	}
	a.send("m-1_A", "push")
	m := next(t, messages)
	var args struct {
		Ref string `json:"ref"`
	}
	if err := m.Decode(&args); err != nil || m.ID != "m-1_A" || m.Op != "push" || args.Ref != "refs/heads/x" {
		t.Errorf("got %+v, args %+v, %v", m, args, err)
	}
	if b.Answered("m-1_A") {
		t.Error("answered before it was")
	}
	if err := b.Reply("m-1_A", Reply{OK: true, Lines: []string{"pushed", "to https://x"}}); err != nil {
		t.Fatal(err)
	}
	if got := a.answered("m-1_A"); !got.OK || got.Code != 0 || got.Text != "pushed\nto https://x" || got.ID != "m-1_A" {
		t.Errorf("response %+v", got)
	}
	gone(t, filepath.Join(a.requests, "m-1_A.json"))
	if !b.Answered("m-1_A") {
		t.Error("not answered after it was")
	}
	if err := b.Reply("m-1_A", Refuse("no")); !errors.Is(err, ErrAnswered) {
		t.Errorf("second reply: %v", err)
	}
	if got := a.answered("m-1_A"); !got.OK {
		t.Error("a second reply took the place of the first")
	}
}

func TestNoIDIsDispatchedTwice(t *testing.T) {
	b, a := open(t)
	messages := watching(t, b)
	a.send("once", "push")
	next(t, messages)
	a.send("once", "push") // while it is open
	a.send("marker1", "refs")
	if m := next(t, messages); m.ID != "marker1" {
		t.Errorf("dispatched again: %+v", m)
	}
	if err := b.Reply("once", Refuse("no")); err != nil {
		t.Fatal(err)
	}
	again := a.write("once.json", letter("once", "push"))
	a.send("marker2", "refs")
	if m := next(t, messages); m.ID != "marker2" {
		t.Errorf("dispatched again: %+v", m)
	}
	gone(t, again)
}

func TestRestartDispatchesWhatHasNoAnswer(t *testing.T) {
	h := newHome(t)
	first, err := Open(h, "abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	a := agent{t, h.Requests("abcdefgh"), h.Responses("abcdefgh")}
	if err := first.Reply("done", Reply{OK: true}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.responses, ".half.json.tmp"), []byte(`{"id"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	done := a.write("done.json", letter("done", "push")) // a crash between reply and removal
	a.send("waits", "push")

	again, err := Open(h, "abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	gone(t, filepath.Join(a.responses, ".half.json.tmp"))
	messages := watching(t, again)
	if m := next(t, messages); m.ID != "waits" {
		t.Errorf("dispatched %+v", m)
	}
	none(t, messages)
	if !again.Answered("done") || again.Answered("waits") {
		t.Error("a restart forgot what was answered")
	}
	a.send("marker", "refs")
	next(t, messages)
	gone(t, done)
}

func TestRequestIsGoneThoughItsReplyCannotBeWritten(t *testing.T) {
	b, a := open(t)
	messages := watching(t, b)
	path := a.write("m1.json", letter("m1", "push"))
	next(t, messages)
	// A directory where the response has to go: no rename can replace it.
	if err := os.MkdirAll(filepath.Join(a.responses, "m1.json", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.Reply("m1", Reply{OK: true}); err == nil {
		t.Fatal("the reply was written")
	}
	gone(t, path)
	if !b.Answered("m1") {
		t.Error("it could be carried out again")
	}
}

func TestMessagesBeyondSixtyFourAreRefused(t *testing.T) {
	b, a := open(t)
	var dispatched []string
	w := &watch{box: b, late: map[string]time.Time{}, handle: func(m Message) { dispatched = append(dispatched, m.ID) }}
	arrive := func(id string) {
		a.send(id, "push")
		w.take(id + ".json")
	}
	for i := range maxOpen {
		arrive(fmt.Sprint("m", i))
	}
	arrive("over")
	if got := a.answered("over"); got.OK || got.Code != CodeRefused || !strings.Contains(got.Text, "too many") {
		t.Errorf("the one too many got %+v", got)
	}
	if len(dispatched) != maxOpen {
		t.Errorf("%d dispatched", len(dispatched))
	}
	if err := b.Reply("m0", Refuse("no")); err != nil {
		t.Fatal(err)
	}
	arrive("after")
	if dispatched[len(dispatched)-1] != "after" {
		t.Error("an answer made no room")
	}
}

func TestMessageNobodyListensForMakesPlace(t *testing.T) {
	b, a := open(t)
	now := time.Now()
	for i := range maxOpen {
		if _, why := b.enter(fmt.Sprintf("m%d", i), now.Add(-time.Duration(i+1)*time.Minute)); why != "" {
			t.Fatal(why)
		}
	}
	if why := b.admit("new"); why != "" {
		t.Fatalf("refused: %s", why)
	}
	oldest := fmt.Sprintf("m%d", maxOpen-1)
	if got := a.answered(oldest); got.OK || got.Code != CodeWaiting {
		t.Errorf("the oldest got %+v", got)
	}
	if err := b.Reply(oldest, Reply{OK: true}); !errors.Is(err, ErrAnswered) {
		t.Errorf("a late reply: %v", err)
	}
}

func TestResponsesDoNotFillTheDisk(t *testing.T) {
	b, a := open(t)
	for i := range maxKept + 20 {
		if err := b.Reply(fmt.Sprintf("m%d", i), Reply{OK: true}); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(a.responses)
	if err != nil || len(left) != maxKept {
		t.Errorf("%d responses are kept (%v), want %d", len(left), err, maxKept)
	}
	if !b.Answered("m0") {
		t.Error("an answered message is forgotten with its response")
	}
}

func TestOneWatchAtATime(t *testing.T) {
	b, _ := open(t)
	b.watching = true
	if err := b.Watch(t.Context(), func(Message) {}); !errors.Is(err, ErrWatched) {
		t.Errorf("second Watch: %v", err)
	}
	b.watching = false
}

func TestMailboxIsPrivate(t *testing.T) {
	_, a := open(t)
	for _, dir := range []string{filepath.Dir(a.requests), a.requests, a.responses} {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", filepath.Base(dir), info.Mode(), err)
		}
	}
}

func TestAgentIDIsNoPath(t *testing.T) {
	h := newHome(t)
	for _, id := range []state.AgentID{"", "..", ".", "a/b", "A", ".a", "a b", "-a", state.AgentID(strings.Repeat("a", 65))} {
		if b, err := Open(h, id); err == nil {
			_ = b.Close()
			t.Errorf("%q has a mailbox", id)
		}
	}
}
