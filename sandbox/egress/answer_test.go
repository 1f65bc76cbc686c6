package egress

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// rawHost answers every connection on a port with the same bytes and hangs up.
func rawHost(t *testing.T, reply string) string {
	t.Helper()
	l := listen(t)
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, reply)
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func TestOddAnswersOfAHostNeverConfuseTheClient(t *testing.T) {
	tests := []struct{ name, reply, proto, want string }{
		{"until the end", "HTTP/1.0 200 OK\r\n\r\nbody", "1.1", "\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nbody\r\n0\r\n\r\n"},
		{"until the end, old client", "HTTP/1.0 200 OK\r\n\r\nbody", "1.0", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbody"},
		{"chunks, old client", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", "1.0", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbody"},
		{"trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 7\r\nContent-Length: 9\r\n\r\n", "1.1", "Trailer: X-Sum\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 7\r\n\r\n"},
		{"length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "1.1", "OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "1.1", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"bare return", "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n", "1.1", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"bad name", "HTTP/1.1 200 OK\r\nX Y: a\r\n\r\n", "1.1", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"no answer", "", "1.1", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"noise", "SSH-2.0-x\r\n\r\n", "1.1", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"switch unasked", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", "1.1", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"endless hints", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 20), "1.0", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"huge header", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", maxResponseHead), "1.1", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "1.1", "HTTP/1.1 200 \r\n"},
	}
	for _, tt := range tests {
		w := newWorld(t, "a.example")
		w.on(80, rawHost(t, tt.reply))
		got := w.ask(t, "GET http://a.example/ HTTP/"+tt.proto+"\r\nHost: a.example\r\nConnection: close\r\n\r\n")
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: answered %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCutAnswerIsCutForTheClientToo(t *testing.T) {
	w := newWorld(t, "a.example")
	for _, reply := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"} {
		w.on(80, rawHost(t, reply))
		resp, err := w.client(t, nil).Get("http://a.example/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%q looks whole to the client", reply)
		}
		_ = resp.Body.Close()
	}
}

func TestEarlyAnswerReachesAClientThatStillSends(t *testing.T) {
	const reply = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
	patient := listen(t)
	done := make(chan struct{})
	t.Cleanup(func() { _ = patient.Close(); <-done })
	go func() {
		defer close(done)
		c, err := patient.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, reply)
		_, _ = io.Copy(io.Discard, c)
	}()
	for name, host := range map[string]string{"reads on": patient.Addr().String(), "hangs up": rawHost(t, reply)} {
		w := newWorld(t, "a.example")
		w.on(80, host)
		c := w.conn(t)
		_, _ = io.WriteString(c, "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("a", 100<<10))
		got, err := io.ReadAll(c)
		if err != nil || !strings.HasSuffix(string(got), "\r\n\r\nno") {
			t.Errorf("a host that %s: answered %q, %v", name, got, err)
		}
	}
}

func TestClientThatLeavesEndsTheRequestAtTheHost(t *testing.T) {
	w := newWorld(t, "a.example")
	begun, over := make(chan struct{}), make(chan struct{})
	w.web(t, func(rw http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(over)
	})
	c := w.conn(t)
	_, _ = io.WriteString(c, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
	<-begun
	_ = c.Close()
	<-over
}
