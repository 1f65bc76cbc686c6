package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// RequestState is where a request stands. Only Pending can be decided.
type RequestState string

// The closed set of request states.
const (
	Pending    RequestState = "pending"
	Allowed    RequestState = "allowed" // on record; the push has no outcome yet
	Pushed     RequestState = "pushed"
	Denied     RequestState = "denied"
	Superseded RequestState = "superseded" // a newer one took its place, or its agent is gone
	Errored    RequestState = "failed"     // allowed, but the push did not happen
)

// Request is something an agent asks a person to let out. It is immutable but
// for State, Outcome and Mail: another commit, destination, lease, remote or
// flag is a new request.
type Request struct {
	ID        RequestID    `json:"id"`
	Agent     AgentID      `json:"agent"`
	Operation string       `json:"operation"` // "push"
	Plan      Plan         `json:"plan_detail"`
	PlanHash  string       `json:"plan"` // Plan.Hash at asking
	Asked     time.Time    `json:"asked"`
	State     RequestState `json:"state"`
	// Mail lists the mailbox ids that wait for this request's answer.
	Mail    []string  `json:"mail,omitempty"`
	Verdict *Verdict  `json:"verdict,omitempty"`
	Outcome string    `json:"outcome,omitempty"` // what the remote or fletch said; sanitised, one line
	Settled time.Time `json:"settled,omitzero"`
}

// Plan is exactly what would be published, as a value with a hash.
type Plan struct {
	Agent   AgentID `json:"agent"`
	Remote  string  `json:"remote"` // URL without user information
	Ref     string  `json:"ref"`    // full: "refs/heads/fletch/amber-river"
	Commit  Commit  `json:"commit"`
	Base    Commit  `json:"base"`
	BaseRef string  `json:"base_ref"`
	// Old is what Ref is at the remote now, the lease; empty when it is new.
	Old   Commit `json:"old,omitempty"`
	Force bool   `json:"force,omitempty"`
	// Replaces counts commits at the remote that a forced push would drop.
	Replaces int          `json:"replaces,omitempty"`
	Commits  []PlanCommit `json:"commits"` // newest first
	Files    []PlanFile   `json:"files"`
	Added    int          `json:"added"`
	Removed  int          `json:"removed"`
	Flags    []Flag       `json:"flags"`
	// Need is the sha256 over the sorted list of objects the push would send.
	Need string `json:"need"`
}

// Hash is the sha256 in hex over the plan's JSON: field order is fixed by the
// type, so equal plans have equal hashes.
func (p Plan) Hash() string {
	body, err := json.Marshal(p)
	if err != nil {
		panic("state: a plan always encodes: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Red returns the flags that need a second chord.
func (p Plan) Red() []Flag {
	var red []Flag
	for _, f := range p.Flags {
		if f.Red {
			red = append(red, f)
		}
	}
	return red
}

// PlanCommit is one commit that would be published. Text fields are the
// agent's words: raw bytes made valid UTF-8, not made safe for a terminal.
type PlanCommit struct {
	ID      Commit   `json:"id"`
	Parents []Commit `json:"parents"`
	Author  string   `json:"author"`
	Email   string   `json:"email"`
	Subject string   `json:"subject"`
	Message string   `json:"message"`
}

// PlanFile is one changed path between base and commit.
type PlanFile struct {
	Path    string `json:"path"` // the agent's bytes, made valid UTF-8
	Old     string `json:"old,omitempty"`
	Change  string `json:"change"` // one letter: A, M, D, R, C, T
	Mode    string `json:"mode"`   // new git mode: "100644"
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
}

// Flag is one fact about a plan that a person should see.
type Flag struct {
	Name string `json:"name"` // stable word for scripts: "unpushed", "force", "merge", "executable"
	Red  bool   `json:"red,omitempty"`
	Text string `json:"text"` // for people, fletch's words; quoted agent words are escaped
}

// Verdict is a person's answer. The zero value denies.
type Verdict struct {
	Request RequestID `json:"request"`
	Allow   bool      `json:"allow"`
	Commit  Commit    `json:"commit,omitempty"` // what was on screen; an allow needs it
	Plan    string    `json:"plan,omitempty"`   // the plan hash that was on screen; an allow needs it
	Accept  []string  `json:"accept,omitempty"` // names of red flags accepted one by one
	Reason  string    `json:"reason,omitempty"` // for the agent, when denied
	By      By        `json:"by"`
}

// By says which process gave a verdict, as the kernel tells it.
type By struct {
	PID     int    `json:"pid"`
	TTY     string `json:"tty,omitempty"`
	Session int    `json:"session,omitempty"`
}

// Patch is the text a person reads before deciding, or an agent's current
// work: commits with their messages, then the diff of exactly the range.
type Patch struct {
	Base    Commit       `json:"base"`
	Head    Commit       `json:"head"`
	Commits []PlanCommit `json:"commits"`
	Files   []PlanFile   `json:"files"`
	// Diff is git's unified diff, the agent's bytes made valid UTF-8.
	Diff string `json:"diff"`
	// Omitted says in fletch's words what Diff leaves out and why ("big.bin:
	// 2.0 GiB, too large to show"); empty when it is whole.
	Omitted []string `json:"omitted,omitempty"`
}
