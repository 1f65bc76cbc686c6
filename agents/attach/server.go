package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"fletch/agents/term"
)

const (
	// frameInterval is the shortest time between two frames to one viewer.
	// After a quiet time the first one goes out at once.
	frameInterval = time.Second / 30
	// echoInterval takes its place for echoTime after a viewer typed: who
	// types into flowing output must not wait for the echo.
	echoInterval = 8 * time.Millisecond
	echoTime     = 100 * time.Millisecond
	// helloTimeout bounds how long a connection may take to say what it is.
	helloTimeout = 10 * time.Second
	// farewellTimeout bounds how long the end of the program waits for viewers
	// that do not read.
	farewellTimeout = time.Second
	// maxViewers bounds the connections of one keeper.
	maxViewers = 64
	// maxUnheard bounds the news kept for a hub that is not there.
	maxUnheard = 64
)

// Program is what viewers act on. Its methods must not block: a viewer that
// types waits for them.
type Program interface {
	// Input is typed to the program.
	Input(p []byte)
	// Resize gives the terminal and the program a size that was asked for.
	Resize(cols, rows int)
	// Signal sends "TERM", "KILL" or "INT".
	Signal(name string)
}

// Server shows one terminal to many viewers. Make one with [NewServer].
type Server struct {
	terminal *term.Terminal
	program  Program
	admit    func(net.Conn) error // nil error for a peer that may connect

	mu      sync.Mutex
	viewers map[*viewer]struct{}
	closing bool
	latest  map[string]News // what a hub must know, by kind
	unheard []News          // what no hub has heard yet
}

// NewServer makes a server for t; what viewers type and ask goes to p. It
// becomes the one reader of t.Changed.
func NewServer(t *term.Terminal, p Program) *Server {
	return &Server{
		terminal: t, program: p, admit: checkPeer,
		viewers: map[*viewer]struct{}{}, latest: map[string]News{},
	}
}

// Serve answers on l until ctx ends or l is closed, and returns nil then. It
// closes l and every connection, and waits for what it started. Peers of
// another user or in other namespaces are refused.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.follow(ctx) })
	running.Go(func() {
		<-ctx.Done()
		_ = l.Close() // it may be closed already
		s.drop()
	})
	err := s.accept(ctx, l, &running)
	cancel()
	running.Wait()
	return err
}

func (s *Server) accept(ctx context.Context, l net.Listener, running *sync.WaitGroup) error {
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case err != nil:
			// Out of descriptors, most likely: it passes.
			if !pause(ctx, 100*time.Millisecond) {
				return nil
			}
			continue
		}
		running.Go(func() { s.serve(conn) })
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// follow tells every viewer that the screen may have changed.
func (s *Server) follow(ctx context.Context) {
	for {
		select {
		case <-s.terminal.Changed():
		case <-ctx.Done():
			return
		}
		s.each(func(v *viewer) { v.tell(func(v *viewer) { v.dirty = true }) })
	}
}

func (s *Server) each(f func(*viewer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v := range s.viewers {
		f(v)
	}
}

// drop ends every connection at once.
func (s *Server) drop() {
	s.each(func(v *viewer) { _ = v.conn.Close() })
}

// Publish tells n to everybody who listens. What a hub must know is kept for
// the next one that connects.
func (s *Server) Publish(n News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n.Kind {
	case NewsStatus, NewsTitle, NewsAttested, NewsStarted:
		s.latest[n.Kind] = n
	}
	heard := false
	for v := range s.viewers {
		heard = heard || v.role == RoleHub
		v.publish(n)
	}
	if !heard && (n.Kind == NewsBlocked || n.Kind == NewsNotify) && len(s.unheard) < maxUnheard {
		s.unheard = append(s.unheard, n)
	}
}

// Farewell shows every viewer the last screen, tells it how the program
// ended and closes the connections. Nobody can connect any more. It returns
// when all of them have it, after a second at most.
func (s *Server) Farewell(e Exit) {
	s.mu.Lock()
	s.closing = true
	var left []*viewer
	for v := range s.viewers {
		left = append(left, v)
		_ = v.conn.SetWriteDeadline(time.Now().Add(farewellTimeout))
		v.tell(func(v *viewer) { v.exit = &e })
	}
	s.mu.Unlock()
	for _, v := range left {
		<-v.done
	}
}

// serve is the life of one connection.
func (s *Server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	in := &reader{from: conn}
	hello, answer, err := s.greet(conn, in)
	if err != nil {
		refuse(conn, err)
		return
	}
	v := &viewer{server: s, conn: conn, role: hello.Role, wake: make(chan struct{}, 1), done: make(chan struct{}), dirty: true}
	if !s.join(v) {
		refuse(conn, &Refusal{What: "the agent has ended or has too many viewers", Word: "no-room"})
		return
	}
	defer s.leave(v)
	_, err = conn.Write(answer)
	if err != nil {
		close(v.done)
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	s.unhurry(conn)
	if hello.Cols > 0 && hello.Rows > 0 {
		s.program.Resize(hello.Cols, hello.Rows)
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		v.write()
		close(v.done)
		_ = conn.Close() // so that reading ends
	})
	v.read(in)
	v.tell(func(v *viewer) { v.gone = true })
	_ = conn.Close() // so that writing ends
	writing.Wait()
}

// unhurry takes the write deadline of the hello away, but not the one of a
// farewell.
func (s *Server) unhurry(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		_ = conn.SetWriteDeadline(time.Time{})
	}
}

// greet checks who connects, agrees on a version and gives the answer to send.
func (s *Server) greet(conn net.Conn, in *reader) (hello Hello, answer []byte, err error) {
	if err := s.admit(conn); err != nil {
		return hello, nil, &Refusal{What: err.Error(), Word: "peer-refused"}
	}
	k, payload, err := in.next()
	if err != nil {
		return hello, nil, err
	}
	if k != kindHello {
		return hello, nil, malformed("it does not begin with a hello")
	}
	if err := decodeJSON(payload, &hello); err != nil {
		return hello, nil, err
	}
	version, refusal := agree(hello.Protocol)
	if refusal != nil {
		return hello, nil, refusal
	}
	if hello.Role != RoleViewer && hello.Role != RoleHub {
		return hello, nil, malformed(fmt.Sprintf("an unknown role %.40q", hello.Role))
	}
	answer, err = jsonMessage(kindHello, Hello{Protocol: version, Role: "keeper"})
	return hello, answer, err
}

// refuse says why, as well as it goes: the peer may be gone.
func refuse(conn net.Conn, err error) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		refusal = &Refusal{What: err.Error(), Word: "bad-hello"}
	}
	if b, err := jsonMessage(kindRefusal, refusal); err == nil {
		_, _ = conn.Write(b)
	}
}

func (s *Server) join(v *viewer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.viewers) >= maxViewers {
		return false
	}
	s.viewers[v] = struct{}{}
	if v.role == RoleHub {
		for _, kind := range []string{NewsStarted, NewsAttested, NewsTitle, NewsStatus} {
			if n, ok := s.latest[kind]; ok {
				v.publish(n)
			}
		}
		for _, n := range s.unheard {
			v.publish(n)
		}
		s.unheard = nil
	}
	return true
}

func (s *Server) leave(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.viewers, v)
}
