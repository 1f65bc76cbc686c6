// Package sandbox says what a sealed program may see and do, and what an
// engine that seals it must offer. It knows no agent, no git and no screen;
// the engines themselves are in packages of their own.
//
// Zero values are the safe ones: a Spec without mounts sees an empty world,
// and the zero Network reaches nothing.
package sandbox

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
)

// Engine seals programs. It is a true plug point: one contract suite, in
// enginetest, runs against every engine and the fake.
type Engine interface {
	// Name is the word people and scripts use: "native", "docker".
	Name() string
	// Tier is what the engine can promise at most.
	Tier() Tier
	// Claims lists what the engine guarantees and how far each one holds.
	Claims() []Claim
	// Probe finds out by doing whether the engine works here. The error is a
	// [*Refusal] with cause and fix when it does not.
	Probe(ctx context.Context) error
	// Start seals s.Argv and runs it. When it returns an error the program's
	// first instruction never ran. ctx bounds the start only; the box lives
	// until its program ends or Remove is called.
	Start(ctx context.Context, s Spec) (Box, error)
	// Run seals s.Argv without a terminal and waits for it; cancelling ctx
	// kills all of it. A program that ends with another code than zero gives
	// an [*ExitError]. s.Terminal and s.Network must be zero: a one-shot
	// has neither.
	Run(ctx context.Context, s Spec, stdin io.Reader, stdout, stderr io.Writer) error
	// List names what earlier boxes of this store left behind.
	List(ctx context.Context, store string) ([]Leftover, error)
	// Remove takes such a leftover away; one that is gone already is no error.
	Remove(ctx context.Context, l Leftover) error
}

// Box is one running sealed program.
type Box interface {
	// Attach is the near end of its terminal: reads give its output, writes
	// are typed to it. It is nil without Spec.Terminal and closed by Remove.
	Attach() *os.File
	// Resize sets the terminal's size and lets the program know.
	Resize(size Size) error
	// Signal goes to the sealed program itself.
	Signal(sig os.Signal) error
	// PID is the sealed program's first process as the host counts, for
	// looking into /proc.
	PID() int
	// Listener is the socket in the sandbox's private network on
	// 127.0.0.1:3128: whatever the program asks of a network arrives here.
	// It is nil unless Spec.Network is NetworkProxy or NetworkOpen.
	Listener() net.Listener
	// Attestation is what was really set up.
	Attestation() Attestation
	// Wait returns how the program ended, once all of it is gone. Every
	// caller gets the same answer.
	Wait() Exit
	// Remove kills what still runs and frees what the box holds. It may be
	// called more than once.
	Remove() error
}

// Spec is everything one sealed program may see and do.
type Spec struct {
	Agent string   // the agent's id: labels and the host name
	Store string   // the store's uuid: two homes never touch each other's boxes
	Argv  []string // Argv[0] is looked up on the PATH of Env inside
	Dir   string   // working directory inside; must be in view
	Env   []string // all of its environment, NAME=value

	Mounts []Mount // in order; later ones lie on top of earlier ones
	Files  []File  // small read-only files made up for this box
	// Bin is a directory of programs shown read-only as /run/fletch/bin and
	// put first on the PATH of login shells. Empty: none.
	Bin string

	Limits   Limits
	Network  Network
	Terminal *Size // nil: no terminal

	// Keep are open files handed on as descriptors 3, 4, … Only Run takes
	// them; every other descriptor is closed before the program starts.
	Keep []*os.File
}

// Mount shows a host path at the same or another path inside.
type Mount struct {
	Source string `json:"source"` // absolute, resolved without following links
	Target string `json:"target"` // absolute; empty means Source
	Write  bool   `json:"write"`
	// Optional leaves the mount out when Source does not exist. Otherwise a
	// missing source is refused, never created.
	Optional bool `json:"optional,omitempty"`
}

// File is a small file made up for one box.
type File struct {
	Target  string `json:"target"`
	Content []byte `json:"content"`
	Exec    bool   `json:"exec,omitempty"`
}

// Network says what a program may reach. The zero value is nothing.
type Network string

// The closed set of networks.
const (
	NetworkNone  Network = ""
	NetworkProxy Network = "proxy" // only through the keeper's proxy and its rules
	NetworkOpen  Network = "open"  // the same private network with the rule "*"
)

// Limits bound what a program may use. Zero fields take the defaults of
// [Limits.Or].
type Limits struct {
	PIDs      int   `json:"pids"`       // processes and threads; 2048 when zero
	Files     int   `json:"files"`      // open files per process; 4096 when zero
	TmpBytes  int64 `json:"tmp_bytes"`  // size of the private /tmp; 2 GiB when zero
	Memory    int64 `json:"memory"`     // bytes; 0 is unlimited
	FileBytes int64 `json:"file_bytes"` // largest file it may write; 0 is unlimited
	CPUSecs   int   `json:"cpu_secs"`   // CPU seconds; 0 is unlimited
}

// Or fills zero fields with the defaults.
func (l Limits) Or() Limits {
	if l.PIDs == 0 {
		l.PIDs = 2048
	}
	if l.Files == 0 {
		l.Files = 4096
	}
	if l.TmpBytes == 0 {
		l.TmpBytes = 2 << 30
	}
	return l
}

// Size is a terminal's size in cells.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Tier is one of the three promises a project may ask for.
type Tier string

// The tiers, weakest first.
const (
	TierDirect    Tier = "direct"
	TierWorktree  Tier = "worktree"
	TierContainer Tier = "container"
)

// Claim is one guarantee of an engine; Reason is required unless it is
// enforced.
type Claim struct {
	Name   string `json:"name"`
	Held   string `json:"held"` // "enforced", "partial" or "unenforced"
	Reason string `json:"reason,omitempty"`
}

// Attestation is what a start ended in, row by row.
type Attestation struct {
	Facts []Fact `json:"facts"`
}

// Fact is one row: Known says whether it was "observed" from outside,
// "reported" by box, or "tested" by a probe that had to fail.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Known string `json:"known"`
}

// Exit is how a sealed program ended.
type Exit struct {
	Code   int    // as a shell would say it; 128+n after signal n
	Signal string // "killed", empty when it ended by itself
	Err    error  // why nothing is known, else nil
}

// Leftover is what an earlier box left behind.
type Leftover struct {
	Agent string
	What  string // "cgroup", "container"
	Name  string
}

// Refusal is an engine that does not work here: Cause says why, Fix how to
// mend it. Both are one line for a person.
type Refusal struct {
	Engine string
	Cause  string
	Fix    string
}

func (r *Refusal) Error() string { return r.Cause }

// Hint is the way out, for the line after the error.
func (r *Refusal) Hint() string { return r.Fix }

// Code is the stable word for scripts.
func (r *Refusal) Code() string { return "engine-unavailable" }

// ExitError is a one-shot that ended with another code than zero.
type ExitError struct {
	Exit   Exit
	Stderr string // the end of what it wrote there, when nobody else took it
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("ended with code %d", e.Exit.Code)
	}
	return fmt.Sprintf("ended with code %d: %s", e.Exit.Code, e.Stderr)
}
