package broker

import (
	"errors"
	"fmt"
	"strings"

	"fletch/state"
)

// The refusals of a gate. Each error that wraps one of them also has Code and
// Hint.
var (
	// ErrSettled: the request is not open any more, or never was.
	ErrSettled = errors.New("the request is settled")
	// ErrMoved: the verdict is about another commit or plan than the
	// request.
	ErrMoved = errors.New("the request is not what was on screen")
	// ErrFlags: a red flag was not accepted by name.
	ErrFlags = errors.New("a red flag was not accepted")
	// ErrTaken: allowed, and another waiter has the one Grant. The outcome
	// comes as an event.
	ErrTaken = errors.New("allowed; its push is carried out elsewhere")
	// ErrClosed: the gate does not run. What is pending stays pending.
	ErrClosed = errors.New("the gate is closed")
	// ErrCrowded: too many messages wait for one request.
	ErrCrowded = errors.New("too many wait for one request")
	// ErrRef: a ref that no agent may push to.
	ErrRef = errors.New("not a branch an agent may push to")
)

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

// refusal is a sentinel with the particulars of one case.
type refusal struct {
	kind error
	text string
}

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

func (r *refusal) Error() string { return r.kind.Error() + ": " + r.text }
func (r *refusal) Unwrap() error { return r.kind }

// Code is the stable word for scripts.
func (r *refusal) Code() string {
	switch r.kind {
	case ErrSettled:
		return "request-settled"
	case ErrMoved:
		return "request-moved"
	case ErrFlags:
		return "flags-not-accepted"
	case ErrCrowded:
		return "too-many-waiting"
	case ErrRef:
		return "ref-refused"
	default:
		return "refused"
	}
}

// Hint is the way out, one line.
func (r *refusal) Hint() string {
	switch r.kind {
	case ErrSettled:
		return "fletch requests --all shows what became of it"
	case ErrMoved:
		return "read the request again: fletch requests"
	case ErrFlags:
		return "accept each one by name: --accept FLAG"
	case ErrCrowded:
		return "answer the request that is open"
	case ErrRef:
		return "push to the branch that was recorded for the agent"
	default:
		return ""
	}
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
