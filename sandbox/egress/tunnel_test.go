package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestTunnelCarriesTLSToTheNamedHost(t *testing.T) {
	w := newWorld(t, "example.com")
	client := w.secure(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, r.Proto+" "+r.Host)
	})
	resp, err := client.Get("https://example.com/x")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(body) != "HTTP/2.0 example.com" {
		t.Errorf("got %q, want HTTP/2 end to end", body)
	}
	if got := w.dials(); len(got) != 1 || got[0] != "93.184.216.34:443" {
		t.Errorf("dialled %v, want the one checked address", got)
	}
	client.CloseIdleConnections()
	end := w.line(t, ended)
	if end.Host != "example.com" || end.Port != 443 || end.Rule != "example.com" || end.Method != "CONNECT" || end.In == 0 || end.Out == 0 || !end.Allowed {
		t.Errorf("the closing line is %+v", end)
	}
	if first := w.line(t, func(l Line) bool { return !l.End }); first.ID != end.ID || !first.Allowed || first.At.IsZero() {
		t.Errorf("the opening line is %+v", first)
	}
}

func TestDeniedTunnelIsAnsweredAndLogged(t *testing.T) {
	w := newWorld(t, "allowed.com", "*.wild.com", "!bad.wild.com")
	tests := []struct{ target, rule, host string }{
		{"evil.example:443", "default deny", "evil.example"},
		{"EVIL.example.:443", "default deny", "evil.example"},
		{"allowed.com.evil.com:443", "default deny", "allowed.com.evil.com"},
		{"notallowed.com:443", "default deny", "notallowed.com"},
		{"bad.wild.com:443", "!bad.wild.com", "bad.wild.com"},
		{"allowed.com:22", "default deny", "allowed.com"},
		{"allowed.com:25", "default deny", "allowed.com"},
		{"allowed.com:5432", "default deny", "allowed.com"},
		{"127.0.0.1:443", "default deny", "127.0.0.1"},
		{"[::ffff:1.2.3.4]:443", "default deny", "1.2.3.4"},
		{"169.254.169.254:80", "default deny", "169.254.169.254"},
		{"2130706433:80", "default deny", `"2130706433:80"`},
		{"0x7f.1:443", "default deny", `"0x7f.1:443"`},
		{"evil.com%00.allowed.com:443", "default deny", ""},
		{"allowed.com", "default deny", `"allowed.com"`},
		{"user@allowed.com:443", "default deny", `"user@allowed.com:443"`},
	}
	for _, tt := range tests {
		w.mu.Lock()
		w.lines = nil
		w.mu.Unlock()
		got := w.ask(t, "CONNECT "+tt.target+" HTTP/1.1\r\nHost: allowed.com:443\r\n\r\n")
		if tt.host == "" { // not even a request
			if !strings.HasPrefix(got, "HTTP/1.1 4") {
				t.Errorf("%s: answered %q", tt.target, got)
			}
			continue
		}
		body := got[strings.Index(got, "\r\n\r\n")+4:]
		if !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.HasPrefix(body, "fletch: ") || !strings.Contains(body, tt.rule) || strings.Count(body, "\n") != 1 {
			t.Errorf("%s: answered %q", tt.target, got)
		}
		if l := w.line(t, denied); l.Rule != tt.rule || l.Host != tt.host || l.Reason == "" || l.End {
			t.Errorf("%s: logged %+v", tt.target, l)
		}
	}
	if got := w.dials(); len(got) > 0 {
		t.Errorf("dialled %v", got)
	}
}

func TestBytesThatAreNoRequestReachNoHost(t *testing.T) {
	w := newWorld(t, "allowed.com")
	for _, raw := range []string{
		"CONNECT evil.com\x00.allowed.com:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT allowed.com:443 HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n",
		"CONNECT allowed.com:443 HTTP/1.1\r\nHost: a\r\nX: a\rY: b\r\n\r\n",
		"CONNECT allowed.com:443 HTTP/1.1\r\nBad Header: a\r\n\r\n",
		"GET /only/a/path HTTP/1.1\r\nHost: allowed.com\r\n\r\n",
		"GET https://allowed.com/ HTTP/1.1\r\nHost: allowed.com\r\n\r\n",
		"GET ftp://allowed.com/ HTTP/1.1\r\nHost: allowed.com\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x05\x01\x00\n\n",
		"POST http://allowed.com/ HTTP/1.1\r\nHost: allowed.com\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"POST http://allowed.com/ HTTP/1.1\r\nHost: allowed.com\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
		"\r\n\r\n",
	} {
		if got := w.ask(t, raw); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			t.Errorf("%q: answered %q", raw, got)
		}
	}
	huge := "GET http://allowed.com/ HTTP/1.1\r\nX: " + strings.Repeat("a", maxRequestHead)
	if got := w.ask(t, huge); !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("a huge header: answered %.100q", got)
	}
	if got := w.dials(); len(got) > 0 {
		t.Errorf("dialled %v", got)
	}
}

