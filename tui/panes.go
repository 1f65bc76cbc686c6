package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// maxActivity is how many events of an agent are read and kept.
const maxActivity = 500

// textPane is a place in lines of text that are made anew for every view.
type textPane struct {
	top int  // first line in sight
	end bool // stay at the end, whatever comes
}

// scrolled moves by lines, in a text of total lines seen through h.
func (p textPane) scrolled(by, total, h int) textPane {
	last := max(0, total-h)
	if p.end {
		p.top = last
	}
	p.top = max(0, min(p.top+by, last))
	p.end = p.end && by >= 0
	return p
}

// window cuts the lines in sight out of all.
func (p textPane) window(all []string, h int) []string {
	top := min(p.top, max(0, len(all)-h))
	if p.end {
		top = max(0, len(all)-h)
	}
	return fitLines(all[top:], h)
}

// changesPane is an agent's work against its base.
type changesPane struct {
	agent   state.AgentID
	viewer  diff.Viewer
	patch   state.Patch
	read    bool   // the patch is there
	failed  string // why it is not
	loading bool
	stale   bool // the work has changed since
}

type changesMsg struct {
	agent state.AgentID
	patch state.Patch
	err   error
}

func (msg changesMsg) take(m Model) Model {
	if m.changes.agent != msg.agent {
		return m
	}
	m.changes.loading, m.changes.failed = false, ""
	if msg.err != nil {
		m.changes.failed = msg.err.Error()
		return m
	}
	m.changes.patch, m.changes.viewer, m.changes.read = msg.patch, diff.New(msg.patch), true
	return m
}

// rightShown reports whether the right side is on the screen.
func (m Model) rightShown() bool { return m.layout().right.h > 0 && m.request == nil }

// shownTab is the tab that is on the screen: below a list there is only room
// for the end of the agent's screen.
func (m Model) shownTab() tab {
	if m.layout().shape == stacked && !m.right && !m.whole {
		return tabScreen
	}
	return m.tab
}

// settleTab reads what the tab that is looked at shows, if it is not there
// yet or has grown old.
func (m Model) settleTab() (Model, tea.Cmd) {
	a, ok := m.selected()
	if !ok || !m.rightShown() {
		return m, nil
	}
	switch m.shownTab() {
	case tabChanges:
		return m.settleChanges(a)
	case tabActivity:
		return m.settleActivity(a)
	case tabScreen, tabSandbox:
	}
	return m, nil
}

func (m Model) settleChanges(a state.Agent) (Model, tea.Cmd) {
	if m.changes.agent != a.ID {
		m.changes = changesPane{agent: a.ID, stale: true}
	}
	if m.changes.loading || !m.changes.stale || m.changes.read && m.changesAt().From > 1 {
		return m, nil // nobody wants the text to change under the eye
	}
	m.changes.loading, m.changes.stale = true, false
	hub, ctx := m.o.Hub, m.ctx
	return m, func() tea.Msg {
		patch, err := hub.Changes(ctx, a.ID)
		return changesMsg{a.ID, patch, err}
	}
}

func (m Model) changesAt() diff.Position {
	r := m.layout().right
	return m.changes.viewer.Position(r.w, r.h)
}

// runChanges is the changes tab with the keyboard.
func (m Model) runChanges(act action, key string) (Model, tea.Cmd) {
	switch act {
	case "move", "file", "hunk":
		r := m.layout().right
		m.changes.viewer = m.changes.viewer.Update(key, r.w, r.h)
		return m, nil
	case "again":
		r := m.layout().right
		m.changes.stale, m.changes.viewer = true, m.changes.viewer.Update("g", r.w, r.h)
		return m, nil
	case "left":
		m.right, m.whole = false, false
		return m, nil
	}
	return m.runShared(act)
}

