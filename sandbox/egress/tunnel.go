package egress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// established is the answer to a CONNECT that is let through.
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// tunnel answers a CONNECT. On port 443 the client must begin with a TLS
// handshake that names the very host it asked for; on port 80 it must speak
// plain HTTP to that host, request by request. Where an entry names the port
// itself (other than 443), or the host is an address, what is spoken is not
// looked at. It reports whether plain requests follow inside the tunnel.
func (s *session) tunnel(req *request) bool {
	a := s.begin(http.MethodConnect)
	h, port, err := parseAuthority(req.target, 0)
	if err != nil {
		s.invalid(a, req.target, err)
		return false
	}
	a.at(h, port)
	v := s.proxy.rules.Load().decide(h, port)
	if !v.Allowed {
		s.deny(a, v.Rule, v.Reason)
		return false
	}
	d := destination{h, port}
	if port == 80 && !v.exactPort {
		s.inside = &d
		_, err := io.WriteString(s.client, established)
		return err == nil
	}
	host := s.reach(a, v, d)
	if host == nil {
		return false
	}
	defer s.open.drop(host)
	if _, err := io.WriteString(s.client, established); err != nil {
		a.allowed(v.Rule)
		a.ended(0, 0, err)
		return false
	}
	var first []byte
	if port == 443 && !h.isAddr() {
		s.deadline(headTimeout)
		raw, name, err := readHello(s.in)
		s.deadline(0)
		if err != nil && !tlsFault(err) {
			err = fmt.Errorf("no TLS handshake came: %s", cause(err))
		}
		if err == nil && !strings.EqualFold(name, h.name) {
			err = &refused{"the TLS handshake names " + printable(name) + ", the tunnel " + h.name}
		}
		if err != nil {
			a.denied(defaultRule, err.Error())
			s.alert(raw)
			return false
		}
		first = raw
	}
	a.allowed(v.Rule)
	in, out, err := s.splice(host, first)
	a.ended(in, out, err)
	return false
}

// tlsFault reports whether err is about what was spoken, not about the
// connection.
func tlsFault(err error) bool {
	return errors.Is(err, errNotTLS) || errors.Is(err, errBadHello) || errors.Is(err, errNoSNI)
}

// alert tells a client that spoke TLS, in TLS, why it is cut off: fatal,
// access_denied (RFC 8446, 6.2).
func (s *session) alert(spoken []byte) {
	if bytes.HasPrefix(spoken, []byte{22, 3}) {
		_, _ = s.client.Write([]byte{21, 3, 3, 0, 2, 2, 49}) // it is cut off anyway
	}
}

// splice passes bytes both ways until both ends are done, beginning with
// first, which was read from the client already. Two TCP connections are
// joined in the kernel where it can do that.
func (s *session) splice(host net.Conn, first []byte) (in, out int64, err error) {
	if n := s.in.Buffered(); n > 0 {
		more, _ := s.in.Peek(n) // what is buffered is there
		first = append(first, more...)
	}
	var back sync.WaitGroup
	var backErr error
	back.Go(func() { in, backErr = pass(s.client, host) })
	written, err := host.Write(first)
	out = int64(written)
	if err == nil {
		var n int64
		n, err = pass(host, s.client)
		out += n
	} else {
		_ = host.Close()
	}
	back.Wait()
	if err == nil {
		err = backErr
	}
	return in, out, err
}

// pass copies one direction. At the end of it the other side is told so and
// may go on talking; when it breaks, both directions end.
func pass(to, from net.Conn) (int64, error) {
	n, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
		return n, nil
	}
	_ = to.Close()
	_ = from.Close()
	return n, err
}
