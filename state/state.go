// Package state holds what fletch knows: the nouns, the events that change
// them, and Fleet.Apply, the one fold that both the store and the screen use.
// It knows no disk, no clock and no socket.
package state

import (
	"regexp"
	"time"
)

// AgentID names an agent for life: 8 characters of a-z and 2-7.
type AgentID string

// RequestID is a decimal number, counted up by the gate and never used again
// within one store.
type RequestID string

// Commit is a full object name in hex: 40 digits (SHA-1) or 64 (SHA-256).
type Commit string

var commitForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Valid reports whether c has the form of a full object name.
func (c Commit) Valid() bool { return commitForm.MatchString(string(c)) }

// Short is the first seven digits, for places where the full id stands
// nearby.
func (c Commit) Short() string {
	if len(c) < 7 {
		return string(c)
	}
	return string(c[:7])
}

// Status is what an agent is doing, as far as fletch can tell.
type Status string

// The closed set of statuses; [Status.Live] and [Status.NeedsPerson] divide it.
const (
	Starting Status = "starting" // workspace and sandbox are being made
	Working  Status = "working"
	Waiting  Status = "waiting" // the agent's own program asks the person something
	Idle     Status = "idle"
	Done     Status = "done"    // finished a turn that nobody has looked at yet
	Stopped  Status = "stopped" // ended by the person, or the machine restarted
	Exited   Status = "exited"  // its program ended by itself with code 0
	Failed   Status = "failed"  // its program, keeper or sandbox broke; Agent.Reason says how
)

// Statuses lists every status in the order the documentation gives them.
var Statuses = []Status{Starting, Working, Waiting, Idle, Done, Stopped, Exited, Failed}

// Live reports whether a keeper should be running for an agent in this state.
func (s Status) Live() bool {
	switch s {
	case Starting, Working, Waiting, Idle, Done:
		return true
	case Stopped, Exited, Failed:
		return false
	}
	return false
}

// Agent is one coding agent: a program in a sandbox with its own checkout.
type Agent struct {
	ID       AgentID `json:"id"`
	Name     string  `json:"name"` // unique among agents that are not removed
	Group    string  `json:"group,omitempty"`
	Provider string  `json:"provider"`
	Engine   string  `json:"engine"` // kept for life: "native"
	Tier     string  `json:"tier"`   // "worktree" for native
	Network  string  `json:"network"`
	Profile  string  `json:"profile,omitempty"` // whose settings it was started with
	Status   Status  `json:"status"`
	// Reason says why Status is what it is, for failed and stopped; one line.
	Reason string `json:"reason,omitempty"`
	// Note is what is being done while Status is starting ("checking out 40 %").
	Note string `json:"note,omitempty"`
	Exit *Exit  `json:"exit,omitempty"`

	Repo        string   `json:"repo"`             // the user's repository, absolute
	Remote      string   `json:"remote,omitempty"` // pinned at spawn, without user information
	Branch      string   `json:"branch"`           // where it may push: "fletch/<name>"
	Base        Base     `json:"base"`
	Workspace   string   `json:"workspace"`
	NotIncluded int      `json:"not_included"` // uncommitted files in Repo at spawn
	Task        string   `json:"task,omitempty"`
	Command     []string `json:"command,omitempty"`

	Created time.Time `json:"created"`
	Since   time.Time `json:"since"` // when Status last changed
	Work    Work      `json:"work"`
}

// Base is the pinned fork-point every diff of an agent is measured against.
type Base struct {
	Ref    string    `json:"ref"` // "main"
	Commit Commit    `json:"commit"`
	At     time.Time `json:"at"` // when it was read
	// Stale is empty when the remote answered; otherwise why the local tip
	// was taken instead.
	Stale string `json:"stale,omitempty"`
}

// Work is the size of an agent's change against its base, committed and not.
type Work struct {
	Head    Commit `json:"head,omitempty"`
	Commits int    `json:"commits"`
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// Exit is how an agent's program ended, from the keeper's exit file.
type Exit struct {
	Code   int       `json:"code"`
	Signal string    `json:"signal,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	BootID string    `json:"boot_id"`
}

// Launch is what a person asks for when starting agents.
type Launch struct {
	Repo     string   `json:"repo"` // absolute
	Base     string   `json:"base,omitempty"`
	Provider string   `json:"provider"`
	Engine   string   `json:"engine,omitempty"`
	Profile  string   `json:"profile,omitempty"`
	Name     string   `json:"name,omitempty"`
	Task     string   `json:"task,omitempty"`
	Copies   int      `json:"copies,omitempty"` // 0 means 1; 9 at most
	Command  []string `json:"command,omitempty"`
	Cols     int      `json:"cols,omitempty"` // size of its screen; 80×24 when zero
	Rows     int      `json:"rows,omitempty"`
	// Env is the client's environment. It goes to the keeper and is never
	// stored.
	Env []string `json:"env,omitempty"`
}

// Claim is one guarantee of an engine.
type Claim struct {
	Name   string `json:"name"`             // "writes confined"
	Held   string `json:"held"`             // "enforced", "partial" or "unenforced"
	Reason string `json:"reason,omitempty"` // required unless enforced
}

// Fact is one row of an attestation: what was really set up, and how that is
// known.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Known string `json:"known"` // "observed" (/proc), "reported" (box), "tested" (a probe that must fail)
}

// Attestation is what a sandbox's start ended in.
type Attestation struct {
	Engine string    `json:"engine"`
	At     time.Time `json:"at"`
	Facts  []Fact    `json:"facts"`
}
