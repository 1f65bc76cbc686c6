package tui

import (
	"fmt"
	"path/filepath"

	"fletch/state"
	"fletch/themes"
)

// census counts how the agents of a fleet stand.
type census struct {
	requests, asks, failed    int
	done, working, idle, live int
}

func count(f state.Fleet) census {
	c := census{requests: len(f.Pending())}
	for _, a := range f.Agents {
		if a.Status.Live() {
			c.live++
		}
		if _, asks := f.PendingOf(a.ID); asks {
			continue
		}
		switch a.Status {
		case state.Waiting:
			c.asks++
		case state.Failed:
			c.failed++
		case state.Done:
			c.done++
		case state.Working:
			c.working++
		case state.Idle:
			c.idle++
		case state.Starting, state.Stopped, state.Exited:
		}
	}
	return c
}

// topLine is the first line: what needs the person, most needed first and as
// the one filled chip; then how the others stand.
func topLine(s themes.Styles, f state.Fleet, dir string, w int) string {
	c := count(f)
	quiet := c.requests+c.asks+c.failed == 0
	r := newRow(w).add(s.Strong, " fletch")
	if place := filepath.Base(dir); dir != "" && place != "/" && place != "." && (w >= 100 || quiet && w >= 60) {
		r.add(s.Faint, "  "+place)
	}
	gap := "   "
	switch {
	case w < 60:
		gap = " "
	case w < 80:
		gap = "  "
	}
	if quiet {
		r.add(s.Faint, gap+"nobody needs you")
	}
	need := func(n int, mark, word string, style span) {
		if n == 0 {
			return
		}
		text := fmt.Sprintf("%s %d", mark, n)
		if word != "" {
			text += " " + word
		}
		if style.text == "chip" {
			r.add(s.Text, gap).add(style.style, " "+text+" ")
		} else {
			r.add(s.Text, "  ").add(style.style, text)
		}
	}
	words := [3]string{"to review", "asks", "failed"}
	if w < 60 {
		words = [3]string{}
	} else if w < 80 {
		words[2] = ""
	}
	need(c.requests, themes.MarkRequest, words[0], span{s.Chip, "chip"})
	if c.requests == 0 && !quiet {
		r.add(s.Text, gap[min(2, len(gap)):])
	}
	need(c.asks, themes.MarkAsks, words[1], span{s.Ask, ""})
	need(c.failed, themes.MarkFailed, words[2], span{s.Bad, ""})
	if w >= 80 {
		r.spans(counts(s, c, w-r.width)...)
	}
	return r.String()
}

// counts are how many are done, at work and idle: all three where there is
// room, else those at work.
func counts(s themes.Styles, c census, room int) []span {
	item := func(n int, mark, word string) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("  %s %d %s", mark, n, word)
	}
	all := []span{
		{s.Faint, item(c.done, themes.MarkDone, "done")},
		{s.Faint, item(c.working, themes.MarkWorking, "working")},
		{s.Faint, item(c.idle, themes.MarkIdle, "idle")},
	}
	if spansWidth(all)+2 > room {
		all = all[1:2]
	}
	if spansWidth(all) == 0 {
		return nil
	}
	return append([]span{{s.Faint, " "}}, all...)
}
