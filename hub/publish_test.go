//go:build linux

package hub

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fletch/broker/mailbox"
	"fletch/hub/wire"
	"fletch/state"
)

func TestEveryEndOfARequestHasWordsForTheAgent(t *testing.T) {
	plan := state.Plan{Commit: state.Commit(strings.Repeat("ab", 20)), Ref: "refs/heads/fletch/fern"}
	for _, c := range []struct {
		request state.Request
		ok      bool
		code    int
		line    string
	}{
		{state.Request{State: state.Pushed, Plan: plan}, true, 0, "fletch: pushed abababa to refs/heads/fletch/fern"},
		{state.Request{State: state.Denied}, false, mailbox.CodeRefused, "fletch: denied"},
		{state.Request{State: state.Denied, Verdict: &state.Verdict{Reason: "no tests"}}, false, mailbox.CodeRefused, "fletch: denied: no tests"},
		{state.Request{State: state.Superseded, Outcome: "a newer push took its place"}, false, mailbox.CodeRefused, "fletch: a newer push took its place"},
		{state.Request{State: state.Errored, Outcome: "the remote moved"}, false, mailbox.CodeRefused, "fletch: not pushed: the remote moved"},
		{state.Request{State: state.Pending}, false, mailbox.CodeWaiting, "fletch: not answered yet; push the same commit again to keep waiting"},
		{state.Request{State: state.Allowed}, false, mailbox.CodeWaiting, "fletch: not answered yet; push the same commit again to keep waiting"},
		{state.Request{}, false, mailbox.CodeWaiting, "fletch: not answered yet; push the same commit again to keep waiting"},
	} {
		got := outcomeReply(c.request)
		if got.OK != c.ok || got.Code != c.code || strings.Join(got.Lines, "|") != c.line {
			t.Errorf("%s: %+v", c.request.State, got)
		}
	}
}

// reply is what an agent reads.
type reply struct {
	OK   bool
	Code int
	Text string
}

func (h *Hub) answerTo(t *testing.T, id, mail string) (reply, bool) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.Home.Responses(id), mail+".json"))
	if err != nil {
		return reply{}, false
	}
	var got reply
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return got, true
}

// settled waits until the publisher has done all that it was asked before.
func (p *publisher) settled() {
	done := make(chan struct{})
	p.call(func(*desk) { close(done) })
	<-done
}

// asked puts a request on record as the gate does.
func (h *Hub) asked(t *testing.T, id state.RequestID, as state.RequestState, mail ...string) state.Request {
	t.Helper()
	plan := state.Plan{Agent: "aaaaaaaa", Ref: "refs/heads/fletch/fern", Commit: state.Commit(strings.Repeat("cd", 20))}
	r := state.Request{ID: id, Agent: "aaaaaaaa", Operation: "push", Plan: plan, PlanHash: plan.Hash(), State: as, Mail: mail}
	h.record(t, r.Agent, state.Asked{Request: r})
	return r
}

// withMailbox is a hub that serves the mailbox of one agent.
func withMailbox(t *testing.T) *Hub {
	t.Helper()
	h := newHub(t)
	serving(t, h)
	h.recordAgent(t, "aaaaaaaa", state.Working)
	h.publisher.open("aaaaaaaa")
	h.publisher.settled()
	return h
}

func TestAMessageThatAsksAgainForAnAllowedPushGetsItsOutcome(t *testing.T) {
	h := withMailbox(t)
	p := h.publisher
	r := h.asked(t, "1", state.Allowed, "first")
	if twin, ok := p.twin(r.Agent, r.PlanHash, "", time.Time{}); !ok || twin.ID != r.ID {
		t.Fatalf("the allowed request is not found: %+v", twin)
	}
	if _, ok := p.twin(r.Agent, r.PlanHash, r.ID, time.Time{}); ok {
		t.Error("a request is its own twin")
	}
	if _, ok := p.twin("bbbbbbbb", r.PlanHash, "", time.Time{}); ok {
		t.Error("another agent's request is a twin")
	}
	var s *served
	got := make(chan struct{})
	p.call(func(d *desk) { s = d.boxes[r.Agent]; close(got) })
	<-got
	p.await(r.ID, s, "late")
	p.settled()
	if _, answered := h.answerTo(t, "aaaaaaaa", "late"); answered {
		t.Fatal("it was answered before the push was over")
	}
	p.conclude(t.Context(), r, "done", nil)
	p.settled()
	for _, mail := range []string{"first", "late"} {
		if a, ok := h.answerTo(t, "aaaaaaaa", mail); !ok || !a.OK || !strings.Contains(a.Text, "pushed cdcdcdc") {
			t.Errorf("%s: %+v %v", mail, a, ok)
		}
	}
	// After the end the answer comes at once.
	p.await(r.ID, s, "later")
	p.settled()
	if a, ok := h.answerTo(t, "aaaaaaaa", "later"); !ok || !a.OK {
		t.Errorf("later: %+v %v", a, ok)
	}
}

