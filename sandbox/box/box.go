// Package box is the first process in a Linux sandbox, "fletch box". It runs
// after an engine has built the view and the namespaces, takes away what is
// left, reports what it did, waits for the engine's word and then becomes the
// sealed program. It knows nothing of mounts or engines; everything it is to
// do comes in a [Config] over an inherited descriptor.
//
// It never goes on after a step that failed: the program then does not run.
package box

import (
	"encoding/json"
	"errors"
	"fmt"

	"fletch/sandbox"
)

// ProxyPort is where a sealed program finds its way out, on 127.0.0.1 of its
// private network.
const ProxyPort = 3128

// Config is the order of one start. The engine passes it as JSON in a file
// without a name, so that nothing of it is in argv or the environment.
type Config struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`

	// Places are the mounts the engine asked for. What is not the file it
	// opened, or is writable when it must not be, ends the start.
	Places []Place `json:"places"`
	// Write are the directories and files the program may change. They are
	// granted again, by Landlock, on top of the mounts.
	Write []string `json:"write"`

	Listen   bool `json:"listen"`   // open 127.0.0.1:3128 and hand it out
	Terminal bool `json:"terminal"` // descriptor 0 becomes the controlling terminal
	Keep     int  `json:"keep"`     // descriptors 3… that the program keeps
	Stderr   int  `json:"stderr"`   // the descriptor that becomes number 2; none when zero

	Limits sandbox.Limits `json:"limits"`
	// CountProcesses holds Limits.PIDs by RLIMIT_NPROC, which does nothing
	// for root; there the engine uses a control group.
	CountProcesses bool `json:"count_processes"`
	// BoundMemory holds Limits.Memory by RLIMIT_DATA for each process, where
	// no control group bounds all of them together.
	BoundMemory bool `json:"bound_memory"`
}

// Place is one mount as the host opened it.
type Place struct {
	Path  string `json:"path"`
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Write bool   `json:"write"`
}

// Report is what the box says before it waits for the word to go on, and the
// only thing it says when a step failed.
type Report struct {
	TID      int    `json:"tid"`      // the sealed thread, in the sandbox's count
	Landlock int    `json:"landlock"` // the ABI that is enforced
	Filter   string `json:"filter"`   // sha256 of the system-call filter, hex
	Listen   bool   `json:"listen"`   // a listening socket comes with this message

	Step  string `json:"step,omitempty"`  // the step that failed
	Cause string `json:"cause,omitempty"` // and why
}

// MaxReport bounds a message of the box, in bytes.
const MaxReport = 16 << 10

// Go is the one byte with which the engine lets the program start.
const Go = 'g'

// The steps, in order. The names are for people and tests.
const (
	StepConfig      = "config"
	StepView        = "view"
	StepListener    = "listener"
	StepStreams     = "streams"
	StepProgram     = "program"
	StepLimits      = "limits"
	StepUndumpable  = "undumpable"
	StepPrivileges  = "privileges"
	StepLandlock    = "landlock"
	StepFilter      = "filter"
	StepDescriptors = "descriptors"
	StepExec        = "exec"
)

// Err is the failure a report tells of, nil when there is none.
func (r Report) Err() error {
	if r.Step == "" {
		return nil
	}
	if r.Step == StepProgram {
		return errors.New(r.Cause) // it names the program already
	}
	return fmt.Errorf("%s: %s", r.Step, r.Cause)
}

// Stage is the box with a way for tests to let a step fail.
type Stage struct {
	// Before is called before each step; an error fails that step. It is nil
	// outside tests.
	Before func(step string) error
}

// Main runs the box; args are two descriptor numbers, of a connected
// SOCK_SEQPACKET socket and of the Config. It returns only when the program
// did not start.
func Main(args []string) int { return Stage{}.Main(args) }

func (r Report) bytes() []byte {
	raw, err := json.Marshal(r)
	if err != nil || len(raw) > MaxReport {
		// Only the cause can be long: it holds paths.
		r.Cause = "the cause is too long to say"
		raw, _ = json.Marshal(r) // four short fields
	}
	return raw
}
