// Package egress is the one way out of a sandbox: an HTTP proxy that a
// sealed program finds on its loopback, and the rules it decides by. It knows
// no agent, no engine and no file: a listener is handed to it, and that
// listener is the identity of whoever connects.
//
// This version decides by host and port. It tunnels TLS without looking
// inside, so an allowed host is allowed for reading and for writing alike:
// there is no read-only access to a package registry or a Git host yet, and
// every allowed host is a way out for whatever the program can read. For the
// same reason a host that answers for other names than the one in the TLS
// handshake (domain fronting at some CDNs, Encrypted ClientHello) is reached
// under all of them.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxConns bounds what one sandbox can hold open at a time, and so the
	// descriptors of the keeper. More wait in the kernel's queue.
	maxConns = 512
	// headTimeout bounds how long a client may take to say what it wants.
	headTimeout = 60 * time.Second
	// idleTimeout ends a kept-alive connection that asks for nothing more.
	idleTimeout = 5 * time.Minute
	// lookupTimeout and dialTimeout bound the way to a host; the connection
	// itself has no limit, since an answer may stream for hours.
	lookupTimeout = 30 * time.Second
	dialTimeout   = 15 * time.Second
)

// Line is one line of the audit log. A denied request gives one line; an
// allowed one gives a line when it was decided and, with End set and the same
// ID, another when it is over.
type Line struct {
	ID      uint64    `json:"id"` // pairs the two lines of one request
	At      time.Time `json:"at"`
	Host    string    `json:"host"` // canonical; quoted and cut to 100 bytes where it has no valid form
	Port    int       `json:"port"` // 0 when it could not be read
	Method  string    `json:"method"`
	Allowed bool      `json:"allowed"`
	Rule    string    `json:"rule"`             // the entry that decided, or "default deny"
	Reason  string    `json:"reason,omitempty"` // why it was denied or what broke, one line
	End     bool      `json:"end,omitempty"`
	In      int64     `json:"in"`  // bytes from the host; with End
	Out     int64     `json:"out"` // bytes to the host; with End
}

// Proxy serves the connections of one sandbox. Make one with [New].
type Proxy struct {
	rules atomic.Pointer[Rules]

	logging sync.Mutex // one Line at a time
	log     func(Line)
	lastID  atomic.Uint64

	limit   int // maxConns
	now     func() time.Time
	resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	own     func() ([]netip.Addr, error)
}

// New makes a proxy that decides by rules and tells log what it decided; log
// is called by one goroutine at a time, may be nil, and must not block for
// long: connections wait for it.
func New(rules Rules, log func(Line)) *Proxy {
	p := &Proxy{log: log, limit: maxConns, now: time.Now, resolve: lookup, own: ownAddrs}
	dialer := net.Dialer{Timeout: dialTimeout}
	p.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", to.String())
	}
	p.rules.Store(&rules)
	return p
}

// Replace changes the rules for every request from now on. What is connected
// stays connected.
func (p *Proxy) Replace(rules Rules) { p.rules.Store(&rules) }

// Serve answers on l until ctx ends or l is closed, and returns nil then. It
// closes l and everything that is connected through it, and waits for what it
// started. Another error is why l no longer gives connections.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	open := &conns{all: map[net.Conn]struct{}{}}
	var running sync.WaitGroup
	running.Go(func() {
		<-ctx.Done()
		_ = l.Close() // it may be closed already
		open.close()
	})
	err := p.accept(ctx, l, open, &running)
	cancel()
	running.Wait()
	return err
}

func (p *Proxy) accept(ctx context.Context, l net.Listener, open *conns, running *sync.WaitGroup) error {
	slots := make(chan struct{}, p.limit)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		if err != nil {
			<-slots
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			if !pause(ctx, err) {
				return fmt.Errorf("accepting a connection from the sandbox: %w", err)
			}
			continue
		}
		if !open.add(conn) {
			<-slots
			return nil
		}
		running.Go(func() {
			defer func() { <-slots }()
			defer open.drop(conn)
			s := session{proxy: p, ctx: ctx, open: open, client: conn}
			s.run()
		})
	}
}

// pause waits out an error of Accept that passes, like having no descriptor
// left, and reports whether to go on.
func pause(ctx context.Context, err error) bool {
	var temporary interface{ Temporary() bool }
	if !errors.As(err, &temporary) || !temporary.Temporary() {
		return false
	}
	wait := time.NewTimer(50 * time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return true
}

// write hands a line to the log.
func (p *Proxy) write(l Line) {
	if p.log == nil {
		return
	}
	p.logging.Lock()
	defer p.logging.Unlock()
	l.At = p.now()
	p.log(l)
}

// conns are the open connections of one Serve, so that its end reaches all of
// them whatever they wait for.
type conns struct {
	mu     sync.Mutex
	all    map[net.Conn]struct{}
	closed bool
}

// add takes charge of c, or closes it and says no when it is too late.
func (o *conns) add(c net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		_ = c.Close()
		return false
	}
	o.all[c] = struct{}{}
	return true
}

// drop closes c and forgets it.
func (o *conns) drop(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
	_ = c.Close()
}

func (o *conns) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for c := range o.all {
		_ = c.Close()
	}
}

// lookup resolves a name as it stands: the closing dot keeps the search list
// of resolv.conf out of it.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

// refused is a decision against a request, as opposed to something that
// broke.
type refused struct{ reason string }

func (r *refused) Error() string { return r.reason }

// connect goes to h, which the rules allow: it is resolved once, every answer
// is checked, and one of the checked addresses is dialled. A *refused error
// says that an answer must not be reached.
func (p *Proxy) connect(ctx context.Context, h host, port int) (net.Conn, error) {
	answers := []netip.Addr{h.addr}
	if !h.isAddr() {
		looking, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		var err error
		if answers, err = p.resolve(looking, h.name); err != nil {
			return nil, fmt.Errorf("looking up %s: %s", h, cause(err))
		}
	}
	answers, err := p.rules.Load().checkAddrs(port, answers, p.own)
	if err != nil {
		return nil, &refused{fmt.Sprintf("%s: %s", h, err)}
	}
	var last error
	for _, addr := range answers {
		conn, err := p.dial(ctx, netip.AddrPortFrom(addr, uint16(port)))
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, fmt.Errorf("connecting to %s: %s", h, cause(last))
}

// cause is the innermost reason of a network error: what wraps it names this
// machine's resolver and addresses, which are not for the sandbox to know.
func cause(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		switch {
		case dns.IsNotFound:
			return "no such host"
		case dns.IsTimeout:
			return "the resolver does not answer"
		}
		return "the resolver fails"
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "it does not answer"
	}
	for {
		var op *net.OpError
		var call *os.SyscallError
		switch {
		case errors.As(err, &op):
			err = op.Err
		case errors.As(err, &call):
			err = call.Err
		default:
			return err.Error()
		}
	}
}
