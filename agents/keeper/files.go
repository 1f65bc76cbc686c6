package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"fletch/agents/attach"
	"fletch/sandbox"
)

// codeNeverRan is the exit code of a program that was never started, as a
// shell would say it.
const codeNeverRan = 127

// probeTimeout bounds how long another keeper may take to answer.
const probeTimeout = 2 * time.Second

// clear takes away what an earlier keeper of the agent left: its end must not
// be taken for the end of this one.
func (k *keeper) clear() error {
	for _, name := range []string{"exit.json", "last.frame"} {
		if err := os.Remove(filepath.Join(k.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clearing the agent's run directory: %w", err)
		}
	}
	return nil
}

// listen makes the socket. One that is there already is taken away unless a
// keeper answers at it.
func (k *keeper) listen() (net.Listener, error) {
	path := k.home.KeeperSocket(k.order.Agent)
	if conn, err := net.DialTimeout("unix", path, probeTimeout); err == nil {
		_ = conn.Close()
		return nil, errKept
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("taking an old socket away: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for viewers: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listening for viewers: %w", err), l.Close())
	}
	return l, nil
}

// errKept says that the agent has a keeper that lives.
var errKept = &refusal{"another keeper runs this agent", "fletch attach shows it", "keeper-running"}

// exitFile is run/<agent>/exit.json; state.Exit reads it.
type exitFile struct {
	Code   int       `json:"code"`
	Signal string    `json:"signal,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	BootID string    `json:"boot_id"`
}

func (k *keeper) writeExit(e attach.Exit) {
	file := exitFile{Code: e.Code, Signal: e.Signal, Reason: e.Reason, At: e.At, BootID: bootID()}
	if err := writeJSON(filepath.Join(k.dir, "exit.json"), file); err != nil {
		k.log.Error("keeping how the agent ended", "err", err)
	}
}

// withoutValues is a spec fit for the disk: of the environment the names, of
// made-up files where they are.
func withoutValues(s sandbox.Spec) any {
	names := make([]string, 0, len(s.Env))
	for _, e := range s.Env {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	files := make([]string, 0, len(s.Files))
	for _, f := range s.Files {
		files = append(files, f.Target)
	}
	return struct {
		Agent    string          `json:"agent"`
		Store    string          `json:"store"`
		Argv     []string        `json:"argv"`
		Dir      string          `json:"dir"`
		Env      []string        `json:"env_names"`
		Mounts   []sandbox.Mount `json:"mounts"`
		Files    []string        `json:"files"`
		Bin      string          `json:"bin,omitempty"`
		Limits   sandbox.Limits  `json:"limits"`
		Network  sandbox.Network `json:"network"`
		Terminal *sandbox.Size   `json:"terminal"`
	}{s.Agent, s.Store, s.Argv, s.Dir, names, s.Mounts, files, s.Bin, s.Limits, s.Network, s.Terminal}
}

// writeJSON writes value to a file, mode 0600, that is whole and durable or
// not there.
func writeJSON(path string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	_, err = file.Write(append(raw, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if err2 := file.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return nil
}

// oneLine makes text of unknown origin fit for a row: one line of 256 bytes
// at most, without control and format characters.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
	if len(text) > 256 {
		text = strings.ToValidUTF8(text[:253], "") + "…"
	}
	return strings.TrimSpace(text)
}
