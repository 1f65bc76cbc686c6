package tui

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"fletch/state"
	"fletch/themes"
)

// happened is an event as a line of an agent's activity, in fletch's words.
// Empty: not worth a line.
func happened(s themes.Styles, e state.Event) (string, lipgloss.Style) {
	switch body := e.Body.(type) {
	case state.Created:
		return "created: " + body.Agent.Provider + ", " + body.Agent.Engine, s.Text
	case state.StatusChanged:
		return statusWords(s, body)
	case state.Prepared:
		text := fmt.Sprintf("checked out %s@%s", strings.TrimPrefix(body.Base.Ref, "refs/heads/"), body.Base.Commit.Short())
		if body.NotIncluded > 0 {
			text += fmt.Sprintf(", without %s of yours that are not committed", plural(body.NotIncluded, "file"))
		}
		if body.Base.Stale != "" {
			text += "; the remote did not answer: " + body.Base.Stale
		}
		return text, s.Text
	case state.Sealed:
		return "sealed: " + body.Attestation.Engine + ", " + plural(len(body.Attestation.Facts), "fact") + " attested", s.Text
	case state.Measured:
		if body.Work.Files == 0 {
			return "", s.Text
		}
		return fmt.Sprintf("work: %s, %s, +%d −%d", plural(body.Work.Commits, "commit"), plural(body.Work.Files, "file"), body.Work.Added, body.Work.Removed), s.Faint
	case state.Noticed:
		if body.Kind == "info" || body.Kind == "git" {
			return body.Text, s.Text
		}
		return body.Text, s.Bad
	case state.Removed:
		return "removed", s.Text
	case state.Restored:
		return "brought back", s.Text
	case state.Asked, state.Decided, state.Withdrawn, state.Published, state.PublishFailed:
		return requestWords(s, e)
	case state.Joined, state.Seen, state.Left:
	}
	return "", s.Text
}

func statusWords(s themes.Styles, body state.StatusChanged) (string, lipgloss.Style) {
	text, style := string(body.Status), s.Text
	switch body.Status {
	case state.Waiting:
		text, style = "asks you", s.Ask
	case state.Failed:
		style = s.Bad
	case state.Starting:
		return "", style
	case state.Working, state.Idle, state.Done, state.Stopped, state.Exited:
	}
	if body.Reason != "" {
		text += ": " + body.Reason
	}
	return text, style
}

func requestWords(s themes.Styles, e state.Event) (string, lipgloss.Style) {
	switch body := e.Body.(type) {
	case state.Asked:
		p := body.Request.Plan
		return fmt.Sprintf("%s %s to %s %s", asksFor(body.Request), p.Commit.Short(), shortRemote(p.Remote), strings.TrimPrefix(p.Ref, "refs/heads/")), s.Ask
	case state.Decided:
		if body.Verdict.Allow {
			return "you allowed " + body.Verdict.Commit.Short(), s.Text
		}
		if body.Verdict.Reason != "" {
			return "you denied: " + body.Verdict.Reason, s.Text
		}
		return "you denied", s.Text
	case state.Withdrawn:
		return "request withdrawn: " + body.Why, s.Text
	case state.Published:
		return "pushed: " + body.Outcome, s.Good
	case state.PublishFailed:
		return "not pushed: " + body.Outcome, s.Bad
	case state.Created, state.Prepared, state.Sealed, state.StatusChanged, state.Measured, state.Noticed,
		state.Removed, state.Restored, state.Joined, state.Seen, state.Left:
	}
	return "", s.Text
}
