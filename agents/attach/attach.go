// Package attach is how a screen reaches whoever looks at it: the protocol on
// an agent's keeper.sock, its client and its server. It knows no agent, no
// engine and no key binding; it carries frames one way and input the other.
//
// A message is a big-endian uint32, the size of its payload (1 MiB at most),
// one byte for its type, and the payload. What changes with every frame is
// packed (frame.go); the rest is JSON, so that it can grow.
//
// A connection begins with a hello from each side. Then the server sends the
// whole screen and, whenever something changed and the frame before was
// acknowledged, what changed since. So a slow viewer sees fewer frames, but
// always new ones, and delays nobody. The role "hub" gets news and no frames.
package attach

import (
	"fmt"
	"time"

	"fletch/agents/term"
)

// Protocol is the newest version of the protocol spoken here. The one before
// it is spoken as well.
const Protocol = 1

// firstProtocol is the oldest version there ever was.
const firstProtocol = 1

// Roles of a connection.
const (
	RoleViewer = "viewer" // gets frames and news, may type
	RoleHub    = "hub"    // gets news only
)

// Hello opens a connection.
type Hello struct {
	Protocol int    `json:"protocol"` // the newest version its sender speaks
	Role     string `json:"role"`
	// Cols and Rows ask for a size of the screen; zero leaves it as it is.
	Cols int `json:"cols,omitempty"`
	Rows int `json:"rows,omitempty"`
}

// Message is what a connection brings: a FrameMsg, Exit, News or History.
//
//sumtype:decl
type Message interface{ message() }

type (
	// FrameMsg is what changed on the screen since the last FrameMsg; the
	// first one is whole.
	FrameMsg struct{ term.Frame }
	// Exit says that the program ended; nothing but the end of the connection
	// follows.
	Exit struct {
		Code   int       `json:"code"`
		Signal string    `json:"signal,omitempty"`
		Reason string    `json:"reason,omitempty"`
		At     time.Time `json:"at"`
	}
	// History answers AskHistory: rows above the screen, the newest first.
	// Line.Y and From count from the newest row, which is 0; Total is how many
	// there were when it was answered.
	History struct {
		From  int
		Total int
		Lines []term.Line
	}
)

func (FrameMsg) message() {}
func (Exit) message()     {}
func (News) message()     {}
func (History) message()  {}

// News is what a keeper has to tell besides the screen. Its words are the
// agent's or about the agent: one line each, made fit for showing.
type News struct {
	Kind   string    `json:"kind"`             // one of the News constants
	At     time.Time `json:"at"`               // when it happened
	Status string    `json:"status,omitempty"` // with NewsStatus
	Text   string    `json:"text,omitempty"`   // the title, the notification, the blocked host and port
	Facts  []Fact    `json:"facts,omitempty"`  // with NewsAttested
	PID    int       `json:"pid,omitempty"`    // with NewsStarted: the sealed program as the host counts
}

// Kinds of News.
const (
	NewsStarted  = "started"
	NewsStatus   = "status"
	NewsBlocked  = "blocked" // the first time a host was refused
	NewsNotify   = "notify"
	NewsTitle    = "title"
	NewsBell     = "bell"
	NewsAttested = "attested"
)

// Fact is one row of what a sandbox's start ended in.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Known string `json:"known"`
}

// Refusal is why the other side does not want to talk.
type Refusal struct {
	What string `json:"error"`
	Way  string `json:"hint,omitempty"`
	Word string `json:"code"`
}

func (r *Refusal) Error() string { return r.What }

// Hint is the way out, for the line after the error.
func (r *Refusal) Hint() string { return r.Way }

// Code is the stable word for scripts.
func (r *Refusal) Code() string { return r.Word }

// agree finds the version that both sides speak: each speaks the one it names
// and the one before.
func agree(theirs int) (int, *Refusal) {
	oldest := max(firstProtocol, Protocol-1)
	switch version := min(theirs, Protocol); {
	case theirs < oldest:
		return 0, &Refusal{
			What: fmt.Sprintf("this agent's keeper speaks attach protocol %d and you speak %d", Protocol, theirs),
			Way:  "close this fletch and start the newer one",
			Word: "protocol-too-old",
		}
	case version < theirs-1:
		return 0, &Refusal{
			What: fmt.Sprintf("this agent's keeper is older: it speaks attach protocol %d and you speak %d", Protocol, theirs),
			Way:  "stop the agent and continue it: its new keeper will be of this version",
			Word: "protocol-too-new",
		}
	default:
		return version, nil
	}
}
