package keeper

import (
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"fletch/agents/attach"
	"fletch/agents/term"
	"fletch/sandbox/egress"
)

const (
	// readSize is how much output is taken at once.
	readSize = 32 << 10
	// maxTyped bounds what waits for a program that does not read, in bytes:
	// two of the largest pastes.
	maxTyped = 2 << 20
	// maxBlocked bounds how many hosts are remembered as refused.
	maxBlocked = 1000
)

// listenToProgram takes the program's output until its terminal is closed.
// The transcript gets it first: what was shown must be on record.
func (k *keeper) listenToProgram() {
	buf := make([]byte, readSize)
	lost := false
	for wait := 10 * time.Millisecond; ; {
		n, err := k.near.read(buf)
		if n > 0 {
			wait = 10 * time.Millisecond
			if err := k.record.write(buf[:n]); err != nil && !lost {
				lost = true // once: a full disk would fill the log as well
				k.log.Error("writing the transcript", "err", err)
			}
			_, _ = k.terminal.Write(buf[:n]) // it has no errors
			k.status.output()
		}
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrClosed) || errors.Is(err, io.EOF) || !k.reopened(wait) {
			return
		}
		wait = min(2*wait, time.Second)
	}
}

// reopened is asked when a read failed, which happens while no process has
// the terminal open. A program that lives may open it again; it waits and
// says whether to try.
func (k *keeper) reopened(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-k.ended:
		return false
	case <-timer.C:
		return true
	}
}

// feed writes to the program what is typed and what its terminal answers. A
// program that does not read holds up only this goroutine.
func (k *keeper) feed() {
	for {
		p, ok := k.typed.take()
		if !ok {
			return
		}
		if err := k.near.write(p); errors.Is(err, os.ErrClosed) {
			return
		}
	}
}

// forward hands on what the terminal answers.
func (k *keeper) forward() {
	for reply := range k.terminal.Replies() {
		k.typed.put(reply) // a program that does not read gets no answers
	}
}

// hear passes on what the program tells its terminal.
func (k *keeper) hear() {
	for event := range k.terminal.Events() {
		k.status.event(event)
		switch event := event.(type) {
		case term.Bell:
			k.publish(attach.News{Kind: attach.NewsBell})
		case term.Title:
			k.publish(attach.News{Kind: attach.NewsTitle, Text: event.Text})
		case term.Notification:
			k.publish(attach.News{Kind: attach.NewsNotify, Text: event.Text})
		case term.Status:
		}
	}
}

// noteConnection is the egress proxy's log.
func (k *keeper) noteConnection(l egress.Line) {
	first, err := k.audit.note(l)
	if err != nil {
		k.log.Error("writing the audit log", "err", err)
	}
	if first {
		host := l.Host
		if l.Port > 0 {
			host += ":" + strconv.Itoa(l.Port)
		}
		k.publish(attach.News{Kind: attach.NewsBlocked, Text: oneLine(host)})
	}
}

// queue is what waits to be typed.
type queue struct {
	mu     sync.Mutex
	filled sync.Cond
	chunks [][]byte
	size   int
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.filled.L = &q.mu
	return q
}

// put adds p, which must not be changed after; it reports false when there is
// no room.
func (q *queue) put(p []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.size+len(p) > maxTyped {
		return false
	}
	q.chunks = append(q.chunks, p)
	q.size += len(p)
	q.filled.Signal()
	return true
}

// take waits for a chunk; false when the queue was closed.
func (q *queue) take() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.chunks) == 0 && !q.closed {
		q.filled.Wait()
	}
	if q.closed {
		return nil, false
	}
	p := q.chunks[0]
	q.chunks = q.chunks[1:]
	q.size -= len(p)
	return p, true
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Broadcast()
}
