package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// session is one connection of the sealed program.
type session struct {
	proxy  *Proxy
	ctx    context.Context // of the Serve that accepted it
	open   *conns
	client net.Conn
	in     *bufio.Reader

	// inside is the host of a tunnel to port 80, within which plain requests
	// are answered; nil outside of one.
	inside *destination
}

// destination is a host and port that was decided on.
type destination struct {
	host host
	port int
}

func (s *session) run() {
	s.in = bufio.NewReader(s.client)
	wait := headTimeout
	for {
		s.deadline(wait)
		req, err := readRequest(s.in)
		if err != nil {
			s.unreadable(err)
			return
		}
		s.deadline(0)
		if !s.serve(req) {
			return
		}
		wait = idleTimeout
	}
}

// serve answers one request and reports whether the connection goes on.
func (s *session) serve(req *request) bool {
	if req.Method != http.MethodConnect {
		return s.forward(req)
	}
	if s.inside != nil {
		s.goodbye(http.StatusBadRequest, "a tunnel has no further tunnel inside")
		return false
	}
	return s.tunnel(req)
}

// deadline bounds what is read from the client next; 0 is no bound.
func (s *session) deadline(wait time.Duration) {
	var at time.Time
	if wait > 0 {
		at = time.Now().Add(wait)
	}
	_ = s.client.SetReadDeadline(at) // fails only on a closed connection, as the read will
}

// unreadable ends a connection whose request could not be read.
func (s *session) unreadable(err error) {
	var fault *malformed
	switch {
	case !errors.As(err, &fault):
		return // the client is gone or never said anything
	case fault == errHeadTooLarge:
		s.goodbye(http.StatusRequestHeaderFieldsTooLarge, err.Error())
	default:
		s.goodbye(http.StatusBadRequest, err.Error())
	}
	if s.inside != nil {
		a := s.begin(http.MethodConnect)
		a.at(s.inside.host, s.inside.port)
		a.denied(defaultRule, "what was spoken on port 80 is not plain HTTP")
	}
}

// goodbye answers with one line and hangs up.
func (s *session) goodbye(status int, text string) {
	answer(s.client, status, "fletch: "+printable(text)+"\n")
	s.linger()
}

// linger says that no more will come and reads on a little: closing on unread
// bytes would take the answer away from the client.
func (s *session) linger() {
	if half, ok := s.client.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		s.deadline(2 * time.Second)
		_, _ = io.CopyN(io.Discard, s.client, 256<<10)
	}
}

// audit is the open record of one request.
type audit struct {
	proxy *Proxy
	line  Line
}

// begin starts the record of a request that names target.
func (s *session) begin(method string) *audit {
	return &audit{proxy: s.proxy, line: Line{ID: s.proxy.lastID.Add(1), Method: printable(method)}}
}

func (a *audit) at(h host, port int) { a.line.Host, a.line.Port = h.String(), port }

func (a *audit) denied(rule, reason string) {
	a.line.Allowed, a.line.Rule, a.line.Reason = false, rule, printable(reason)
	a.proxy.write(a.line)
}

func (a *audit) allowed(rule string) {
	a.line.Allowed, a.line.Rule = true, rule
	a.proxy.write(a.line)
}

// ended closes the record of an allowed request; broken is why it went wrong,
// or nil.
func (a *audit) ended(in, out int64, broken error) {
	a.line.End, a.line.In, a.line.Out = true, in, out
	if broken != nil {
		a.line.Reason = printable(cause(broken))
	}
	a.proxy.write(a.line)
}

// deny logs and answers a decision against a request.
func (s *session) deny(a *audit, rule, reason string) {
	a.denied(rule, reason)
	s.goodbye(http.StatusForbidden, fmt.Sprintf("blocked: %s (rule: %s)", reason, rule))
}

// invalid logs and answers a request whose destination has no valid form.
func (s *session) invalid(a *audit, target string, err error) {
	a.line.Host = fmt.Sprintf("%.100q", target)
	s.deny(a, defaultRule, "not a host: "+err.Error())
}

// reach connects to a destination that a verdict allowed and writes the
// record's first line, or answers the client and gives nil.
func (s *session) reach(a *audit, v Verdict, d destination) net.Conn {
	conn, err := s.proxy.connect(s.ctx, d.host, d.port)
	var no *refused
	switch {
	case errors.As(err, &no):
		s.deny(a, defaultRule, no.reason)
		return nil
	case err != nil:
		a.allowed(v.Rule)
		a.ended(0, 0, err)
		s.goodbye(http.StatusBadGateway, err.Error())
		return nil
	case !s.open.add(conn):
		return nil
	}
	return conn
}

// printable makes text that an outsider had a part in fit for one line: ASCII
// without control bytes, 400 bytes at most.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	if len(text) > 400 {
		text = text[:400] + "..."
	}
	return text
}
