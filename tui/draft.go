package tui

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"
)

// draft is what the new-agent form remembers: the last choices, and a task
// that was begun and not started.
type draft struct {
	Task     string `json:"task,omitempty"`
	Name     string `json:"name,omitempty"`
	Repo     string `json:"repo,omitempty"`
	Base     string `json:"base,omitempty"`
	Provider string `json:"provider,omitempty"`
	Engine   string `json:"engine,omitempty"`
	Copies   int    `json:"copies,omitempty"`
}

// maxDraft bounds the file that is read at start.
const maxDraft = 256 << 10

// readDraft reads what was remembered; a file that is not there or not
// readable remembers nothing.
func readDraft(path string) draft {
	if path == "" {
		return draft{}
	}
	file, err := os.Open(path)
	if err != nil {
		return draft{}
	}
	defer func() { _ = file.Close() }()
	var d draft
	if json.NewDecoder(io.LimitReader(file, maxDraft)).Decode(&d) != nil {
		return draft{}
	}
	return d
}

// saveDraft writes what the form remembers, whole or not at all. That it
// cannot be written is no news for a person: the form still has it.
func (m Model) saveDraft() tea.Cmd {
	path, d := m.o.StatePath, m.draft
	if path == "" {
		return nil
	}
	return m.do("keeping the draft", func(context.Context) (tea.Msg, error) {
		body, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		file, err := os.CreateTemp(filepath.Dir(path), ".draft-*")
		if err != nil {
			return nil, nil
		}
		_, err = file.Write(body)
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = os.Rename(file.Name(), path)
		}
		if err != nil {
			_ = os.Remove(file.Name())
		}
		return nil, nil
	})
}
