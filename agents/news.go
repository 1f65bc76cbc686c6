package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"fletch/agents/attach"
	"fletch/state"
)

// heard takes one message of the keeper.
func (w *worker) heard(message attach.Message) {
	news, ok := message.(attach.News)
	if !ok {
		return // frames and exits: the screen is the dashboard's, the end is told by the connection
	}
	switch news.Kind {
	case attach.NewsStatus:
		w.status = state.StatusChanged{Status: state.Status(news.Status), Reason: oneLine(news.Text)}
		w.settle.Reset(statusDebounce)
	case attach.NewsBlocked:
		w.record(state.Noticed{Kind: "blocked-host", Text: oneLine(news.Text)})
	case attach.NewsAttested:
		w.record(state.Sealed{Attestation: attested(news, w.agent().Engine)})
	}
}

// flush makes the newest status news, once it has held.
func (w *worker) flush() {
	now := w.agent()
	if w.keeper == nil || now.Status == w.status.Status && now.Reason == w.status.Reason {
		return
	}
	// Done stays until somebody has looked, though the keeper says idle.
	if now.Status == state.Done && w.status.Status == state.Idle {
		return
	}
	was := now.Status
	w.record(w.status)
	if was == state.Working || was == state.Starting {
		w.measure()
	}
}

// ending is what becomes of an agent whose keeper is not there.
func (s *Supervisor) ending(a state.Agent) state.StatusChanged {
	boot := bootID()
	var exit state.Exit
	raw, err := os.ReadFile(filepath.Join(s.Home.Run(string(a.ID)), "exit.json"))
	if err == nil {
		err = json.Unmarshal(raw, &exit)
	}
	switch {
	case err == nil && exit.Reason == "stopped":
		return state.StatusChanged{Status: state.Stopped, Exit: &exit}
	case err == nil && exit.Code == 0:
		return state.StatusChanged{Status: state.Exited, Exit: &exit}
	case err == nil:
		return state.StatusChanged{Status: state.Failed, Reason: exitReason(exit), Exit: &exit}
	case s.startedInBoot(a.ID) != boot:
		return state.StatusChanged{Status: state.Stopped, Reason: "the machine restarted"}
	case a.Status == state.Starting:
		return state.StatusChanged{Status: state.Failed, Reason: "fletch ended while it was starting"}
	}
	return state.StatusChanged{Status: state.Failed, Reason: "its keeper died"}
}

func exitReason(exit state.Exit) string {
	switch {
	case exit.Reason != "":
		return oneLine(exit.Reason)
	case exit.Signal != "":
		return "ended by signal " + oneLine(exit.Signal)
	}
	return "ended with code " + itoa(exit.Code)
}

// oneLine makes text of unknown origin fit for a row: no control bytes, one
// line, 256 bytes at most.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
	if len(text) > 256 {
		text = strings.ToValidUTF8(text[:253], "") + "…"
	}
	return strings.TrimSpace(text)
}

func attested(news attach.News, engine string) state.Attestation {
	out := state.Attestation{Engine: engine, At: news.At}
	for _, f := range news.Facts {
		out.Facts = append(out.Facts, state.Fact{Name: oneLine(f.Name), Value: oneLine(f.Value), Known: oneLine(f.Known)})
	}
	return out
}
