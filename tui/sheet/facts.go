package sheet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

const (
	// labelled is the column in which the values of the facts stand.
	labelled = 8
	// wordBytes bounds one text that fletch or the person wrote. Beyond it the
	// sheet says how much is left out.
	wordBytes = 4000
)

// facts are the rows above the diff: what a person decides on. The labels are
// fletch's. Remote, branch and commit stand in full at every size.
func (s Sheet) facts(w int, compact bool) []row {
	var rows []row
	if s.notice != "" {
		f := newFlow(w, 0)
		f.words(0, diff.Visible(s.notice), askStrong)
		rows = append(rows, f.rows...)
	}
	if compact {
		rows = append(rows, s.compactFacts(w)...)
	} else {
		rows = append(rows, s.fullFacts(w)...)
	}
	return append(rows, s.warnings(w, compact)...)
}

func label(word string) span { return span{word, faint} }

func (s Sheet) fullFacts(w int) []row {
	p := s.request.Plan
	var rows []row
	fact := func(word string) *flow { return newFlow(w, labelled, label(word)) }

	to := fact("to")
	to.put(0, remote(p.Remote)...)

	branch := fact("branch")
	if p.Force {
		branch.put(0, span{"FORCE", badStrong})
	}
	branch.put(2, span{branchName(p.Ref), infoStrong})
	e := s.effect()
	branch.words(2, e.text, e.tone)
	branch.put(3, s.base()...)

	commit := fact("commit")
	commit.put(0, id(p.Commit)...)

	what := fact("what")
	what.put(0, size(p)...)
	asked := clock(s.request.Asked, s.opened)
	if w < 70 {
		what.put(2, span{asked, faint})
	} else {
		what.put(3, span{"asked " + asked + " by " + diff.Visible(s.agent.Provider) + ", " + diff.Visible(s.agent.Engine), faint})
	}
	for _, f := range []*flow{to, branch, commit, what} {
		rows = append(rows, f.rows...)
	}
	return append(rows, s.task(w)...)
}

// task is what the person asked for, shortened: it is theirs, and not what
// leaves.
func (s Sheet) task(w int) []row {
	words := strings.Join(strings.Fields(diff.Visible(clip(s.agent.Task))), " ")
	if words == "" {
		return nil
	}
	const yours = "(your words)"
	f := newFlow(w, labelled, label("task"))
	room := w - labelled
	if w < 70 && diff.Width(words)+3+len(yours) > room {
		f.put(0, span{diff.Shorten(words, room, "…"), text})
		return f.rows
	}
	f.words(0, diff.Shorten(words, 2*room-3-len(yours), "…"), text)
	f.put(3, span{yours, faint})
	return f.rows
}

// compactFacts are for a screen of 40×10: no labels, and the task is left out.
func (s Sheet) compactFacts(w int) []row {
	p := s.request.Plan
	to := newFlow(w, 0)
	to.put(0, remote(p.Remote)...)
	branch := newFlow(w, 0)
	if p.Force {
		branch.put(0, span{"FORCE", badStrong})
	}
	branch.put(1, span{branchName(p.Ref), infoStrong})
	e := s.effect()
	if p.Old == "" {
		e.text = "new"
	}
	branch.words(1, e.text, e.tone)
	commit := newFlow(w, 0)
	commit.put(0, id(p.Commit)...)
	commit.put(2, size(p)...)
	return append(append(to.rows, branch.rows...), commit.rows...)
}

// warnings are the flags: each red one a line of its own, the others in one.
func (s Sheet) warnings(w int, compact bool) []row {
	var rows []row
	var also []string
	p := s.request.Plan
	for _, flag := range p.Flags {
		words := diff.Visible(clip(flag.Text))
		switch {
		case flag.Red && flag.Name == "force" && p.Force && strings.HasPrefix(words, "FORCE replaces"): // the branch line says it
		case flag.Red:
			f := newFlow(w, 2, span{themes.MarkWarning, badStrong})
			f.words(0, words, badStrong)
			rows = append(rows, f.rows...)
		default:
			if w < 70 { // which ones they are stands in the diff
				words, _, _ = strings.Cut(words, " (")
			}
			also = append(also, words)
		}
	}
	if len(also) == 0 {
		return rows
	}
	f := newFlow(w, 2, span{themes.MarkWarning, ask})
	if !compact {
		f.put(0, span{"also:", ask})
	}
	f.words(1, strings.Join(also, ", "), ask)
	return append(rows, f.rows...)
}

// remote emphasises what tells one remote from another.
func remote(url string) []span {
	url = diff.Visible(url)
	var out []span
	if scheme, rest, ok := strings.Cut(url, "://"); ok {
		out, url = append(out, span{scheme + "://", faint}), rest
	}
	name, git := strings.CutSuffix(url, ".git")
	out = append(out, span{name, strong})
	if git {
		out = append(out, span{".git", faint})
	}
	return out
}

func branchName(ref string) string {
	return diff.Visible(strings.TrimPrefix(ref, "refs/heads/"))
}

// effect says what becomes of the branch at the remote.
func (s Sheet) effect() span {
	p := s.request.Plan
	switch {
	case p.Force && p.Replaces == 0:
		return span{"replaces commits that are already there", faint}
	case p.Force:
		return span{"replaces " + count(p.Replaces, "commit", "commits") + " that " + are(p.Replaces) + " already there", faint}
	case p.Old == "":
		return span{"new branch", good}
	}
	return span{"adds " + count(added(p), "commit", "commits") + " to it", text}
}

// added counts the commits that the remote's branch does not have yet: all of
// the plan but the old head and what that was made from.
func added(p state.Plan) int {
	parents := make(map[state.Commit][]state.Commit, len(p.Commits))
	for _, c := range p.Commits {
		parents[c.ID] = c.Parents
	}
	there := map[state.Commit]bool{}
	for todo := []state.Commit{p.Old}; len(todo) > 0; {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, listed := parents[c]; listed && !there[c] {
			there[c] = true
			todo = append(todo, parents[c]...)
		}
	}
	return len(parents) - len(there)
}

// base says what the diff is measured against.
func (s Sheet) base() []span {
	p := s.request.Plan
	if p.Base == "" {
		return nil
	}
	at := p.Base.Short()
	if p.BaseRef != "" {
		at = branchName(p.BaseRef) + "@" + at
	}
	out := []span{{"from ", faint}, {at, info}}
	if b := s.agent.Base; b.Commit == p.Base && !b.At.IsZero() {
		out = append(out, span{" of " + clock(b.At, s.opened), faint})
	}
	return out
}

func id(c state.Commit) []span {
	full := diff.Visible(string(c))
	if len(full) < 7 {
		return []span{{full, strong}}
	}
	return []span{{full[:7], strong}, {full[7:], text}}
}

func size(p state.Plan) []span {
	return []span{
		{count(len(p.Commits), "commit", "commits") + " · " + count(len(p.Files), "file", "files") + " · ", text},
		{"+" + strconv.Itoa(p.Added), good},
		{" ", text},
		{"−" + strconv.Itoa(p.Removed), bad},
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// clock is a time of day, with the day when it is not today.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("2 Jan 15:04")
}

func clip(s string) string {
	if len(s) <= wordBytes {
		return s
	}
	return strings.ToValidUTF8(s[:wordBytes], "") + fmt.Sprintf(" … (and %d bytes more)", len(s)-wordBytes)
}
