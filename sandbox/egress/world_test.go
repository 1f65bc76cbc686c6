package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// No test leaves a goroutine behind: Serve waits for what it started.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// public is what names of the test world resolve to unless they say
// otherwise: an address nobody dials for real, since world.dial goes to the
// test's own servers.
var public = netip.MustParseAddr("93.184.216.34")

// world is a proxy with a made-up network around it.
type world struct {
	*Proxy
	addr string // where the sealed program finds the proxy

	mu     sync.Mutex
	names  map[string][]netip.Addr // missing: public
	hosts  map[int]string          // port -> the test server that stands for every host on it
	dialed []string
	lines  []Line
	heard  chan struct{} // a line was logged
}

// newWorld serves a proxy with these entries until the test ends.
func newWorld(t testing.TB, entries ...string) *world {
	t.Helper()
	r, err := Parse(entries)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{names: map[string][]netip.Addr{}, hosts: map[int]string{}, heard: make(chan struct{}, 1)}
	w.Proxy = New(r, func(l Line) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lines = append(w.lines, l)
		select {
		case w.heard <- struct{}{}:
		default:
		}
	})
	w.resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if strings.HasPrefix(name, "gone.") {
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		if addrs, ok := w.names[name]; ok {
			return addrs, nil
		}
		return []netip.Addr{public}, nil
	}
	w.own = func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("8.8.4.4")}, nil }
	w.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		w.mu.Lock()
		w.dialed = append(w.dialed, to.String())
		server, ok := w.hosts[int(to.Port())]
		w.mu.Unlock()
		if !ok {
			return nil, errors.New("connection refused")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", server)
	}
	l := listen(t)
	w.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return w
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// on stands server in for every host on port.
func (w *world) on(port int, server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[port] = server
}

// web serves h for every host on port 80.
func (w *world) web(t testing.TB, h http.HandlerFunc) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	w.on(80, s.Listener.Addr().String())
}

// secure serves h over TLS for every host on port 443, and gives a client that
// trusts it and goes through the proxy.
func (w *world) secure(t testing.TB, h http.HandlerFunc) *http.Client {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	w.on(443, s.Listener.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return w.client(t, &tls.Config{RootCAs: roots})
}

// client goes through the proxy.
func (w *world) client(t testing.TB, config *tls.Config) *http.Client {
	tr := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr}),
		TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// conn connects to the proxy.
func (w *world) conn(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	// Far beyond what any test takes: a hang becomes a failure.
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// ask sends raw bytes to the proxy and gives all it answers until it hangs up.
func (w *world) ask(t testing.TB, raw string) string {
	t.Helper()
	c := w.conn(t)
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("asking %.60q: %v", raw, err)
	}
	return string(out)
}

// tunnel opens a tunnel to target, which must be let through.
func (w *world) tunnel(t testing.TB, target string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := w.conn(t)
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("CONNECT %s: %v, %v", target, resp, err)
	}
	return c, r
}

// line waits for a line that fits.
func (w *world) line(t testing.TB, fits func(Line) bool) Line {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		w.mu.Lock()
		i := slices.IndexFunc(w.lines, fits)
		if i >= 0 {
			defer w.mu.Unlock()
			return w.lines[i]
		}
		seen := fmt.Sprintf("%+v", w.lines)
		w.mu.Unlock()
		select {
		case <-w.heard:
		case <-limit:
			t.Fatalf("no such line; lines: %s", seen)
		}
	}
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

func ended(l Line) bool  { return l.End }
func denied(l Line) bool { return !l.Allowed }

// echo sends every connection's bytes back until it is closed.
func echo(t testing.TB) string {
	t.Helper()
	l := listen(t)
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = l.Close() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	return l.Addr().String()
}
