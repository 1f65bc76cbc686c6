package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
)

func TestPlainRequestGoesOutWithoutTheProxysHeaders(t *testing.T) {
	w := newWorld(t, "example.com")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Proxy-Authenticate", "Basic")
		rw.Header().Set("X-Kept", "yes")
		fmt.Fprintf(rw, "%s %s %s %v", r.Method, r.Host, r.RequestURI, r.Header)
	})
	got := w.ask(t, "GET http://EXAMPLE.com./a%2fb?c=%20d HTTP/1.1\r\nHost: example.COM:80\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\n"+
		"Connection: close, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nUser-Agent: test\r\n\r\n")
	if !strings.Contains(got, "GET example.com /a%2fb?c=%20d map[Connection:[close] Http2-Settings:[x] User-Agent:[test]]") {
		t.Errorf("the host got %q", got)
	}
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.Contains(got, "X-Kept: yes\r\n") || strings.Contains(got, "Proxy-") {
		t.Errorf("the client got %q", got)
	}
	if l := w.line(t, ended); l.Host != "example.com" || l.Port != 80 || l.Method != "GET" || l.In == 0 || l.Out == 0 || l.Reason != "" {
		t.Errorf("logged %+v", l)
	}
}

func TestPlainRequestIsDecidedByTheSameRules(t *testing.T) {
	w := newWorld(t, "allowed.com", "*.wild.com", "!bad.wild.com", "dev.example:3000")
	w.on(3000, echo(t))
	for target, rule := range map[string]string{
		"http://evil.example/":           "default deny",
		"http://bad.wild.com/":           "!bad.wild.com",
		"http://allowed.com:22/":         "default deny",
		"http://allowed.com:443/":        "allowed.com",
		"http://169.254.169.254/latest":  "default deny",
		"http://[::1]/":                  "default deny",
		"http://user:pw@allowed.com/":    "default deny",
		"http://0x7f000001/":             "default deny",
		"http://allowed.com.evil.com/":   "default deny",
		"http://allowed.com:80:80/":      "",
		"http://allowed.com\\.evil.com/": "",
		"http:///":                       "default deny",
	} {
		got := w.ask(t, "GET "+target+" HTTP/1.1\r\nHost: allowed.com\r\n\r\n")
		if rule == "" {
			if !strings.HasPrefix(got, "HTTP/1.1 400 ") {
				t.Errorf("%s: answered %q", target, got)
			}
			continue
		}
		if !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, "(rule: "+rule+")\n") {
			t.Errorf("%s: answered %q", target, got)
		}
	}
	if got := w.ask(t, "GET http://allowed.com:443/ HTTP/1.1\r\nHost: allowed.com:443\r\n\r\n"); !strings.Contains(got, "plain HTTP on port 443") {
		t.Errorf("plain HTTP past the TLS check: answered %q", got)
	}
	if got := w.dials(); len(got) > 0 {
		t.Errorf("dialled %v", got)
	}
}

func TestHostHeaderForAnotherHostIsRefused(t *testing.T) {
	w := newWorld(t, "allowed.com", "other.com")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, "reached "+r.Host) })
	for _, hosts := range []string{"Host: evil.com\r\n", "Host: other.com\r\n", "Host: allowed.com:8080\r\n", "Host: allowed.com\r\nHost: evil.com\r\n", "Host: a b\r\n", "Host:\r\n", ""} {
		if got := w.ask(t, "GET http://allowed.com/ HTTP/1.1\r\n"+hosts+"\r\n"); !strings.HasPrefix(got, "HTTP/1.1 40") || strings.Contains(got, "reached") {
			t.Errorf("%q: answered %q", hosts, got)
		}
	}
	if got := w.dials(); len(got) > 0 {
		t.Errorf("dialled %v", got)
	}
	if got := w.ask(t, "GET http://allowed.com/ HTTP/1.0\r\n\r\n"); !strings.Contains(got, "reached allowed.com") {
		t.Errorf("HTTP/1.0 without Host: answered %q", got)
	}
}

