package egress

import (
	"encoding/binary"
	"errors"
	"io"
)

// maxHello bounds a ClientHello. Post-quantum key shares make it about 2 KiB;
// TLS itself would allow 16 MiB.
const maxHello = 64 << 10

var (
	errNotTLS   = errors.New("what was spoken is not TLS")
	errBadHello = errors.New("the TLS ClientHello is malformed")
	errNoSNI    = errors.New("the TLS ClientHello names no host")
)

// readHello reads exactly the records of a TLS ClientHello and gives the one
// host it names (SNI), as it was spelled. raw is all that was read, also when
// err is not nil. It never reads past the record that ends the ClientHello.
func readHello(r io.Reader) (raw []byte, name string, err error) {
	var body []byte
	for {
		head := len(raw)
		raw = append(raw, make([]byte, 5)...)
		if n, err := io.ReadFull(r, raw[head:]); err != nil {
			return raw[:head+n], "", err
		}
		// A record: type 22 (handshake), version 3.x, length.
		size := int(binary.BigEndian.Uint16(raw[head+3:]))
		if raw[head] != 22 || raw[head+1] != 3 || size == 0 || size > 16384 {
			return raw, "", errNotTLS
		}
		if len(body)+size > maxHello {
			return raw, "", errBadHello
		}
		at := len(raw)
		raw = append(raw, make([]byte, size)...)
		if n, err := io.ReadFull(r, raw[at:]); err != nil {
			return raw[:at+n], "", err
		}
		body = append(body, raw[at:]...)
		// A handshake message: type 1 (client_hello), 24-bit length.
		if body[0] != 1 {
			return raw, "", errNotTLS
		}
		if len(body) < 4 {
			continue
		}
		want := 4 + (int(body[1])<<16 | int(body[2])<<8 | int(body[3]))
		if want > maxHello || len(body) > want {
			return raw, "", errBadHello
		}
		if len(body) == want {
			name, err = serverName(body[4:])
			return raw, name, err
		}
	}
}

// serverName gives the host that the body of a ClientHello names. Anything
// that two parsers could read in two ways is refused: a second name, a second
// server_name extension, bytes left over.
func serverName(hello []byte) (string, error) {
	b := wire{rest: hello}
	b.take(2 + 32) // legacy_version, random
	b.vector(1)    // legacy_session_id
	b.vector(2)    // cipher_suites
	b.vector(1)    // legacy_compression_methods
	if !b.bad && len(b.rest) == 0 {
		return "", errNoSNI // TLS 1.2 without any extension
	}
	extensions := wire{rest: b.vector(2)}
	if b.bad || len(b.rest) > 0 {
		return "", errBadHello
	}
	name, found := "", false
	for len(extensions.rest) > 0 {
		id := extensions.take(2)
		data := wire{rest: extensions.vector(2)}
		if extensions.bad {
			return "", errBadHello
		}
		if id[0] != 0 || id[1] != 0 { // not server_name
			continue
		}
		list := wire{rest: data.vector(2)}
		sort := list.take(1)
		host := list.vector(2)
		if found || data.bad || list.bad || len(data.rest) > 0 || len(list.rest) > 0 || sort[0] != 0 || len(host) == 0 {
			return "", errBadHello
		}
		name, found = string(host), true
	}
	if !found {
		return "", errNoSNI
	}
	return name, nil
}

// wire takes TLS presentation-language fields off a byte string. Once
// something is missing it stays bad and gives empty answers.
type wire struct {
	rest []byte
	bad  bool
}

func (w *wire) take(n int) []byte {
	if w.bad || len(w.rest) < n {
		w.bad, w.rest = true, nil
		return make([]byte, min(n, 64))
	}
	out := w.rest[:n]
	w.rest = w.rest[n:]
	return out
}

// vector takes a length of size bytes and as many bytes as it says.
func (w *wire) vector(size int) []byte {
	n := 0
	for _, b := range w.take(size) {
		n = n<<8 | int(b)
	}
	if w.bad || n > len(w.rest) {
		w.bad, w.rest = true, nil
		return nil
	}
	return w.take(n)
}
