package tui

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"fletch/state"
	"fletch/themes"
)

type toastKind uint8

const (
	toastInfo toastKind = iota
	toastGood
	toastBad // stays until esc
	toastAsk
)

// toast takes the place of the hint line: for six seconds or until the next
// key, which does its own work as well.
type toast struct {
	kind  toastKind
	text  string
	key   string    // what to press about it
	until time.Time // zero: until a key
}

func inform(text string) toast { return toast{kind: toastInfo, text: text} }
func good(text string) toast   { return toast{kind: toastGood, text: text} }
func warn(text string) toast   { return toast{kind: toastBad, text: text} }

// failure says what did not work, why, and the way out if there is one.
func failure(doing string, err error) toast {
	text := doing + ": " + err.Error()
	if strings.HasPrefix(err.Error(), doing) {
		text = err.Error()
	}
	if way := hint(err); way != "" {
		text += "  hint: " + way
	}
	return warn(text)
}

// from lets a toast go after its time. A failure has none.
func (t toast) from(now time.Time) toast {
	if t.kind != toastBad {
		t.until = now.Add(toastTime)
	}
	return t
}

// after is the toast once e has happened: the outcome of a push, and what
// waits for the person that the list cannot show by opening it.
func (t toast) after(m Model, before state.Fleet, e state.Event) toast {
	name := func(id state.AgentID) string {
		if a, ok := before.Agent(id); ok {
			return a.Name
		}
		return string(id)
	}
	switch body := e.Body.(type) {
	case state.Published:
		if r, ok := before.Request(body.Request); ok {
			return good(pushedWords(r)).from(m.now)
		}
	case state.PublishFailed:
		return warn("not pushed: " + body.Outcome)
	case state.Decided:
		r, ok := before.Request(body.Verdict.Request)
		if !ok || !m.mine[r.ID] {
			return t
		}
		if body.Verdict.Allow {
			return inform("pushing " + r.Plan.Commit.Short() + " …")
		}
		a, _ := before.Agent(r.Agent)
		if body.Verdict.Reason == "" {
			return good("denied; " + a.Provider + " was told").from(m.now)
		}
		return good("denied; " + a.Provider + " was told why").from(m.now)
	case state.Asked:
		if m.request == nil && (m.o.Open == OpenBar || m.right || m.whole || len(m.dialogs) > 0) && t.kind != toastBad {
			return toast{kind: toastAsk, text: themes.MarkRequest + " " + name(body.Request.Agent) + " " + asksFor(body.Request), key: "r"}.from(m.now)
		}
	case state.StatusChanged:
		if a, ok := before.Agent(e.Agent); ok && body.Status == state.Waiting && a.Status != state.Waiting && m.list.cursor != e.Agent && t.kind != toastBad {
			return toast{kind: toastAsk, text: themes.MarkAsks + " " + a.Name + " asks you", key: "w"}.from(m.now)
		}
	case state.Created, state.Prepared, state.Sealed, state.Measured, state.Noticed, state.Removed, state.Restored,
		state.Joined, state.Withdrawn, state.Seen, state.Left:
	}
	return t
}

// pushedWords: "pushed 9f3c1e7 to acme/shop fletch/amber-river".
func pushedWords(r state.Request) string {
	return fmt.Sprintf("pushed %s to %s %s", r.Plan.Commit.Short(), shortRemote(r.Plan.Remote), strings.TrimPrefix(r.Plan.Ref, "refs/heads/"))
}

// shortRemote is a remote as people call it: "acme/shop".
func shortRemote(remote string) string {
	path := remote
	if u, err := url.Parse(remote); err == nil && u.Scheme != "" {
		path = u.Path
	} else if _, after, ok := strings.Cut(remote, ":"); ok {
		path = after
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if path == "" {
		return remote
	}
	parts := strings.Split(path, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// view draws the toast in the hint line.
func (t toast) view(s themes.Styles, w int) string {
	r := newRow(w).add(s.Text, " ")
	first, rest, _ := strings.Cut(t.text, " ")
	switch t.kind {
	case toastGood:
		r.add(s.Good.Bold(true), themes.MarkDone+" "+first).fit(s.Text, "  "+rest, w-r.width)
	case toastBad:
		r.add(s.Bad.Bold(true), themes.MarkFailed+" ").fit(s.Text, t.text, w-r.width-12).add(s.Focus, "   esc").add(s.Faint, " close")
	case toastAsk:
		r.add(s.Ask, t.text)
	case toastInfo:
		r.fit(s.Text, t.text, w-r.width)
	}
	if t.key != "" {
		r.add(s.Focus, "   "+t.key)
	}
	return r.String()
}

// sinceLeft is what happened while nobody looked: "since 18:40: 2 done, 1
// failed, 1 asks to push, 1 asks you".
func sinceLeft(f state.Fleet, now time.Time) string {
	if f.Left.IsZero() || len(f.News) == 0 {
		return ""
	}
	done, failed, pushed, unpushed := map[state.AgentID]bool{}, map[state.AgentID]bool{}, 0, 0
	for _, e := range f.News {
		if body, ok := e.Body.(state.StatusChanged); ok {
			done[e.Agent] = done[e.Agent] || body.Status == state.Done || body.Status == state.Exited
			failed[e.Agent] = failed[e.Agent] || body.Status == state.Failed
		}
		if _, ok := e.Body.(state.Published); ok {
			pushed++
		}
		if _, ok := e.Body.(state.PublishFailed); ok {
			unpushed++
		}
	}
	ended := func(set map[state.AgentID]bool, now ...state.Status) (n int) {
		for id, was := range set {
			if a, ok := f.Agent(id); was && ok {
				for _, status := range now {
					if a.Status == status {
						n++
					}
				}
			}
		}
		return n
	}
	c := count(f)
	var parts []string
	say := func(n int, word string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	say(ended(done, state.Done, state.Exited, state.Idle), "done")
	say(ended(failed, state.Failed), "failed")
	say(pushed, "pushed")
	say(unpushed, "not pushed")
	say(c.requests, "asks to push")
	say(c.asks, "asks you")
	if len(parts) == 0 {
		return ""
	}
	return "since " + since(f.Left, now) + ": " + strings.Join(parts, ", ")
}