func TestHeaderWithAControlByteIsMalformed(t *testing.T) {
	for _, line := range []string{"X: a\x00b", "X: a\x01", "X: \x7f", "X: a\rY: b", "X\r: a", "\x1b[2J: a"} {
		_, err := readHead(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\n"+line+"\r\n\r\n")), 1000)
		var fault *malformed
		if !errors.As(err, &fault) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := readHead(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\nX: a\tb \xe4\r\n\r\nrest")), 1000); err != nil {
		t.Error(err)
	}
}

func TestTunnelToPort80CarriesOnlyRequestsForItsHost(t *testing.T) {
	w := newWorld(t, "allowed.com", "other.com")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, "reached "+r.Host) })
	c, r := w.tunnel(t, "allowed.com:80")
	for range 2 {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: allowed.com\r\n\r\n")
		if got := response(t, r); got != "reached allowed.com" {
			t.Fatalf("got %q", got)
		}
	}
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: other.com\r\n\r\n",
		"GET http://other.com/ HTTP/1.1\r\nHost: other.com\r\n\r\n",
		"CONNECT other.com:443 HTTP/1.1\r\nHost: other.com\r\n\r\n",
		"SSH-2.0-x\r\n\r\n",
	} {
		c, r := w.tunnel(t, "allowed.com:80")
		_, _ = io.WriteString(c, raw)
		if got, _ := io.ReadAll(r); !strings.HasPrefix(string(got), "HTTP/1.1 40") {
			t.Errorf("%q: answered %q", raw, got)
		}
	}
	w.line(t, func(l Line) bool { return strings.Contains(l.Reason, "not plain HTTP") })
}

// response reads one answer and gives its body.
func response(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	resp, err := http.ReadResponse(r, &http.Request{Method: "GET"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestEventStreamArrivesEventByEvent(t *testing.T) {
	w := newWorld(t, "example.com")
	next := make(chan struct{})
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(rw, "data: %d\n\n", i)
			rw.(http.Flusher).Flush()
			<-next
		}
	})
	resp, err := w.client(t, nil).Get("http://example.com/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 5 {
		// The server waits until this event was read.
		got, err := lines.ReadString('\n')
		if err != nil || got != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, got, err)
		}
		_, _ = lines.ReadString('\n')
		next <- struct{}{}
	}
}

func TestBodiesPassUnchangedBothWays(t *testing.T) {
	w := newWorld(t, "example.com")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sized" {
			rw.Header().Set("Content-Length", fmt.Sprint(r.ContentLength))
		}
		_, _ = io.Copy(rw, r.Body)
	})
	client := w.client(t, nil)
	body := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	for path, reader := range map[string]io.Reader{
		"/sized":   strings.NewReader(body),
		"/chunked": io.MultiReader(strings.NewReader(body)),
		"/again":   io.MultiReader(strings.NewReader(body)),
	} {
		resp, err := client.Post("http://example.com"+path, "text/plain", reader)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(got) != body {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
}

func TestConnectionIsKeptForTheNextRequest(t *testing.T) {
	w := newWorld(t, "a.example", "b.example")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(rw, "%s %s %d", r.Method, r.Host, n)
	})
	c := w.conn(t)
	// All at once: what comes behind a body is the next request, nothing else.
	_, _ = io.WriteString(c, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"+
		"POST http://b.example/ HTTP/1.1\r\nHost: b.example\r\nContent-Length: 4\r\n\r\nGET "+
		"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"+
		"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	r := bufio.NewReader(c)
	for _, want := range []string{"GET a.example 0", "POST b.example 4", "POST a.example 3"} {
		if got := response(t, r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := response(t, r); !strings.Contains(got, "evil.example") {
		t.Errorf("the denied request got %q", got)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("after a denial: %v, want EOF", err)
	}
}

func TestLengthAndChunksTogetherReachTheHostAsOne(t *testing.T) {
	w := newWorld(t, "a.example")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%q %v %v %q", body, r.ContentLength, r.TransferEncoding, r.Header.Get("Content-Length"))
	})
	got := w.ask(t, "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
	if !strings.Contains(got, `"x" -1 [chunked] ""`) && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("answered %q", got)
	}
}

