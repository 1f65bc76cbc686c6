// Package wire holds what hub and clients say to each other: HTTP/1.1 with
// JSON bodies over the hub's unix socket. Protocol numbers are apart from
// fletch's version; a hub speaks its own and the one before.
//
//	GET    /v1/hub                     Status
//	POST   /v1/hub/stop                ends the hub; agents go on
//	GET    /v1/watch                   NDJSON of News: one snapshot, then every event
//	GET    /v1/events?after=&agent=&limit=   []state.Event
//	GET    /v1/head, /v1/verify        Head
//	GET    /v1/survey?dir=             state.Survey
//	POST   /v1/left                    the person closed the dashboard
//	GET    /v1/agents                  []state.Agent
//	POST   /v1/agents                  state.Launch → []state.Agent
//	POST   /v1/agents/{id}/stop        POST …/seen
//	POST   /v1/agents/{id}/resume      Resume
//	DELETE /v1/agents/{id}?force=1
//	POST   /v1/undo                    state.Agent
//	GET    /v1/agents/{id}/changes     state.Patch
//	GET    /v1/agents/{id}/activity    []state.Event
//	GET    /v1/requests                []state.Request
//	GET    /v1/requests/{id}/patch     state.Patch
//	POST   /v1/requests/{id}/verdict   Verdict
package wire

import (
	"fmt"
	"time"

	"fletch/state"
)

// Protocol is the number this build speaks best; [Spoken] tells the others.
const Protocol = 1

// Header carries the protocol number in both directions.
const Header = "Fletch-Protocol"

// Spoken reports whether a peer that says n is understood.
func Spoken(n int) bool { return n == Protocol || (n == Protocol-1 && n > 0) }

// Status is what the hub says of itself.
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Home    string    `json:"home"`
	Agents  int       `json:"agents"`
	Live    int       `json:"live"`
	Store   string    `json:"store"`
	Started time.Time `json:"started"`
}

// News is one line of /v1/watch: the snapshot first, then events.
type News struct {
	Fleet *state.Fleet `json:"fleet,omitempty"`
	Event *state.Event `json:"event,omitempty"`
}

// Resume carries the client's environment to the keeper; it is never stored.
type Resume struct {
	Env  []string `json:"env,omitempty"`
	Cols int      `json:"cols,omitempty"`
	Rows int      `json:"rows,omitempty"`
}

// Verdict is a person's answer with what the push needs of their
// environment: HOME, XDG_CONFIG_HOME, PATH and SSH_AUTH_SOCK. The
// environment is used for that push and never stored.
type Verdict struct {
	state.Verdict
	Env []string `json:"env,omitempty"`
}

// Head is the newest event and its hash.
type Head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Error is what a person is told when something did not work: a stable code,
// one line of what and why, and the way out.
type Error struct {
	Word    string `json:"code"`
	Message string `json:"message"`
	Way     string `json:"hint,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Code is the stable word for scripts.
func (e *Error) Code() string { return e.Word }

// Hint is the way out, empty when there is none to give.
func (e *Error) Hint() string { return e.Way }

// Failure wraps an Error as it stands in a response body and on stderr.
type Failure struct {
	Error Error `json:"error"`
}

// Describe makes an Error of err: code and hint come from the first error in
// its chain that has them.
func Describe(err error) Error {
	described := Error{Word: "failed", Message: err.Error()}
	if coded, ok := find[interface{ Code() string }](err); ok {
		described.Word = coded.Code()
	}
	if hinted, ok := find[interface{ Hint() string }](err); ok {
		described.Way = hinted.Hint()
	}
	return described
}

// find is errors.As for a method set, which also looks through joined errors.
func find[T any](err error) (T, bool) {
	var none T
	switch e := err.(type) { //nolint:errorlint // this is the walk along the chain
	case nil:
		return none, false
	case T:
		return e, true
	case interface{ Unwrap() error }:
		return find[T](e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if found, ok := find[T](inner); ok {
				return found, true
			}
		}
	}
	return none, false
}

// Errorf makes an Error with a code and a way out.
func Errorf(code, hint, format string, args ...any) *Error {
	return &Error{Word: code, Message: fmt.Sprintf(format, args...), Way: hint}
}
