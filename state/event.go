package state

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event is one thing that happened. Seq and At are given by the store.
type Event struct {
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"`
	Agent AgentID   `json:"agent,omitempty"` // empty: about the fleet itself
	Body  Body      `json:"-"`
}

// Body is what happened: a closed set, each with a stable kind on disk.
//
//sumtype:decl
type Body interface{ kind() string }

type (
	// Created adds an agent to the fleet.
	Created struct {
		Agent Agent `json:"agent"`
	}
	// StatusChanged moves an agent to another status.
	StatusChanged struct {
		Status Status `json:"status"`
		Reason string `json:"reason,omitempty"`
		Note   string `json:"note,omitempty"`
		Exit   *Exit  `json:"exit,omitempty"`
	}
	// Prepared records what making the workspace found out.
	Prepared struct {
		Base        Base   `json:"base"`
		Remote      string `json:"remote,omitempty"`
		NotIncluded int    `json:"not_included"`
	}
	// Sealed records what the sandbox of a start really was.
	Sealed struct {
		Attestation Attestation `json:"attestation"`
	}
	// Measured records the size of an agent's work.
	Measured struct {
		Work Work `json:"work"`
	}
	// Removed takes an agent out of the fleet; its work is in the trash.
	Removed struct {
		Trash string `json:"trash"` // name of the entry
		Agent Agent  `json:"agent"` // as it was, so that Restored can bring it back
	}
	// Restored undoes a Removed.
	Restored struct {
		Agent Agent `json:"agent"`
	}
	// Asked puts a request before the person.
	Asked struct {
		Request Request `json:"request"`
	}
	// Joined adds another mailbox id to a request that is already open.
	Joined struct {
		Request RequestID `json:"request"`
		Mail    string    `json:"mail"`
	}
	// Decided records the answer. It is durable before anything is done.
	Decided struct {
		Verdict Verdict `json:"verdict"`
	}
	// Withdrawn ends a request that nobody answered.
	Withdrawn struct {
		Request RequestID `json:"request"`
		Why     string    `json:"why"`
	}
	// Published records that the remote has the commit.
	Published struct {
		Request RequestID `json:"request"`
		Outcome string    `json:"outcome"`
	}
	// PublishFailed records that an allowed push did not happen.
	PublishFailed struct {
		Request RequestID `json:"request"`
		Outcome string    `json:"outcome"`
	}
	// Noticed is one line for an agent's activity: a refusal, a blocked
	// host, a finding.
	Noticed struct {
		Kind string `json:"kind"` // "blocked-host", "sandbox", "refused", "git", "info"
		Text string `json:"text"`
	}
	// Seen clears "done, not yet seen".
	Seen struct{}
	// Left marks that the person closed the last dashboard.
	Left struct{}
)

func (Created) kind() string       { return "created" }
func (StatusChanged) kind() string { return "status" }
func (Prepared) kind() string      { return "prepared" }
func (Sealed) kind() string        { return "sealed" }
func (Measured) kind() string      { return "measured" }
func (Removed) kind() string       { return "removed" }
func (Restored) kind() string      { return "restored" }
func (Asked) kind() string         { return "asked" }
func (Joined) kind() string        { return "joined" }
func (Decided) kind() string       { return "decided" }
func (Withdrawn) kind() string     { return "withdrawn" }
func (Published) kind() string     { return "published" }
func (PublishFailed) kind() string { return "publish-failed" }
func (Noticed) kind() string       { return "noticed" }
func (Seen) kind() string          { return "seen" }
func (Left) kind() string          { return "left" }

// decoders turns a kind on disk back into its body.
var decoders = map[string]func([]byte) (Body, error){
	"created":        decode[Created],
	"status":         decode[StatusChanged],
	"prepared":       decode[Prepared],
	"sealed":         decode[Sealed],
	"measured":       decode[Measured],
	"removed":        decode[Removed],
	"restored":       decode[Restored],
	"asked":          decode[Asked],
	"joined":         decode[Joined],
	"decided":        decode[Decided],
	"withdrawn":      decode[Withdrawn],
	"published":      decode[Published],
	"publish-failed": decode[PublishFailed],
	"noticed":        decode[Noticed],
	"seen":           decode[Seen],
	"left":           decode[Left],
}

func decode[B Body](data []byte) (Body, error) {
	var body B
	err := json.Unmarshal(data, &body)
	return body, err
}

// Kind is the stable word for e's body: "created", "asked", …
func (e Event) Kind() string {
	if e.Body == nil {
		return ""
	}
	return e.Body.kind()
}

type envelope struct {
	Seq   uint64          `json:"seq"`
	At    time.Time       `json:"at"`
	Agent AgentID         `json:"agent,omitempty"`
	Kind  string          `json:"kind"`
	Body  json.RawMessage `json:"body"`
}

// MarshalJSON gives the form that is on disk and on the wire:
// {"seq","at","agent","kind","body"}.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Body == nil {
		return nil, fmt.Errorf("encoding event %d: it has no body", e.Seq)
	}
	body, err := json.Marshal(e.Body)
	if err != nil {
		return nil, fmt.Errorf("encoding event %d: %w", e.Seq, err)
	}
	return json.Marshal(envelope{e.Seq, e.At, e.Agent, e.Body.kind(), body})
}

// UnmarshalJSON reads what MarshalJSON wrote; an unknown kind is an error,
// since a fold that skips news would show something untrue.
func (e *Event) UnmarshalJSON(data []byte) error {
	var env envelope
	if err := json.Unmarshal(data, &env); err != nil {
		return fmt.Errorf("decoding an event: %w", err)
	}
	read, ok := decoders[env.Kind]
	if !ok {
		return fmt.Errorf("decoding event %d: unknown kind %q", env.Seq, env.Kind)
	}
	body, err := read(env.Body)
	if err != nil {
		return fmt.Errorf("decoding event %d (%s): %w", env.Seq, env.Kind, err)
	}
	*e = Event{env.Seq, env.At, env.Agent, body}
	return nil
}
