package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
)

// helloOf is the first flight of a real client.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	near, far := net.Pipe()
	got := make(chan []byte)
	go func() {
		raw, _, _ := readHello(far)
		_ = far.Close()
		got <- raw
	}()
	_ = tls.Client(near, config).Handshake() // it is cut off
	return <-got
}

// record wraps a handshake fragment in a TLS record.
func record(fragment []byte) []byte {
	return append([]byte{22, 3, 1, byte(len(fragment) >> 8), byte(len(fragment))}, fragment...)
}

// helloWith is a minimal ClientHello with the given extensions block.
func helloWith(extensions []byte) []byte {
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0, 0, 2, 0x13, 1, 1, 0)
	if extensions != nil {
		body = append(body, byte(len(extensions)>>8), byte(len(extensions)))
		body = append(body, extensions...)
	}
	return append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
}

// nameExtension is a server_name extension with the given names.
func nameExtension(names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(list, 0, byte(len(n)>>8), byte(len(n)))
		list = append(list, n...)
	}
	out := []byte{0, 0, byte((len(list) + 2) >> 8), byte(len(list) + 2), byte(len(list) >> 8), byte(len(list))}
	return append(out, list...)
}

func TestHelloOfARealClientNamesItsHost(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		raw := helloOf(t, &tls.Config{ServerName: "api.anthropic.com", MaxVersion: version, InsecureSkipVerify: true})
		again, name, err := readHello(bytes.NewReader(append(raw, "the rest"...)))
		if err != nil || name != "api.anthropic.com" || !bytes.Equal(raw, again) {
			t.Errorf("version %x: %q, %v", version, name, err)
		}
	}
}

func TestHelloMayComeInManyRecords(t *testing.T) {
	whole := helloOf(t, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true})[5:]
	var split []byte
	for len(whole) > 0 {
		n := min(100, len(whole))
		split = append(split, record(whole[:n])...)
		whole = whole[n:]
	}
	raw, name, err := readHello(io.MultiReader(bytes.NewReader(split), bytes.NewReader([]byte("rest"))))
	if err != nil || name != "a.example" || !bytes.Equal(raw, split) {
		t.Errorf("%q, %v", name, err)
	}
}

func TestHelloThatCouldBeReadInTwoWaysIsRefused(t *testing.T) {
	one := nameExtension("a.example")
	tests := []struct {
		name string
		raw  []byte
		want error
	}{
		{"no extensions", record(helloWith(nil)), errNoSNI},
		{"no name", record(helloWith([]byte{0, 10, 0, 0})), errNoSNI},
		{"two names", record(helloWith(nameExtension("a.example", "b.example"))), errBadHello},
		{"two extensions", record(helloWith(append(bytes.Clone(one), one...))), errBadHello},
		{"no name in the list", record(helloWith(nameExtension())), errBadHello},
		{"empty name", record(helloWith(nameExtension(""))), errBadHello},
		{"cut extension", record(helloWith(one[:len(one)-1])), errBadHello},
		{"another message behind", record(append(helloWith(one), 1, 0, 0, 0)), errBadHello},
		{"server hello", record(append([]byte{2}, helloWith(one)[1:]...)), errNotTLS},
		{"empty record", record(nil), errNotTLS},
		{"plain HTTP", []byte("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"), errNotTLS},
		{"SSH", []byte("SSH-2.0-OpenSSH_9.2\r\n"), errNotTLS},
		{"endless", record(append([]byte{1, 255, 255, 255}, make([]byte, 100)...)), errBadHello},
		{"cut", record(helloWith(one))[:20], io.ErrUnexpectedEOF},
		{"nothing", nil, io.EOF},
	}
	for _, tt := range tests {
		if _, name, err := readHello(bytes.NewReader(tt.raw)); !errors.Is(err, tt.want) || name != "" {
			t.Errorf("%s: %q, %v; want %v", tt.name, name, err, tt.want)
		}
	}
	if _, name, err := readHello(bytes.NewReader(record(helloWith(one)))); err != nil || name != "a.example" {
		t.Fatalf("the tests' own hello is broken: %q, %v", name, err)
	}
}

func FuzzHelloIsBoundedAndWhole(f *testing.F) {
	f.Add(helloOf(f, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true}))
	f.Add(record(helloWith(nameExtension("a.example"))))
	f.Add(record(helloWith(nameExtension("a.example", "b.example"))))
	f.Add(record(helloWith(nil)))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, name, err := readHello(bytes.NewReader(data))
		if !bytes.HasPrefix(data, raw) || len(raw) > 2*maxHello {
			t.Fatalf("read %d bytes that are not the beginning of the input", len(raw))
		}
		if (err == nil) == (name == "") {
			t.Fatalf("name %q with error %v", name, err)
		}
	})
}