func TestAPushThatFailedTellsEveryoneWhoWaits(t *testing.T) {
	h := withMailbox(t)
	r := h.asked(t, "1", state.Allowed, "one", "two")
	h.publisher.conclude(t.Context(), r, "", wire.Errorf("remote-moved", "", "the branch\x1b[2J moved"))
	h.publisher.settled()
	for _, mail := range r.Mail {
		a, ok := h.answerTo(t, "aaaaaaaa", mail)
		if !ok || a.OK || a.Code != mailbox.CodeRefused || !strings.HasPrefix(a.Text, "fletch: not pushed: the branch") || strings.Contains(a.Text, "\x1b") {
			t.Errorf("%s: %+v %v", mail, a, ok)
		}
	}
	if now, _ := h.store.Fleet().Request(r.ID); now.State != state.Errored {
		t.Errorf("it is %s on record", now.State)
	}
}

func TestAMessageIsNeverDispatchedTwice(t *testing.T) {
	h := withMailbox(t)
	p := h.publisher
	h.asked(t, "1", state.Denied, "old")
	p.handle(t.Context(), "aaaaaaaa", p.servedFor(t), mailbox.Message{ID: "old", Op: "push"})
	p.settled()
	if a, ok := h.answerTo(t, "aaaaaaaa", "old"); !ok || a.OK || a.Text != "fletch: denied" {
		t.Errorf("%+v %v", a, ok)
	}
	if n := len(h.store.Fleet().Requests); n != 1 {
		t.Errorf("%d requests on record", n)
	}
}

func (p *publisher) servedFor(t *testing.T) *served {
	t.Helper()
	out := make(chan *served, 1)
	p.call(func(d *desk) { out <- d.boxes["aaaaaaaa"] })
	s := <-out
	if s == nil {
		t.Fatal("the mailbox is not served")
	}
	return s
}

func TestOddMessagesAreRefusedAndOnTheRecord(t *testing.T) {
	h := withMailbox(t)
	s := h.publisher.servedFor(t)
	sha := strings.Repeat("ef", 20)
	for id, c := range map[string]struct{ op, args, text string }{
		"a": {"merge", `{}`, "fletch knows: push, refs"},
		"b": {"push", `{}`, "push wants"},
		"c": {"push", `{"commit":"HEAD","ref":"refs/heads/fletch/fern"}`, "push wants"},
		"d": {"push", `{"commit":"` + sha + `","ref":"refs/heads/main"}`, "may push to fletch/fern only, not to refs/heads/main"},
		"e": {"push", `{"commit":"` + sha + `","ref":"refs/heads/x\u001b[2J"}`, "may push to fletch/fern only"},
	} {
		h.publisher.handle(t.Context(), "aaaaaaaa", s, mailbox.Message{ID: id, Op: c.op, Args: json.RawMessage(c.args)})
		a, ok := h.answerTo(t, "aaaaaaaa", id)
		if !ok || a.OK || !strings.Contains(a.Text, c.text) || strings.Contains(a.Text, "\x1b") {
			t.Errorf("%s %s: %+v %v", c.op, c.args, a, ok)
		}
	}
	events, err := h.store.Latest(t.Context(), "aaaaaaaa", 100)
	if err != nil {
		t.Fatal(err)
	}
	refusals := 0
	for _, e := range events {
		if n, ok := e.Body.(state.Noticed); ok && n.Kind == "refused" {
			refusals++
		}
	}
	if refusals != 5 {
		t.Errorf("%d of 5 refusals are on record", refusals)
	}
	if n := len(h.store.Fleet().Requests); n != 0 {
		t.Errorf("%d requests came of it", n)
	}
}

func TestThePushUsesTheEnvironmentOfWhoeverAllowedIt(t *testing.T) {
	h := newHub(t)
	h.Env = []string{"HOME=/hub"}
	p := h.publisher
	p.envs.Store(state.RequestID("1"), []string{"SSH_AUTH_SOCK=/person"})
	p.envs.Store(state.RequestID("2"), []string(nil))
	for id, want := range map[state.RequestID]string{"1": "SSH_AUTH_SOCK=/person", "2": "HOME=/hub", "3": "HOME=/hub"} {
		if got := p.credentials(id); len(got.Env) != 1 || got.Env[0] != want {
			t.Errorf("request %s: %v", id, got.Env)
		}
	}
}

func TestRequestNumbersAreNeverUsedTwice(t *testing.T) {
	fleet := state.Fleet{Requests: []state.Request{{ID: "3"}, {ID: "12"}, {ID: "x"}, {ID: "7"}}}
	if n := nextRequest(fleet); n != 12 {
		t.Errorf("the highest number is %d", n)
	}
}
