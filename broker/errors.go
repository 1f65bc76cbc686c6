package broker

import (
	"fmt"
	"strings"

	"fletch/state"
)

// The refusals of a gate, for errors.Is. Each has Code and Hint, and so has
// every error that wraps one.
var (
	// ErrSettled: the request is not open any more, or never was.
	ErrSettled = &sentinel{"the request is settled", "request-settled", "fletch requests --all shows what became of it"}
	// ErrMoved: the verdict is about another commit or plan than the
	// request.
	ErrMoved = &sentinel{"the request is not what was on screen", "request-moved", "read the request again: fletch requests"}
	// ErrFlags: a red flag was not accepted by name.
	ErrFlags = &sentinel{"a red flag was not accepted", "flags-not-accepted", "accept each one by name: --accept FLAG"}
	// ErrTaken: allowed, and another waiter has the one Grant. The outcome
	// comes as an event.
	ErrTaken = &sentinel{"allowed; its push is carried out elsewhere", "granted-elsewhere", "fletch requests --all shows its outcome"}
	// ErrClosed: the gate does not run. What is pending stays pending.
	ErrClosed = &sentinel{"the gate is closed", "gate-closed", "run fletch again; nothing was lost"}
	// ErrCrowded: too many messages wait for one request.
	ErrCrowded = &sentinel{"too many wait for one request", "too-many-waiting", "answer the request that is open"}
	// ErrRef: a ref that no agent may push to.
	ErrRef = &sentinel{"not a branch an agent may push to", "ref-refused", "push to the branch that was recorded for the agent"}
)

// sentinel is one kind of refusal.
type sentinel struct{ words, code, hint string }

// Error says what is refused.
func (s *sentinel) Error() string { return s.words }

// Code is the stable word for scripts.
func (s *sentinel) Code() string { return s.code }

// Hint is the way out, one line.
func (s *sentinel) Hint() string { return s.hint }

// refuse gives one kind of refusal the particulars of a case.
func refuse(kind *sentinel, format string, args ...any) error {
	return fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
}

// DeniedError is a person's no.
type DeniedError struct {
	Request state.RequestID
	Reason  string // sanitised, one line; may be empty
}

// Error gives the words an agent is told.
func (e *DeniedError) Error() string {
	if e.Reason == "" {
		return "denied"
	}
	return "denied: " + e.Reason
}

// Code is the stable word for scripts.
func (e *DeniedError) Code() string { return "denied" }

// Hint is the way out, one line.
func (e *DeniedError) Hint() string { return "change what was objected to, commit, push again" }

// SupersededError says that a request ended without an answer.
type SupersededError struct {
	Request state.RequestID
	Why     string // one line: "moved on: 9f3c1e7 is now 77ab901"
}

// Error gives the words an agent is told.
func (e *SupersededError) Error() string { return e.Why }

// Code is the stable word for scripts.
func (e *SupersededError) Code() string { return "superseded" }

// Hint is the way out, one line.
func (e *SupersededError) Hint() string {
	return "the newest push of this branch is the one that waits"
}

// printable keeps a request id that came from outside from carrying anything
// else into a message.
func printable(id state.RequestID) string {
	return Sanitize(string(id), 24)
}

// names lists flags for a message, each once.
func names(flags []state.Flag) string {
	var all []string
	for _, f := range flags {
		all = append(all, Sanitize(f.Name, 40))
	}
	return strings.Join(all, ", ")
}
