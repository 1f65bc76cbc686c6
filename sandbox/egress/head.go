package egress

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

const (
	maxRequestHead  = 64 << 10
	maxResponseHead = 256 << 10
	maxTrailer      = 16 << 10
)

var errHeadTooLarge = &malformed{errors.New("the header is too large")}

// malformed is a fault of what was sent, as opposed to a connection that
// broke.
type malformed struct{ error }

func (m *malformed) Unwrap() error { return m.error }

// readHead reads a header block up to and with its empty line, limit bytes at
// most. Bytes that two parsers could read in two ways are refused: control
// bytes, a carriage return inside a line, a line that continues another.
func readHead(r *bufio.Reader, limit int) ([]byte, error) {
	var head []byte
	start := 0 // of the line being read
	for {
		part, err := r.ReadSlice('\n')
		if len(head)+len(part) > limit {
			return nil, errHeadTooLarge
		}
		head = append(head, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return head, err
		}
		line := bytes.TrimSuffix(head[start:len(head)-1], []byte("\r"))
		if len(line) == 0 {
			return head, nil
		}
		if start > 0 && (line[0] == ' ' || line[0] == '\t') {
			return nil, &malformed{errors.New("a header line continues another")}
		}
		for _, c := range line {
			if c < ' ' && c != '\t' || c == 0x7f {
				return nil, &malformed{errors.New("a control byte in the header")}
			}
		}
		start = len(head)
	}
}

// request is what a client asked for. Its body is still to be read.
type request struct {
	*http.Request          // for its header and framing; Body is not used
	hosts         []string // the Host headers, which http.Request does not keep
	target        string   // as it stood in the request line
}

// readRequest reads the head of a request. The error is a *malformed one when
// the client is to be told.
func readRequest(r *bufio.Reader) (*request, error) {
	head, err := readHead(r, maxRequestHead)
	if err != nil {
		return nil, err
	}
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return nil, &malformed{err}
	}
	_, lines, _ := bytes.Cut(head, []byte("\n"))
	fields, err := parseFields(lines)
	if err != nil {
		return nil, err
	}
	return &request{Request: req, hosts: fields["Host"], target: req.RequestURI}, nil
}

// parseFields reads header lines up to their empty line, holding the names to
// the token grammar (RFC 9110, 5.6.2): net/http leaves that to its server.
func parseFields(lines []byte) (http.Header, error) {
	fields, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(lines))).ReadMIMEHeader()
	if err != nil {
		return nil, &malformed{err}
	}
	for name := range fields {
		for _, c := range []byte(name) {
			if c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
				return nil, &malformed{errors.New("a header name is not a token")}
			}
		}
	}
	return http.Header(fields), nil
}

// sameHost holds the Host header against the host that was decided on: there
// must be one, and it must be that host.
func (r *request) sameHost(h host, port int) error {
	if len(r.hosts) == 0 && !r.ProtoAtLeast(1, 1) {
		return nil
	}
	if len(r.hosts) != 1 {
		return fmt.Errorf("%d Host headers", len(r.hosts))
	}
	named, at, err := parseAuthority(r.hosts[0], 80)
	if err != nil {
		return fmt.Errorf("the Host header: %w", err)
	}
	if named != h || at != port {
		return fmt.Errorf("the Host header names %s, the address %s", named.authority(at, 80), h.authority(port, 80))
	}
	return nil
}

// hopByHop are the fields that are about one connection and never passed on
// (RFC 9110, 7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length"}

// endToEnd gives the fields of a header that are for the other end. Framing
// is not among them: the caller writes its own.
func endToEnd(header http.Header) http.Header {
	out := header.Clone()
	for _, list := range header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		out.Del(name)
	}
	for name := range out {
		if strings.HasPrefix(name, "Proxy-") {
			delete(out, name)
		}
	}
	return out
}

// wantsWebSocket reports whether the client asks to go on as a WebSocket, the
// one upgrade that is let through: any other (h2c) would carry requests for
// other hosts past the check.
func wantsWebSocket(header http.Header) bool {
	return strings.EqualFold(header.Get("Upgrade"), "websocket")
}

// writeFields adds header to out, in a fixed order.
func writeFields(out *bytes.Buffer, header http.Header) {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			writeField(out, name, value)
		}
	}
}

func writeField(out *bytes.Buffer, name, value string) {
	out.WriteString(name)
	out.WriteString(": ")
	out.WriteString(value)
	out.WriteString("\r\n")
}

// framing says how long a body is.
type framing int64

const (
	chunked  framing = -1 // in chunks that say their size
	untilEnd framing = -2 // until the connection ends
)

// framingOf gives the framing that net/http found in a head, having refused
// contradictions.
func framingOf(encoding []string, length int64) framing {
	switch {
	case len(encoding) > 0:
		return chunked
	case length >= 0:
		return framing(length)
	}
	return untilEnd
}

// writeFraming adds the fields that say how long the body is.
func writeFraming(out *bytes.Buffer, f framing) {
	switch f {
	case untilEnd:
	case chunked:
		writeField(out, "Transfer-Encoding", "chunked")
	default:
		writeField(out, "Content-Length", strconv.FormatInt(int64(f), 10))
	}
}

// answer sends a short plain text and asks the client to hang up.
func answer(client net.Conn, status int, text string) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	writeField(&out, "Content-Type", "text/plain; charset=utf-8")
	writeField(&out, "Content-Length", strconv.Itoa(len(text)))
	writeField(&out, "Connection", "close")
	out.WriteString("\r\n")
	out.WriteString(text)
	_, _ = client.Write(out.Bytes()) // it hangs up anyway
}
