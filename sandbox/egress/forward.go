package egress

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxInformational bounds the 1xx answers before the real one.
const maxInformational = 16

// forward answers a plain HTTP request and reports whether the connection can
// take another. Each request goes out on a connection of its own.
func (s *session) forward(req *request) bool {
	a := s.begin(req.Method)
	d, path, ok := s.destination(a, req)
	if !ok {
		return false
	}
	a.at(d.host, d.port)
	v := s.proxy.rules.Load().decide(d.host, d.port)
	if !v.Allowed {
		s.deny(a, v.Rule, v.Reason)
		return false
	}
	if d.port == 443 {
		s.deny(a, v.Rule, "plain HTTP on port 443")
		return false
	}
	if err := req.sameHost(d.host, d.port); err != nil {
		s.deny(a, v.Rule, err.Error())
		return false
	}
	host := s.reach(a, v, d)
	if host == nil {
		return false
	}
	defer s.open.drop(host)
	a.allowed(v.Rule)
	counted := &counter{Conn: host}
	x := exchange{session: s, req: req, host: counted}
	more, err := x.run(requestHead(req, d, path))
	a.ended(counted.in.Load(), counted.out.Load(), err)
	return more
}

// destination reads where a request goes: from its absolute target, or, in a
// tunnel to port 80, from the tunnel. Otherwise it answers the client.
func (s *session) destination(a *audit, req *request) (destination, string, bool) {
	var none destination
	if s.inside != nil {
		if !strings.HasPrefix(req.target, "/") && req.target != "*" {
			s.invalid(a, req.target, errors.New("an absolute address inside a tunnel"))
			return none, "", false
		}
		return *s.inside, req.target, true
	}
	const scheme = "http://"
	if len(req.target) < len(scheme) || !strings.EqualFold(req.target[:len(scheme)], scheme) {
		s.goodbye(http.StatusBadRequest, "this is the proxy of a sandbox: it takes CONNECT and http:// requests")
		return none, "", false
	}
	rest := req.target[len(scheme):]
	path := "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest, path = rest[:i], rest[i:]
		if path[0] != '/' {
			path = "/" + path
		}
	}
	h, port, err := parseAuthority(rest, 80)
	if err == nil && strings.Contains(path, "#") {
		err = errors.New("a fragment in a request")
	}
	if err != nil {
		s.invalid(a, rest, err)
		return none, "", false
	}
	return destination{h, port}, path, true
}

// requestHead is what the host is sent in place of what the client sent.
func requestHead(req *request, d destination, path string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\n", req.Method, path)
	writeField(&out, "Host", d.host.authority(d.port, 80))
	writeFields(&out, endToEnd(req.Header))
	if f := requestFraming(req); f != 0 || req.Header.Get("Content-Length") != "" {
		writeFraming(&out, f)
	}
	if wantsWebSocket(req.Header) {
		writeField(&out, "Connection", "Upgrade")
		writeField(&out, "Upgrade", "websocket")
	} else {
		writeField(&out, "Connection", "close")
	}
	out.WriteString("\r\n")
	return out.Bytes()
}

func requestFraming(req *request) framing {
	f := framingOf(req.TransferEncoding, req.ContentLength)
	if f == untilEnd {
		f = 0 // a request without a length has no body
	}
	return f
}

// exchange is one request on its way.
type exchange struct {
	*session
	req  *request
	host *counter
}

