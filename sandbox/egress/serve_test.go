package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// counted is a listener that counts how often it was asked for a connection.
type counted struct {
	net.Listener
	asked atomic.Int32
}

func (c *counted) Accept() (net.Conn, error) {
	c.asked.Add(1)
	return c.Listener.Accept()
}

func TestMoreConnectionsThanTheLimitWaitForTheirTurn(t *testing.T) {
	l := &counted{Listener: listen(t)}
	p := New(Rules{}, nil)
	p.limit = 2
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	w := &world{addr: l.Addr().String()}
	w.conn(t)
	second, third := w.conn(t), w.conn(t)
	_, _ = io.WriteString(third, "CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	// While the proxy waits for the second to hang up, it asks for no third.
	_, _ = io.WriteString(second, "noise\r\n\r\n")
	if got, err := io.ReadAll(second); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
		t.Fatalf("the second got %q, %v", got, err)
	}
	if n := l.asked.Load(); n != 2 {
		t.Errorf("asked for %d connections, 2 at most", n)
	}
	_ = second.Close()
	if got, err := io.ReadAll(third); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 403 ") {
		t.Errorf("the third got %q, %v", got, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// faulty is a listener whose Accept fails as told before it works.
type faulty struct {
	net.Listener
	errs []error
}

func (f *faulty) Accept() (net.Conn, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return nil, err
	}
	return f.Listener.Accept()
}

func TestAcceptOutlivesAPassingFaultOnly(t *testing.T) {
	passing := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	w := newWorld(t)
	l := &faulty{listen(t), []error{passing, passing}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Serve(ctx, l) }()
	w.addr = l.Addr().String()
	if got := w.ask(t, "CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("answered %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := w.Serve(context.Background(), &faulty{listen(t), []error{errors.New("broken for good")}}); err == nil || !strings.Contains(err.Error(), "broken for good") {
		t.Errorf("Serve gave %v", err)
	}
}

func TestServeEndsItsConnectionsWithItsContextOrListener(t *testing.T) {
	for _, how := range []string{"context", "listener"} {
		w := newWorld(t, "held.example:8443", "slow.example")
		w.on(8443, echo(t))
		w.on(443, echo(t))
		l := listen(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- w.Serve(ctx, l) }()
		w.addr = l.Addr().String()
		tunnel, r := w.tunnel(t, "held.example:8443")
		w.tunnel(t, "slow.example:443") // waits for a handshake
		w.conn(t)                       // waits for a request
		_, _ = io.WriteString(tunnel, "x")
		if _, err := r.ReadByte(); err != nil {
			t.Fatal(err)
		}
		if how == "context" {
			cancel()
		} else {
			_ = l.Close()
		}
		if err := <-done; err != nil {
			t.Errorf("%s: Serve gave %v", how, err)
		}
		if _, err := r.ReadByte(); err == nil {
			t.Errorf("%s: the tunnel goes on", how)
		}
	}
}

func TestReplacedRulesDecideTheNextRequest(t *testing.T) {
	w := newWorld(t)
	w.on(8443, echo(t))
	const ask = "CONNECT a.example:8443 HTTP/1.1\r\nHost: x\r\n\r\n"
	if got := w.ask(t, ask); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("answered %q", got)
	}
	w.Replace(rules(t, "a.example:8443"))
	w.tunnel(t, "a.example:8443")
	w.Replace(Rules{})
	if got := w.ask(t, ask); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("answered %q", got)
	}
}
