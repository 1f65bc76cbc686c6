package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"fletch/agents/term"
)

const (
	// inputChunk is the size of one input message.
	inputChunk = 64 << 10
	// sendTimeout bounds a write to the keeper, which always reads.
	sendTimeout = 5 * time.Second
	// dialTimeout bounds the hellos when the context does not.
	dialTimeout = 10 * time.Second
)

// isSignal reports whether a viewer may send the signal of that name.
func isSignal(name string) bool { return name == "TERM" || name == "KILL" || name == "INT" }

// Conn is a connection to a keeper. Next belongs to one goroutine; everything
// else may be called from any.
type Conn struct {
	conn     net.Conn
	pid      int
	protocol int
	in       reader
	frames   assembler
	unseen   bool  // the last frame is not acknowledged yet
	ended    error // why Next has nothing more to give

	sending sync.Mutex
}

// Dial connects to the keeper at socket. A *Refusal says that the keeper
// does not want to talk; any other error that there is none.
func Dial(ctx context.Context, socket string, h Hello) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connecting to the agent's keeper: %w", err)
	}
	c := &Conn{conn: conn, pid: peerPID(conn), in: reader{from: conn}}
	if err := c.greet(ctx, h); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) greet(ctx context.Context, h Hello) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	b, err := jsonMessage(kindHello, h)
	if err == nil {
		_, err = c.conn.Write(b)
	}
	// A keeper that refuses may have closed its end before all was written:
	// what it said counts.
	k, payload, readErr := c.in.next()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("greeting the agent's keeper: %w", ctx.Err())
	case readErr != nil:
		return fmt.Errorf("greeting the agent's keeper: %w", errors.Join(err, readErr))
	}
	switch k {
	case kindHello:
		var answer Hello
		if err := decodeJSON(payload, &answer); err != nil {
			return fmt.Errorf("greeting the agent's keeper: %w", err)
		}
		if answer.Protocol > h.Protocol || answer.Protocol < h.Protocol-1 {
			return fmt.Errorf("greeting the agent's keeper: it chose protocol %d of %d", answer.Protocol, h.Protocol)
		}
		c.protocol = answer.Protocol
		return nil
	case kindRefusal:
		refusal := &Refusal{}
		if err := decodeJSON(payload, refusal); err != nil {
			return fmt.Errorf("greeting the agent's keeper: %w", err)
		}
		return refusal
	case kindSnapshot, kindRows, kindCursor, kindMode, kindTitle, kindInput, kindPaste, kindResize, kindExit, kindNews, kindHistory, kindSignal, kindSeen:
	}
	return fmt.Errorf("greeting the agent's keeper: %w", malformed("it does not begin with a hello"))
}

// Next waits for news: the newest frame, never a queue of them, since the
// keeper sends another frame only when Next is called again. When ctx ends it
// returns its error and can be called again; after any other error, EOF for a
// keeper that is gone, it cannot.
func (c *Conn) Next(ctx context.Context) (Message, error) {
	if c.ended != nil {
		return nil, c.ended
	}
	if c.unseen {
		// A keeper that is ending may not take it: what it sent before can
		// still be read.
		_ = c.send(message(kindSeen, nil))
		c.unseen = false
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_ = c.conn.SetReadDeadline(time.Time{})
		stop := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })
		m, err := c.next()
		stop()
		switch {
		case err == nil:
			_, c.unseen = m.(FrameMsg)
			return m, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			// By this call's context or, late, by the one before.
			continue
		case errors.Is(err, syscall.ECONNRESET):
			err = io.EOF // the keeper ended before it read all of ours
		}
		c.ended = fmt.Errorf("listening to the agent's keeper: %w", err)
		return nil, c.ended
	}
}

func (c *Conn) next() (Message, error) {
	for {
		k, payload, err := c.in.next()
		if err != nil {
			return nil, err
		}
		m, err := c.understand(k, payload)
		if err != nil || m != nil {
			return m, err
		}
	}
}

// understand turns what arrived into a Message, or nil when it is only a part
// of one.
func (c *Conn) understand(k kind, payload []byte) (Message, error) {
	switch k {
	case kindSnapshot, kindRows, kindCursor, kindMode, kindTitle:
		f, complete, err := c.frames.take(k, payload)
		if err != nil || !complete {
			return nil, err
		}
		return FrameMsg{f}, nil
	case kindExit:
		var e Exit
		err := decodeJSON(payload, &e)
		return e, err
	case kindNews:
		var n News
		err := decodeJSON(payload, &n)
		return n, err
	case kindHistory:
		return decodeHistory(payload)
	case kindHello, kindRefusal, kindInput, kindPaste, kindResize, kindSignal, kindSeen:
	}
	return nil, malformed("a kind that no keeper sends")
}

// Input types p to the program, as it is.
func (c *Conn) Input(p []byte) error {
	for chunk := range slices.Chunk(p, inputChunk) {
		if err := c.send(message(kindInput, chunk)); err != nil {
			return fmt.Errorf("typing to the agent: %w", err)
		}
	}
	return nil
}

// Paste gives text to the program as one paste, in brackets when it knows
// them. More than a MiB is refused.
func (c *Conn) Paste(text string) error {
	if len(text) > maxMessage {
		return &Refusal{
			What: fmt.Sprintf("pasting %d bytes: %d at most", len(text), maxMessage),
			Way:  "put it into a file of the workspace",
			Word: "paste-too-long",
		}
	}
	if err := c.send(message(kindPaste, []byte(text))); err != nil {
		return fmt.Errorf("pasting to the agent: %w", err)
	}
	return nil
}

// Resize asks for a size of the screen; whoever asked last gets it, within
// the bounds of [term.ClampSize]. The frames say what became of it.
func (c *Conn) Resize(cols, rows int) error {
	cols, rows = term.ClampSize(cols, rows)
	if err := c.send(message(kindResize, appendUint(appendUint(nil, cols), rows))); err != nil {
		return fmt.Errorf("resizing the agent's screen: %w", err)
	}
	return nil
}

// AskHistory asks for n rows above the screen, 500 at most; from 0 is the
// newest. A History answers.
func (c *Conn) AskHistory(from, n int) error {
	from, n = min(max(from, 0), maxHistory), min(max(n, 0), maxHistoryRows)
	if err := c.send(message(kindHistory, appendUint(appendUint(nil, from), n))); err != nil {
		return fmt.Errorf("asking for the agent's history: %w", err)
	}
	return nil
}

// Signal sends "TERM", "KILL" or "INT". TERM and KILL stop the agent: TERM
// becomes KILL after five seconds.
func (c *Conn) Signal(name string) error {
	if !isSignal(name) {
		return fmt.Errorf("signalling the agent: %q is none of TERM, KILL and INT", name)
	}
	if err := c.send(message(kindSignal, []byte(name))); err != nil {
		return fmt.Errorf("signalling the agent: %w", err)
	}
	return nil
}

// PID is the keeper's process as the kernel tells it; 0 where it does not.
func (c *Conn) PID() int { return c.pid }

// Close ends the connection. The agent goes on.
func (c *Conn) Close() error { return c.conn.Close() }

// send writes a message whole. After a write that did not go through the
// connection is closed, since half a message may be on its way.
func (c *Conn) send(b []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	_, err := c.conn.Write(b)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		_ = c.conn.Close()
	}
	return err
}
