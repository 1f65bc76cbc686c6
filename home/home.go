// Package home opens FLETCH_HOME and is the one place where every path under
// it is made. It knows no agent, no git and no sandbox: it hands out names.
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path a socket may have before it moves to
// XDG_RUNTIME_DIR. The kernel's limit is 108 bytes with the closing zero
// (unix(7), sun_path); macOS has 104.
const maxSocketPath = 100

// ErrUnusable is wrapped by every refusal of Open: the directory cannot hold
// fletch's state as it is.
var ErrUnusable = errors.New("unusable FLETCH_HOME")

// Home is an opened FLETCH_HOME. The zero value is not usable; see [Open].
type Home struct {
	dir     string // absolute, without links in it
	sockets string // where sockets live: dir, or a directory in XDG_RUNTIME_DIR
}

// Open makes dir (0700) when it is missing and checks that it belongs to the
// caller, is writable, and admits nobody else. runtimeDir is
// XDG_RUNTIME_DIR or empty: sockets move there when a path under dir would
// pass 100 bytes. Errors wrap [ErrUnusable] and name dir and the cause.
func Open(dir, runtimeDir string) (Home, error) {
	refuse := func(err error) (Home, error) {
		return Home{}, fmt.Errorf("opening %s: %w: %w", dir, ErrUnusable, err)
	}
	if !filepath.IsAbs(dir) {
		return refuse(errors.New("not an absolute path"))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return refuse(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return refuse(err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return refuse(err)
	}
	if err := private(info); err != nil {
		return refuse(err)
	}
	h := Home{dir: real, sockets: real}
	if err := h.placeSockets(runtimeDir); err != nil {
		return refuse(err)
	}
	for _, sub := range []string{"workspaces", "rpc", "run", "pools", "quarantine", "audit", "trash", "agents", "providers"} {
		if err := os.MkdirAll(filepath.Join(real, sub), 0o700); err != nil {
			return refuse(err)
		}
	}
	return h, nil
}

func private(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("not a directory")
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("mode %04o lets others in (chmod 700)", perm)
	}
	return owned(info)
}

// Dir is the directory itself, absolute and free of links.
func (h Home) Dir() string { return h.dir }

// State is the event store.
func (h Home) State() string { return h.join("state.db") }

// Head is the second file that names the newest event's hash, so that a cut
// tail of the store shows.
func (h Home) Head() string { return h.join("state.head") }

// Config is the user's settings file.
func (h Home) Config() string { return h.join("config.toml") }

// Profiles is the directory of the user's agent profiles, <name>.toml each.
func (h Home) Profiles() string { return h.join("agents") }

// Providers is the directory of the user's own provider files, <name>.toml
// each; one named like a built-in takes its place.
func (h Home) Providers() string { return h.join("providers") }

// HubLock is the file that the running hub holds with flock.
func (h Home) HubLock() string { return h.join("run", "hub.lock") }

// StartLock is the file that a client holds while it starts a hub.
func (h Home) StartLock() string { return h.join("run", "start.lock") }

// HubLog is the hub's own log, JSON lines.
func (h Home) HubLog() string { return h.join("run", "hub.log") }

// HubSocket is where the hub answers, mode 0600.
func (h Home) HubSocket() string { return filepath.Join(h.sockets, "hub.sock") }

// Run is the directory of one agent's keeper: socket, transcript, spec, exit.
func (h Home) Run(agent string) string { return h.join("run", agent) }

// RunRoot holds every agent's Run directory and the hub's own files.
func (h Home) RunRoot() string { return h.join("run") }

// KeeperSocket is where an agent's keeper answers, mode 0600.
func (h Home) KeeperSocket(agent string) string {
	if h.sockets == h.dir {
		return h.join("run", agent, "keeper.sock")
	}
	return filepath.Join(h.sockets, agent+".sock")
}

// Workspace is an agent's checkout: the agent can write all of it.
func (h Home) Workspace(agent string) string { return h.join("workspaces", agent) }

// Workspaces is the directory of every checkout.
func (h Home) Workspaces() string { return h.join("workspaces") }

// Mailbox is the directory that holds Requests and Responses of an agent.
func (h Home) Mailbox(agent string) string { return h.join("rpc", agent) }

// Requests is the half of a mailbox that the agent writes.
func (h Home) Requests(agent string) string { return h.join("rpc", agent, "requests") }

// Responses is the half of a mailbox that only the hub writes.
func (h Home) Responses(agent string) string { return h.join("rpc", agent, "responses") }

// AgentHome is the private home directory an agent sees as its own: never
// under /tmp, since some CLIs refuse that.
func (h Home) AgentHome(agent string) string { return h.join("run", agent, "home") }

// Pools is the directory of object stores that agents borrow from.
func (h Home) Pools() string { return h.join("pools") }

// Quarantine is the host-owned repository that receives an agent's commits.
func (h Home) Quarantine(agent string) string { return h.join("quarantine", agent+".git") }

// Audit is an agent's log of network connections, JSON lines.
func (h Home) Audit(agent string) string { return h.join("audit", agent+".jsonl") }

// Trash holds what was removed, for undo.
func (h Home) Trash() string { return h.join("trash") }

func (h Home) join(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}
