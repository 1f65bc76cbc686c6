package sheet

import (
	"strings"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
)

// hint is a key and what it does; without a key it is a remark.
type hint struct {
	key, word string
	tone      tone // of a remark
}

// footer says what the sheet waits for and which keys do something. Hints
// that find no room are left out from the end.
func (s Sheet) footer(f frame, w int, edge tone) row {
	hints, live := s.hints(w)
	gap := 3
	if w < 70 {
		gap = 2
	}
	out := row{{themes.HeavyBottom + themes.HeavyHorizontal + " ", edge}}
	if f.compact {
		out = row{{" ", faint}}
	}
	for i, h := range hints {
		item := h.row(live, i == 0)
		space := 0
		if i > 0 {
			space = gap
		}
		if i > 0 && hints[i-1].tone == chipBad {
			space-- // a chip brings one
		}
		if i > 0 && out.width()+space+item.width() > w-1 {
			break
		}
		out = append(append(out, span{strings.Repeat(" ", space), faint}), item...)
	}
	if fill := w - out.width() - 1; fill > 0 && !f.compact {
		out = append(out, span{" ", edge}, span{strings.Repeat(themes.HeavyHorizontal, fill), edge})
	}
	return out
}

func (h hint) row(live, first bool) row {
	switch {
	case h.key == "" && h.tone == chipBad:
		return row{{" " + h.word + " ", chipBad}}
	case h.key == "":
		return row{{h.word, h.tone}}
	case h.word == "":
		return row{{h.key, focus}}
	case !live:
		return row{{h.key + " " + h.word, faint}}
	case first:
		return row{{h.key, focusStrong}, {" " + h.word, strong}}
	}
	return row{{h.key, focus}, {" " + h.word, faint}}
}

func (s Sheet) hints(w int) (hints []hint, live bool) {
	var (
		narrow = w < 70
		deny   = hint{key: "x", word: "deny"}
		later  = hint{key: "esc", word: "later"}
		next   = hint{key: "tab", word: "next"}
		scroll = hint{key: "j k", word: "scroll"}
		files  = hint{key: "J K", word: "file"}
		remark = func(t tone, word string) hint { return hint{word: word, tone: t} }
	)
	rest := []hint{deny, later, next, scroll, files}
	if s.total < 2 {
		rest = []hint{deny, later, scroll, files}
	}
	if narrow {
		rest = []hint{deny, later, {key: "?"}}
	}
	commit := s.request.Plan.Commit.Short()
	switch why := s.barred(); {
	case s.typing && narrow:
		return []hint{{key: "enter", word: "deny"}, {key: "esc", word: "back"}}, true
	case s.typing:
		return []hint{{key: "enter", word: "deny"}, {key: "esc", word: "back to the request"}, remark(faint, "ctrl+y does nothing here")}, true
	case s.listing:
		return []hint{{key: "j k", word: "file"}, {key: "enter", word: "show it"}, {key: "esc", word: "back"}}, true
	case s.answered == allowed:
		return []hint{remark(askStrong, "pushing "+diff.Visible(commit)+" …")}, true
	case s.answered == denied:
		return []hint{remark(askStrong, "denied")}, true
	case !s.due.IsZero():
		return []hint{remark(askStrong, "pushing "+diff.Visible(commit)+" … any key stops it")}, true
	case why != free:
		return append([]hint{remark(ask, why.words(s.request.State))}, rest...), true
	case s.unread() > 0 && !s.canArm():
		return append([]hint{remark(ask, "j on to the rest of the facts")}, rest...), true
	case s.asked:
		return append([]hint{remark(chipBad, s.question(narrow)), {key: "ctrl+y", word: "again"}}, deny, later), true
	case s.armed:
		return append([]hint{{key: "ctrl+y", word: "allow"}}, rest...), true
	}
	wait := "hands off for a moment …"
	if s.stopped {
		wait = "stopped; nothing was pushed. " + wait
	}
	if narrow {
		return append([]hint{remark(faint, wait)}, deny, later), false
	}
	return []hint{remark(faint, wait), {key: "ctrl+y", word: "allow"}, deny, later, scroll}, false
}

// canArm reports whether waiting is all that is missing.
func (s Sheet) canArm() bool {
	_, ok := s.armsAt()
	return ok || s.armed
}

func (b bar) words(st state.RequestState) string {
	switch b {
	case barSettled:
		return "already " + diff.Visible(string(st))
	case barKind:
		return "only pushes can be allowed here"
	case barUnequal:
		return "this is not what was asked for; it cannot be allowed"
	case barAwaited:
		return "reading what leaves …"
	case barFailed, barTooLarge:
		return "cannot be allowed here"
	case barSmall:
		return "too small to show everything"
	case free:
	}
	return ""
}

// question names what the second chord does, by the gravest red fact.
func (s Sheet) question(narrow bool) string {
	p := s.request.Plan
	reds := s.red()
	has := func(name string) bool {
		for _, r := range reds {
			if r == name {
				return true
			}
		}
		return false
	}
	n := len(reds)
	if p.Force && !has("force") {
		n++
	}
	ask := ""
	switch {
	case has("secret"):
		ask = "publish the secret"
	case has("unpushed"):
		ask = "publish your own commits"
	case p.Force:
		ask = "replace what is there"
	case has("history"):
		ask = "publish rewritten history"
	case has("control"):
		ask = "publish disguised names"
	case has("unchecked"):
		ask = "publish unchecked bytes"
	default:
		ask = "publish in spite of “" + diff.Shorten(diff.Visible(reds[0]), 16, "…") + "”"
	}
	if n > 1 && !narrow {
		ask += ", and " + count(n-1, "more", "more")
	}
	return ask + "?"
}
