package tui

import (
	"context"
	"sync"

	"fletch/agents/attach"
	"fletch/state"
)

// Screens opens the terminals of agents.
type Screens interface {
	// Open connects to an agent's screen. For an agent that has ended it
	// gives a Screen that shows the last frame that was saved. It does not
	// ask for a size.
	Open(ctx context.Context, id state.AgentID) (Screen, error)
}

// Screen is one agent's terminal: what *attach.Conn is.
type Screen interface {
	// Next waits for news: the newest frame, never a queue of them. One
	// goroutine at a time calls it.
	Next(ctx context.Context) (attach.Message, error)
	Input(p []byte) error
	Paste(text string) error
	Resize(cols, rows int) error
	// AskHistory asks for n rows above the screen; from 0 is the newest.
	AskHistory(from, n int) error
	Close() error
}

// queued is how many things may be on their way to a screen that does not
// take them. What comes on top is dropped: a keeper reads at once or is gone.
const queued = 1024

// keyboard hands what the person does to a screen, in order, without ever
// making Update wait.
type keyboard struct {
	todo chan func(Screen) error
	done chan struct{}
	once sync.Once
}

// newKeyboard starts the one goroutine that speaks to s. It ends, and closes
// s, with close.
func newKeyboard(s Screen) *keyboard {
	k := &keyboard{todo: make(chan func(Screen) error, queued), done: make(chan struct{})}
	go func() {
		defer close(k.done)
		defer func() { _ = s.Close() }()
		for act := range k.todo {
			if act(s) != nil {
				break // the end of the connection is told by Next
			}
		}
		for range k.todo { // whoever still types must not wait
		}
	}()
	return k
}

// send queues one thing; false when the queue is full.
func (k *keyboard) send(act func(Screen) error) bool {
	select {
	case k.todo <- act:
		return true
	default:
		return false
	}
}

// close ends the goroutine when it has sent what is queued.
func (k *keyboard) close() { k.once.Do(func() { close(k.todo) }) }