func (p changesPane) view(s themes.Styles, marks themes.Marks, a state.Agent, w, h int) []string {
	say := func(text string) []string { return fitLines([]string{"", newRow(w).add(s.Faint, text).String()}, h) }
	switch {
	case p.agent != a.ID || !p.read && p.failed == "":
		return say("reading …")
	case p.failed != "":
		return say("cannot be read: " + p.failed)
	case len(p.patch.Files) == 0 && p.patch.Diff == "" && len(p.patch.Commits) == 0:
		return say("No changes since " + baseName(a) + ".")
	}
	return fitLines(p.viewer.View(s, marks, w, h), h)
}

// activityPane is what happened to an agent.
type activityPane struct {
	agent   state.AgentID
	events  []state.Event // oldest first
	read    bool
	loading bool
	failed  string
	text    textPane
}

type activityMsg struct {
	agent  state.AgentID
	events []state.Event
	err    error
}

func (msg activityMsg) take(m Model) Model {
	if m.activity.agent != msg.agent {
		return m
	}
	m.activity.loading, m.activity.read = false, true
	if msg.err != nil {
		m.activity.failed = msg.err.Error()
		return m
	}
	// What came while this was on its way may be in both.
	newest := uint64(0)
	if n := len(msg.events); n > 0 {
		newest = msg.events[n-1].Seq
	}
	all := append([]state.Event(nil), msg.events...)
	for _, e := range m.activity.events {
		if e.Seq > newest {
			all = append(all, e)
		}
	}
	m.activity.events = all
	return m
}

// add takes an event that has just happened.
func (p activityPane) add(e state.Event) activityPane {
	if p.agent == "" || e.Agent != p.agent {
		return p
	}
	p.events = append(p.events[max(0, len(p.events)-maxActivity):len(p.events):len(p.events)], e)
	return p
}

func (m Model) settleActivity(a state.Agent) (Model, tea.Cmd) {
	if m.activity.agent != a.ID {
		m.activity = activityPane{agent: a.ID, text: textPane{end: true}}
	}
	if m.activity.read || m.activity.loading {
		return m, nil
	}
	m.activity.loading = true
	hub, ctx := m.o.Hub, m.ctx
	return m, func() tea.Msg {
		events, err := hub.Activity(ctx, a.ID, maxActivity)
		return activityMsg{a.ID, events, err}
	}
}

func (p activityPane) lines(s themes.Styles, w int, now time.Time) []string {
	switch {
	case p.failed != "":
		return []string{"", newRow(w).add(s.Faint, "cannot be read: "+p.failed).String()}
	case !p.read:
		return []string{"", newRow(w).add(s.Faint, "reading …").String()}
	}
	var out []string
	for _, e := range p.events {
		text, style := happened(s, e)
		if text == "" {
			continue
		}
		for i, line := range wrap(text, w-8) {
			r := newRow(w)
			if i == 0 {
				r.add(s.Faint, fmt.Sprintf("%-6s", since(e.At, now)))
			}
			out = append(out, r.to(s.Text, 8).add(style, line).String())
		}
	}
	if len(out) == 0 {
		return []string{"", newRow(w).add(s.Faint, "Nothing yet.").String()}
	}
	return out
}

// sandboxLines are the guarantees of an agent's engine and what its sandbox
// really was at the last start, with how that is known.
func sandboxLines(s themes.Styles, f state.Fleet, survey *state.Survey, a state.Agent, w int, now time.Time) []string {
	out := []string{newRow(w).add(s.Faint, "engine    ").add(s.Strong, a.Engine).
		add(s.Faint, "   tier ").add(s.Text, a.Tier).add(s.Faint, "   network ").add(s.Text, orWord(a.Network, "none")).String()}
	if c := chip(a); c != "" {
		out = append(out, newRow(w).to(s.Text, 10).add(s.Bad.Bold(true), c).String())
	}
	out = append(out, newRow(w).add(s.Faint, "profile   ").add(s.Text, orWord(a.Profile, "none")).String(),
		newRow(w).add(s.Faint, "checkout  ").fit(s.Info, a.Workspace, w-10).String(), "")
	out = append(out, newRow(w).add(s.Strong, "guarantees").String())
	for _, c := range claimsOf(survey, a.Engine) {
		out = append(out, claimLines(s, c, w)...)
	}
	att, ok := f.Attested[a.ID]
	if !ok {
		return append(out, "", newRow(w).add(s.Faint, "No start has been attested yet.").String())
	}
	out = append(out, "", newRow(w).add(s.Strong, "as started").add(s.Faint, "  "+since(att.At, now)).String())
	for _, fact := range att.Facts {
		for i, line := range wrap(fact.Value, max(10, w-40)) {
			r := newRow(w)
			if i == 0 {
				r.fit(s.Faint, fact.Name, 26).to(s.Text, 28).add(s.Text, line).to(s.Text, w-10).add(s.Faint, fact.Known)
			} else {
				r.to(s.Text, 28).add(s.Text, line)
			}
			out = append(out, r.String())
		}
	}
	return out
}

