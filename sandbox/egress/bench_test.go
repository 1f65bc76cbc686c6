package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// The yardstick of each benchmark is the same work on a direct loopback
// connection, in the sub-benchmark "direct".

// discard reads every connection to its end and answers with one byte.
func discard(b *testing.B) string {
	b.Helper()
	l := listen(b)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c)
				_, _ = c.Write([]byte{1})
			}()
		}
	}()
	return l.Addr().String()
}

// dialers gives the two ways to server: direct, and through a tunnel to a
// port that an entry names.
func dialers(b *testing.B, server string) map[string]func(b *testing.B) net.Conn {
	w := newWorld(b, server)
	to := netip.MustParseAddrPort(server)
	w.on(int(to.Port()), server)
	return map[string]func(b *testing.B) net.Conn{
		"direct": func(b *testing.B) net.Conn {
			c, err := net.Dial("tcp", server)
			if err != nil {
				b.Fatal(err)
			}
			return c
		},
		"tunnel": func(b *testing.B) net.Conn {
			c, err := net.Dial("tcp", w.addr)
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", server, server)
			if _, err := io.ReadFull(c, make([]byte, len(established))); err != nil {
				b.Fatal(err)
			}
			return c
		},
	}
}

func BenchmarkThroughput(b *testing.B) {
	for name, dial := range dialers(b, discard(b)) {
		b.Run(name, func(b *testing.B) {
			c := dial(b)
			defer c.Close()
			buf := make([]byte, 1<<20)
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				if _, err := c.Write(buf); err != nil {
					b.Fatal(err)
				}
			}
			_ = c.(*net.TCPConn).CloseWrite()
			if _, err := io.ReadFull(c, buf[:1]); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for name, dial := range dialers(b, echo(b)) {
		b.Run(name, func(b *testing.B) {
			c := dial(b)
			defer c.Close()
			buf := make([]byte, 64)
			for b.Loop() {
				if _, err := c.Write(buf); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkConnect(b *testing.B) {
	for name, dial := range dialers(b, echo(b)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = dial(b).Close()
			}
		})
	}
}

// BenchmarkPlainRequest is one small GET on a kept connection.
func BenchmarkPlainRequest(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "ok") }))
	defer server.Close()
	at := server.Listener.Addr().String()
	w := newWorld(b, "a.example")
	w.on(80, at)
	for name, to := range map[string][2]string{"direct": {at, "/"}, "proxy": {w.addr, "http://a.example/"}} {
		b.Run(name, func(b *testing.B) {
			c, err := net.Dial("tcp", to[0])
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			r := bufio.NewReader(c)
			for b.Loop() {
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a.example\r\n\r\n", to[1])
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	var entries []string
	for i := range 60 {
		entries = append(entries, fmt.Sprintf("host%d.example.com", i), fmt.Sprintf("*.zone%d.example", i))
	}
	r, err := Parse(entries)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if v := r.Decide("a.zone59.example", 443); !v.Allowed {
			b.Fatal(v)
		}
	}
}

// The real ownAddrs runs once per connection.
func BenchmarkOwnAddrs(b *testing.B) {
	for b.Loop() {
		if _, err := ownAddrs(); err != nil {
			b.Fatal(err)
		}
	}
}
