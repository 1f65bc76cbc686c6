package attach

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds the payload of one message in bytes.
const maxMessage = 1 << 20

// headerSize is the size of what stands before a payload.
const headerSize = 5

// kind is the type of a message. The numbers are the protocol.
type kind uint8

const (
	kindHello    kind = 1
	kindSnapshot kind = 2  // server: the whole screen
	kindRows     kind = 3  // server: rows that changed
	kindCursor   kind = 4  // server: only the cursor or the history changed
	kindMode     kind = 5  // server: modes, in front of one of the above
	kindTitle    kind = 6  // server: title, in front of one of the above
	kindInput    kind = 7  // viewer: bytes for the program
	kindPaste    kind = 8  // viewer: text to paste
	kindResize   kind = 9  // viewer: cols and rows
	kindExit     kind = 10 // server
	kindNews     kind = 11 // server
	kindHistory  kind = 12 // viewer: from and count; server: the rows
	kindSignal   kind = 13 // viewer: a signal's name
	kindSeen     kind = 14 // viewer: the last frame was taken, send the next
	kindRefusal  kind = 15 // server: instead of a hello
)

// errMalformed is wrapped by everything wrong with the bytes of the other
// side.
var errMalformed = errors.New("malformed message")

func malformed(what string) error { return fmt.Errorf("%w: %s", errMalformed, what) }

// begin appends the header of a message; end fills in its size.
func begin(b []byte, k kind) []byte { return append(b, 0, 0, 0, 0, byte(k)) }

// end completes the message that starts at offset start of b.
func end(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-headerSize))
	return b
}

// message builds a whole message.
func message(k kind, payload []byte) []byte {
	b := append(begin(make([]byte, 0, headerSize+len(payload)), k), payload...)
	return end(b, 0)
}

// jsonMessage builds a message whose payload is JSON.
func jsonMessage(k kind, value any) ([]byte, error) {
	payload, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(payload) > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes, %d at most", len(payload), maxMessage)
	}
	return message(k, payload), nil
}

// decodeJSON reads the JSON payload of a message.
func decodeJSON(payload []byte, into any) error {
	if err := json.Unmarshal(payload, into); err != nil {
		return malformed(err.Error())
	}
	return nil
}

// reader takes messages out of a stream. A read that fails half-way, by a
// deadline, loses nothing: the next call goes on where it stopped.
type reader struct {
	from       io.Reader
	buf        []byte
	start, end int // what is buffered and not yet taken
}

// next gives the next message. The payload is valid until the call after.
func (r *reader) next() (kind, []byte, error) {
	for {
		have := r.buf[r.start:r.end]
		need := headerSize
		if len(have) >= headerSize {
			size := binary.BigEndian.Uint32(have)
			if size > maxMessage {
				return 0, nil, malformed(fmt.Sprintf("%d bytes, %d at most", size, maxMessage))
			}
			need += int(size)
			if len(have) >= need {
				r.start += need
				return kind(have[4]), have[headerSize:need:need], nil
			}
		}
		if err := r.fill(need); err != nil {
			return 0, nil, err
		}
	}
}

// fill reads some more, with room for need bytes in all. What a peer claims
// to send is not believed beforehand: the buffer grows with what arrives.
func (r *reader) fill(need int) error {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.end == len(r.buf) {
		grown := make([]byte, min(max(2*len(r.buf), 4096), need+4096))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
	n, err := r.from.Read(r.buf[r.end:])
	r.end += n
	switch {
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	case err == io.EOF && r.end > 0:
		return io.ErrUnexpectedEOF
	}
	return err
}

// parser takes values off a payload. After a fault all of them are zero and
// err says what was wrong.
type parser struct {
	b   []byte
	err error
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = malformed(what)
	}
	p.b = nil
}

func (p *parser) byte() byte {
	if len(p.b) == 0 {
		p.fail("it ends early")
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

// uint takes a number up to most.
func (p *parser) uint(most uint64) uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 || v > most {
		p.fail("a number out of bounds")
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) int(most int) int { return int(p.uint(uint64(most))) }

func (p *parser) bytes(n int) []byte {
	if n > len(p.b) {
		p.fail("it ends early")
		return nil
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

// text takes n bytes that must be fit for a terminal.
func (p *parser) text(n int) string {
	s := string(p.bytes(n))
	if !showable(s) {
		p.fail("text with control bytes")
		return ""
	}
	return s
}

// done reports a fault, or bytes that should not be there.
func (p *parser) done() error {
	if p.err == nil && len(p.b) > 0 {
		p.fail("it has bytes left over")
	}
	return p.err
}

func showable(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

func appendUint(b []byte, v int) []byte { return binary.AppendUvarint(b, uint64(max(v, 0))) }
