package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// maxName is the longest DNS name in its written form (RFC 1035, 2.3.4).
const maxName = 253

// host is a destination in its one canonical form: a DNS name or an address.
// Names and addresses are only ever compared in this form, so that there is
// no second spelling for a rule to miss.
type host struct {
	name string     // lower case, without the closing dot; empty for an address
	addr netip.Addr // never IPv4 written as IPv6, never with a zone
}

// String is the canonical spelling, without brackets around IPv6.
func (h host) String() string {
	if h.name != "" {
		return h.name
	}
	return h.addr.String()
}

// isAddr reports whether h is an address and not a name.
func (h host) isAddr() bool { return h.name == "" }

// local reports whether h is a name that stands for this machine wherever it
// is looked up (RFC 6761, 6.3).
func (h host) local() bool {
	name := strings.TrimPrefix(h.name, ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// authority is how h stands in a URL or a Host header: IPv6 in brackets, no
// port where it is the scheme's own.
func (h host) authority(port, own int) string {
	text := h.String()
	if h.isAddr() && h.addr.Is6() {
		text = "[" + text + "]"
	}
	if port == own {
		return text
	}
	return text + ":" + strconv.Itoa(port)
}

// parseHost reads a host by a strict grammar: letters, digits and hyphens in
// labels of 1 to 63 bytes (RFC 1123), or an address in its usual form. What
// some resolver or C library might read in another way than we do is refused:
// NUL, zones, raw Unicode, percent signs, user information, empty labels, and
// IPv4 in octal, hex, decimal or shortened form. One closing dot is dropped,
// upper case lowered, IPv4-in-IPv6 unwrapped.
func parseHost(text string) (host, error) {
	if text == "" {
		return host{}, errors.New("the host is empty")
	}
	if len(text) > maxName+1 {
		return host{}, fmt.Errorf("the host has %d bytes, %d at most", len(text), maxName)
	}
	if strings.ContainsAny(text, ":[]") {
		return parseIPv6(text)
	}
	name := strings.TrimSuffix(text, ".")
	if len(name) > maxName {
		return host{}, fmt.Errorf("the host has %d bytes, %d at most", len(name), maxName)
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return host{}, err
		}
		last = label
	}
	// Only now: lowering turns a few characters outside ASCII into letters.
	name, last = strings.ToLower(name), strings.ToLower(last)
	if !numeric(last) {
		return host{name: name}, nil
	}
	addr, err := netip.ParseAddr(name)
	if err != nil || !addr.Is4() {
		return host{}, errors.New("an IPv4 address must be four decimal numbers")
	}
	return host{addr: addr}, nil
}

func parseIPv6(text string) (host, error) {
	inner, bracketed := strings.CutPrefix(text, "[")
	if bracketed {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "]"); !closed {
			return host{}, errors.New("a bracket is not closed")
		}
	}
	addr, err := netip.ParseAddr(inner)
	if err != nil || !addr.Is6() {
		return host{}, errors.New("neither a name nor an address")
	}
	if addr.Zone() != "" {
		return host{}, errors.New("an address with a zone")
	}
	return host{addr: addr.Unmap()}, nil
}

// checkLabel holds one label to letters, digits and inner hyphens.
func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("an empty label")
	case len(label) > 63:
		return fmt.Errorf("a label of %d bytes, 63 at most", len(label))
	case label[0] == '-' || label[len(label)-1] == '-':
		return errors.New("a label begins or ends with a hyphen")
	}
	for i := range len(label) {
		switch c := label[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-':
		default:
			return fmt.Errorf("%q is not a letter, digit or hyphen", rune(c))
		}
	}
	return nil
}

// numeric reports whether a host ending in this label would be read as an
// IPv4 number by some parser (the URL standard's "ends in a number").
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// parseAuthority reads "host:port", or "host" where port has a default other
// than 0. IPv6 must stand in brackets.
func parseAuthority(text string, fallback int) (host, int, error) {
	name, portText, hasPort := text, "", false
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return host{}, 0, errors.New("a bracket is not closed")
		}
		name = text[:end+1]
		rest := text[end+1:]
		if portText, hasPort = strings.CutPrefix(rest, ":"); !hasPort && rest != "" {
			return host{}, 0, errors.New("neither a name nor an address")
		}
	} else if i := strings.IndexByte(text, ':'); i >= 0 {
		name, portText, hasPort = text[:i], text[i+1:], true
	}
	h, err := parseHost(name)
	if err != nil {
		return host{}, 0, err
	}
	if !hasPort {
		if fallback == 0 {
			return host{}, 0, errors.New("the port is missing")
		}
		return h, fallback, nil
	}
	port, err := parsePort(portText)
	if err != nil {
		return host{}, 0, err
	}
	return h, port, nil
}

// parsePort reads 1 to 65535 in plain decimal.
func parsePort(text string) (int, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || text[0] == '0' || text[0] == '+' {
		return 0, errors.New("a port is a number from 1 to 65535")
	}
	return int(port), nil
}