func TestHandshakeForAnotherHostIsCutOff(t *testing.T) {
	w := newWorld(t, "allowed.com", "*.allowed.com")
	sentinel := make(chan struct{}, 16)
	w.secure(t, func(http.ResponseWriter, *http.Request) { sentinel <- struct{}{} })
	for _, name := range []string{"evil.com", "www.allowed.com", "allowed.com.evil.com", ""} {
		w.mu.Lock()
		w.lines = nil
		w.mu.Unlock()
		c, r := w.tunnel(t, "allowed.com:443")
		err := tls.Client(joined{c, r}, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		if err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("handshake for %q: %v, want access denied", name, err)
		}
		if l := w.line(t, denied); l.Host != "allowed.com" || !strings.Contains(l.Reason, "handshake names") && !strings.Contains(l.Reason, "names no host") {
			t.Errorf("handshake for %q: logged %+v", name, l)
		}
	}
	c, r := w.tunnel(t, "allowed.com:443")
	if err := tls.Client(joined{c, r}, &tls.Config{ServerName: "ALLOWED.com", InsecureSkipVerify: true}).Handshake(); err != nil {
		t.Errorf("the right name in upper case: %v", err)
	}
}

// joined is a connection whose first bytes may be in a buffer.
type joined struct {
	net.Conn
	r io.Reader
}

func (j joined) Read(p []byte) (int, error) { return j.r.Read(p) }

func TestWhatIsNotTLSIsCutOffOnPort443(t *testing.T) {
	w := newWorld(t, "allowed.com")
	w.on(443, echo(t))
	for _, spoken := range []string{"SSH-2.0-OpenSSH_9.2\r\n", "GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n", "\x16\x03\x01\x00\x05hello"} {
		c, r := w.tunnel(t, "allowed.com:443")
		_, _ = io.WriteString(c, spoken)
		got, _ := io.ReadAll(r)
		if bytes.Contains(got, []byte(spoken)) {
			t.Errorf("%q reached the host", spoken)
		}
	}
	if l := w.line(t, denied); l.Reason != errNotTLS.Error() {
		t.Errorf("logged %+v", l)
	}
}

func TestPortThatAnEntryNamesIsNotLookedInto(t *testing.T) {
	w := newWorld(t, "git.example:22", "127.0.0.1:8443", "old.example:80")
	server := echo(t)
	for _, target := range []struct {
		to   string
		port int
	}{{"git.example:22", 22}, {"127.0.0.1:8443", 8443}, {"old.example:80", 80}} {
		w.on(target.port, server)
		c, r := w.tunnel(t, target.to)
		_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
		_ = c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(r); string(got) != "SSH-2.0-x\r\n" || err != nil {
			t.Errorf("%s: got %q, %v", target.to, got, err)
		}
	}
}

func TestExactLoopbackEntryReachesARealServer(t *testing.T) {
	server := echo(t)
	w := newWorld(t, server)
	p := New(rules(t, server), nil) // with the real dialer and interfaces
	w.mu.Lock()
	w.dial, w.own, w.resolve = p.dial, p.own, p.resolve
	w.mu.Unlock()
	c, r := w.tunnel(t, server)
	_, _ = io.WriteString(c, "hello")
	_ = c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(r); string(got) != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if l := w.line(t, ended); l.In != 5 || l.Out != 5 {
		t.Errorf("counted %d in, %d out", l.In, l.Out)
	}
}

