package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"fletch/agents/attach"
	"fletch/state"
)

// ending is what becomes of an agent whose keeper is not there.
func (s *Supervisor) ending(a state.Agent) state.StatusChanged {
	exit, known := s.exited(a.ID)
	switch {
	case known && exit.Reason == "stopped":
		return state.StatusChanged{Status: state.Stopped, Exit: &exit}
	case known && exit.Code == 0 && exit.Signal == "" && exit.Reason == "":
		return state.StatusChanged{Status: state.Exited, Exit: &exit}
	case known:
		return state.StatusChanged{Status: state.Failed, Reason: exitReason(exit), Exit: &exit}
	case s.startedInBoot(a.ID) != bootID():
		return state.StatusChanged{Status: state.Stopped, Reason: "the machine restarted"}
	case a.Status == state.Starting:
		return state.StatusChanged{Status: state.Failed, Reason: "fletch ended while it was starting"}
	}
	return state.StatusChanged{Status: state.Failed, Reason: "its keeper died"}
}

// exited reads the file in which a keeper left how its agent ended.
func (s *Supervisor) exited(id state.AgentID) (state.Exit, bool) {
	var exit state.Exit
	raw, err := os.ReadFile(filepath.Join(s.Home.Run(string(id)), "exit.json"))
	return exit, err == nil && json.Unmarshal(raw, &exit) == nil
}

func exitReason(exit state.Exit) string {
	switch {
	case exit.Reason != "":
		return oneLine(exit.Reason)
	case exit.Signal != "":
		return "ended by signal " + oneLine(exit.Signal)
	}
	return "ended with code " + strconv.Itoa(exit.Code)
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