func claimsOf(survey *state.Survey, engine string) []state.Claim {
	if survey == nil {
		return nil
	}
	for _, e := range survey.Engines {
		if e.Name == engine {
			return e.Claims
		}
	}
	return nil
}

func claimLines(s themes.Styles, c state.Claim, w int) []string {
	mark, style := themes.MarkDone, s.Good
	switch c.Held {
	case "partial":
		mark, style = themes.MarkIdle, s.Ask
	case "unenforced":
		mark, style = themes.MarkFailed, s.Bad
	}
	r := newRow(w).add(style, mark+" ").fit(s.Text, claimName(c), 25).to(s.Text, 28).add(style, c.Held)
	out := []string{}
	for i, line := range wrap(c.Reason, max(10, w-42)) {
		if i == 0 {
			r.to(s.Text, 40)
			r.add(s.Faint, line)
			out = append(out, r.String())
			continue
		}
		out = append(out, newRow(w).to(s.Text, 40).add(s.Faint, line).String())
	}
	if len(out) == 0 {
		out = append(out, r.String())
	}
	return out
}

// scrollBy scrolls what the right side shows, down when positive.
func (m Model) scrollBy(by int) Model {
	a, ok := m.selected()
	if !ok {
		return m
	}
	r := m.layout().right
	switch m.shownTab() {
	case tabScreen:
		return m.scrollScreen(-by)
	case tabChanges:
		key, n := "j", by
		if by < 0 {
			key, n = "k", -by
		}
		for range min(n, 200) {
			m.changes.viewer = m.changes.viewer.Update(key, r.w, r.h)
		}
	case tabActivity:
		total := len(m.activity.lines(m.look.styles, r.w, m.now))
		m.activity.text = m.activity.text.scrolled(by, total, r.h)
	case tabSandbox:
		total := len(sandboxLines(m.look.styles, m.fleet, m.survey, a, r.w, m.now))
		m.sandbox = m.sandbox.scrolled(by, total, r.h)
	}
	return m
}

// scrollRight scrolls the right side by a page, from the list.
func (m Model) scrollRight(pages int) Model {
	return m.scrollBy(pages * max(1, m.layout().right.h-1))
}

// runShared is what works alike with the list and the right side focused.
func (m Model) runShared(act action) (Model, tea.Cmd) {
	switch act {
	case "tab-screen", "tab-changes", "tab-activity", "tab-sandbox", "whole", "next", "previous", "review", "new", "doctor":
		return m.runList(act)
	}
	return m.runAgent(act)
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// baseName is what an agent's work is measured against: "main@1a2b3c4".
func baseName(a state.Agent) string {
	ref := strings.TrimPrefix(a.Base.Ref, "refs/heads/")
	if a.Base.Commit == "" {
		return orWord(ref, "its base")
	}
	return ref + "@" + a.Base.Commit.Short()
}

// shared is the list's table for keys that the right side leaves alone.
func (k keyMap) shared(key string) action {
	switch act := k.byKey[inList][key]; act {
	case "tab-screen", "tab-changes", "tab-activity", "tab-sandbox", "whole", "next", "previous", "review", "new", "new-like", "stop", "remove", "continue", "undo", "doctor":
		return act
	default:
		return ""
	}
}