func TestEveryAnswerOfTheResolverIsChecked(t *testing.T) {
	w := newWorld(t, "*", "!9.9.9.9", "127.0.0.1:8443", "*:8443")
	w.on(8443, echo(t))
	bad := map[string][]string{
		"loopback.example": {"127.0.0.1"},
		"mixed.example":    {"93.184.216.34", "10.0.0.1"},
		"mapped.example":   {"::ffff:169.254.169.254"},
		"nat64.example":    {"64:ff9b::a9fe:a9fe"},
		"6to4.example":     {"2002:7f00:1::"},
		"metadata.example": {"fd00:ec2::254"},
		"azure.example":    {"168.63.129.16"},
		"denied.example":   {"9.9.9.9"},
		"mine.example":     {"8.8.4.4"},
		"zoned.example":    {"fe80::1%eth0"},
		"empty.example":    {},
	}
	for name, addrs := range bad {
		w.mu.Lock()
		w.lines = nil
		w.names[name] = nil
		for _, a := range addrs {
			w.names[name] = append(w.names[name], netip.MustParseAddr(a))
		}
		w.mu.Unlock()
		if got := w.ask(t, "CONNECT "+name+":443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
			t.Errorf("%s: answered %q", name, got)
		}
		if l := w.line(t, denied); l.Host != name || l.Reason == "" {
			t.Errorf("%s: logged %+v", name, l)
		}
	}
	if got := w.dials(); len(got) > 0 {
		t.Fatalf("dialled %v", got)
	}
	// The name stands for what is listed by address and port: as good as that.
	w.tunnel(t, "loopback.example:8443")
	if got := w.dials(); len(got) != 1 || got[0] != "127.0.0.1:8443" {
		t.Errorf("dialled %v", got)
	}
}

func TestAnswersAreCheckedAgainForEveryConnection(t *testing.T) {
	w := newWorld(t, "rebind.example:8443")
	w.on(8443, echo(t))
	w.tunnel(t, "rebind.example:8443")
	w.mu.Lock()
	w.names["rebind.example"] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	w.mu.Unlock()
	if got := w.ask(t, "CONNECT rebind.example:8443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("answered %q", got)
	}
}

func TestHostThatCannotBeReachedIsABadGateway(t *testing.T) {
	w := newWorld(t, "*")
	for _, raw := range []string{
		"CONNECT gone.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT down.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://down.example/ HTTP/1.1\r\nHost: down.example\r\n\r\n",
	} {
		w.mu.Lock()
		w.lines = nil
		w.mu.Unlock()
		if got := w.ask(t, raw); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "fletch: ") {
			t.Errorf("%q: answered %q", raw, got)
		}
		if l := w.line(t, ended); !l.Allowed || l.Reason == "" {
			t.Errorf("logged %+v", l)
		}
	}
}

func TestFaultsOfTheNetworkNameNothingOfThisMachine(t *testing.T) {
	local := &net.TCPAddr{IP: net.IPv4(192, 168, 7, 7), Port: 40000}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Err: "no such host", Name: "a.example", Server: "192.168.7.7:53", IsNotFound: true}, "no such host"},
		{&net.DNSError{Err: "i/o timeout", Server: "192.168.7.7:53", IsTimeout: true}, "the resolver does not answer"},
		{&net.DNSError{Err: "read udp 192.168.7.7:1->192.168.7.7:53: refused", Server: "192.168.7.7:53"}, "the resolver fails"},
		{&net.OpError{Op: "read", Net: "tcp", Source: local, Err: &os.SyscallError{Syscall: "read", Err: syscall.ECONNRESET}}, "connection reset by peer"},
		{fmt.Errorf("after 3 bytes: %w", &net.OpError{Op: "write", Source: local, Err: &net.OpError{Op: "read", Source: local, Err: io.EOF}}), "EOF"},
		{&net.OpError{Op: "dial", Source: local, Err: os.ErrDeadlineExceeded}, "it does not answer"},
	} {
		if got := cause(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestNextAddressIsTriedWhenOneDoesNotAnswer(t *testing.T) {
	w := newWorld(t, "two.example:8443")
	server := echo(t)
	w.mu.Lock()
	w.names["two.example"] = []netip.Addr{netip.MustParseAddr("2606:4700::1111"), public}
	dial := w.dial
	w.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.Addr().Is6() {
			return nil, errors.New("network is unreachable")
		}
		return dial(ctx, to)
	}
	w.mu.Unlock()
	w.on(8443, server)
	w.tunnel(t, "two.example:8443")
}

func TestSameVerdictForARelayInsideTheSandbox(t *testing.T) {
	w := newWorld(t, "allowed.com")
	direct := w.ask(t, "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n")
	relayed := w.ask(t, "CONNECT evil.example:443 HTTP/1.1\r\nHost: allowed.com\r\nProxy-Authorization: Basic eDp5\r\nX-Forwarded-For: 127.0.0.1\r\nVia: 1.1 fletch\r\n\r\n")
	if direct != relayed || !strings.HasPrefix(direct, "HTTP/1.1 403 ") {
		t.Errorf("direct %q, relayed %q", direct, relayed)
	}
}