func TestClientIsAskedToContinueByTheHost(t *testing.T) {
	w := newWorld(t, "a.example")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Link", "</style.css>")
		rw.WriteHeader(http.StatusEarlyHints)
		body, _ := io.ReadAll(r.Body) // makes the server say 100 Continue
		_, _ = rw.Write(body)
	})
	req, _ := http.NewRequest("POST", "http://a.example/", strings.NewReader("body"))
	req.Header.Set("Expect", "100-continue")
	var hints []int
	continued := false
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		Got100Continue: func() { continued = true },
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { hints = append(hints, code); return nil },
	}))
	client := w.client(t, nil)
	client.Transport.(*http.Transport).ExpectContinueTimeout = 1 << 40
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(body) != "body" || !continued || len(hints) == 0 {
		t.Errorf("body %q, continued %v, hints %v", body, continued, hints)
	}
}

func TestAnswersWithoutABodyKeepTheConnection(t *testing.T) {
	w := newWorld(t, "a.example")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			rw.WriteHeader(http.StatusNoContent)
		case "/304":
			rw.WriteHeader(http.StatusNotModified)
		default:
			rw.Header().Set("Content-Length", "12345")
		}
	})
	c := w.conn(t)
	r := bufio.NewReader(c)
	for _, ask := range []struct {
		method, path string
		length       int64
	}{{"HEAD", "/", 12345}, {"GET", "/204", 0}, {"GET", "/304", 0}, {"HEAD", "/", 12345}} {
		fmt.Fprintf(c, "%s http://a.example%s HTTP/1.1\r\nHost: a.example\r\n\r\n", ask.method, ask.path)
		resp, err := http.ReadResponse(r, &http.Request{Method: ask.method})
		if err != nil {
			t.Fatal(err)
		}
		if ask.method == "HEAD" && resp.ContentLength != ask.length {
			t.Errorf("HEAD: length %d", resp.ContentLength)
		}
	}
}

func TestWebSocketGoesOnAsATunnel(t *testing.T) {
	w := newWorld(t, "a.example")
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" || r.Header.Get("Sec-WebSocket-Key") != "k" {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		c, buf, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\nearly ")
		_, _ = io.Copy(c, buf)
	})
	c := w.conn(t)
	_, _ = io.WriteString(c, "GET http://a.example/ws HTTP/1.1\r\nHost: a.example\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: k\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "a" || resp.Header.Get("Upgrade") != "websocket" {
		t.Fatalf("%+v, %v", resp, err)
	}
	_, _ = io.WriteString(c, "hello")
	_ = c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(r); string(got) != "early hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if l := w.line(t, ended); l.Reason != "" || l.Out == 0 {
		t.Errorf("logged %+v", l)
	}
}

func FuzzRequestHeadIsReadOneWay(f *testing.F) {
	for _, seed := range []string{
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST http://a/ HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n0\n\n",
		"GET / HTTP/1.0\r\nConnection: upgrade, host\r\nUpgrade: websocket\r\n\r\n",
	} {
		f.Add(seed)
	}
	d := destination{host{name: "a.example"}, 80}
	f.Fuzz(func(t *testing.T, raw string) {
		req, err := readRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			return
		}
		// What goes out must read back as one request for the decided host.
		out := string(requestHead(req, d, "/"))
		again, err := readRequest(bufio.NewReader(strings.NewReader(out)))
		if err != nil || again.sameHost(d.host, d.port) != nil || strings.Count(out, "\r\n\r\n") != 1 || !strings.HasSuffix(out, "\r\n\r\n") {
			t.Fatalf("%q goes out as %q: %v", raw, out, err)
		}
		if requestFraming(again) != requestFraming(req) || again.Method != req.Method {
			t.Fatalf("%q goes out as %q: framing %d, then %d", raw, out, requestFraming(req), requestFraming(again))
		}
	})
}