// run sends head and the body that the client has still to send, and passes
// the answer back as it comes. It reports whether the client's connection can
// take another request.
func (x *exchange) run(head []byte) (bool, error) {
	if _, err := x.host.Write(head); err != nil {
		x.goodbye(http.StatusBadGateway, "sending the request: "+cause(err))
		return false, err
	}
	var feeding sync.WaitGroup
	fed := false
	feeding.Go(func() { fed = x.feed() })
	got, err := x.reply()
	// The feeder may wait for the client's next byte, or for the host to take
	// one: wake it, so that nobody else reads from the client.
	_ = x.client.SetReadDeadline(past)
	_ = x.host.SetWriteDeadline(past)
	feeding.Wait()
	x.deadline(0)
	_ = x.host.SetWriteDeadline(time.Time{})
	switch {
	case got.switched != nil:
		return false, x.upgrade(got)
	case !got.begun && err != nil:
		x.goodbye(http.StatusBadGateway, err.Error())
		return false, err
	case !fed:
		x.linger()
		return false, err
	}
	return got.more && err == nil, err
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// feed passes the request's body on, then watches for the client to go away.
// It reports whether all of the body was passed on.
func (x *exchange) feed() bool {
	if err := x.sendBody(); err != nil {
		// A host that takes no more may have answered already. When the client
		// is what failed, half a request has no answer.
		if !x.host.full.Load() && !errors.Is(err, os.ErrDeadlineExceeded) {
			_ = x.host.Close()
		}
		return false
	}
	if _, err := x.in.Peek(1); errors.Is(err, io.EOF) {
		_ = x.host.Close() // the client is gone, nobody reads the answer
	}
	return true
}

func (x *exchange) sendBody() error {
	f := requestFraming(x.req)
	if f != chunked {
		_, err := io.CopyN(x.host, x.in, int64(f))
		return err
	}
	if err := writeChunks(x.host, httputil.NewChunkedReader(x.in)); err != nil {
		return err
	}
	if _, err := readTrailer(x.in); err != nil {
		return err
	}
	_, err := io.WriteString(x.host, "\r\n")
	return err
}

// got is what became of an answer.
type got struct {
	begun    bool // the client has seen some of it
	more     bool // the client can tell where it ended without a hang-up
	switched *http.Response
	from     *bufio.Reader
}

// reply passes the host's answer to the client.
func (x *exchange) reply() (got, error) {
	from := bufio.NewReader(x.host)
	resp, err := x.responseHead(from)
	if err != nil {
		return got{}, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return got{switched: resp, from: from}, nil
	}
	f := framingOf(resp.TransferEncoding, resp.ContentLength)
	none := x.req.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	out, modern := f, x.req.ProtoAtLeast(1, 1)
	switch {
	case f == untilEnd && modern:
		out = chunked
	case f == chunked && !modern:
		out = untilEnd
	}
	g := got{begun: true, more: !x.req.Close && (none || out != untilEnd)}
	if _, err := x.client.Write(responseHead(resp, out, none, g.more)); err != nil || none {
		return g, err
	}
	return g, x.body(from, f, out)
}

// responseHead reads the host's answer up to its body, passing on what comes
// before it (100 Continue, 103 Early Hints).
func (x *exchange) responseHead(from *bufio.Reader) (*http.Response, error) {
	for range maxInformational {
		head, err := readHead(from, maxResponseHead)
		if err != nil {
			return nil, fmt.Errorf("reading the answer: %s", cause(err))
		}
		_, lines, _ := bytes.Cut(head, []byte("\n"))
		if _, err := parseFields(lines); err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), x.req.Request)
		if err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		if resp.StatusCode == http.StatusSwitchingProtocols && !wantsWebSocket(x.req.Header) {
			return nil, errors.New("reading the answer: it switches protocols unasked")
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
		if !x.req.ProtoAtLeast(1, 1) {
			continue
		}
		if _, err := x.client.Write(informational(resp)); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("reading the answer: too many informational ones")
}

func informational(resp *http.Response) []byte {
	var out bytes.Buffer
	writeStatus(&out, resp)
	writeFields(&out, endToEnd(resp.Header))
	out.WriteString("\r\n")
	return out.Bytes()
}

// responseHead is what the client is sent in place of what the host sent.
func responseHead(resp *http.Response, f framing, none, more bool) []byte {
	var out bytes.Buffer
	writeStatus(&out, resp)
	writeFields(&out, endToEnd(resp.Header))
	switch {
	case none && resp.Header.Get("Content-Length") != "":
		writeField(&out, "Content-Length", resp.Header.Get("Content-Length"))
	case !none:
		writeFraming(&out, f)
	}
	if f == chunked && len(resp.Trailer) > 0 {
		writeField(&out, "Trailer", strings.Join(slices.Sorted(maps.Keys(resp.Trailer)), ", "))
	}
	if !more {
		writeField(&out, "Connection", "close")
	}
	out.WriteString("\r\n")
	return out.Bytes()
}

// body passes the answer's body on, each piece as soon as it is there.
func (x *exchange) body(from *bufio.Reader, f, out framing) error {
	var src io.Reader = from
	switch f {
	case untilEnd:
	case chunked:
		src = httputil.NewChunkedReader(from)
	default:
		n, err := io.CopyN(x.client, from, int64(f))
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", n, int64(f), err)
		}
		return nil
	}
	if out != chunked {
		_, err := io.Copy(x.client, src)
		return err
	}
	if err := writeChunks(x.client, src); err != nil {
		return err
	}
	var tail bytes.Buffer
	if f == chunked {
		trailer, err := readTrailer(from)
		if err != nil {
			return err
		}
		writeFields(&tail, endToEnd(trailer))
	}
	tail.WriteString("\r\n")
	_, err := x.client.Write(tail.Bytes())
	return err
}

// upgrade goes on as a WebSocket: from here on, bytes are passed both ways.
func (x *exchange) upgrade(g got) error {
	var out bytes.Buffer
	writeStatus(&out, g.switched)
	writeFields(&out, endToEnd(g.switched.Header))
	writeField(&out, "Connection", "Upgrade")
	writeField(&out, "Upgrade", "websocket")
	out.WriteString("\r\n")
	if n := g.from.Buffered(); n > 0 {
		early, _ := g.from.Peek(n) // what is buffered is there
		out.Write(early)
	}
	if _, err := x.client.Write(out.Bytes()); err != nil {
		return err
	}
	_, _, err := x.splice(x.host, nil)
	return err
}

func writeStatus(out *bytes.Buffer, resp *http.Response) {
	_, text, _ := strings.Cut(resp.Status, " ")
	fmt.Fprintf(out, "HTTP/1.1 %03d %s\r\n", resp.StatusCode, text)
}
