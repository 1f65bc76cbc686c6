package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// maxEntries bounds a rule set; more is a mistake or an attack on the fold.
const maxEntries = 4096

// defaultRule is what Verdict.Rule says where no entry decided.
const defaultRule = "default deny"

// Rules say which hosts may be reached. The zero value denies everything.
type Rules struct {
	allow []entry
	deny  []entry
}

// entry is one line of a rule set.
type entry struct {
	text string // as it was written
	kind kind
	host host // exact: the host; under: what the name must end in, with its dot
	port int  // 0: the web's own ports, 443 and 80; for a deny entry every port
}

// kind is how much of the world an entry is about.
type kind int

// The kinds, least specific first: the most specific entry that allows a host
// is the one a verdict names.
const (
	anyHost kind = iota // "*"
	under               // "*.example.com"
	exact               // "example.com", "192.0.2.1"
)

func (e *entry) String() string { return e.text }

// Verdict is the answer of a rule set.
type Verdict struct {
	Allowed bool
	Rule    string // the entry that decided, as it was written, or "default deny"
	Reason  string // why it is denied, one line; empty when allowed

	// exactPort tells that the rule names this very port, so that what is
	// spoken there is not ours to know.
	exactPort bool
}

// Parse reads a rule set. An entry is one of
//
//	api.example.com      this host on ports 443 and 80
//	api.example.com:22   this host on this port only, whatever is spoken there
//	*.example.com        every host under example.com, not example.com itself
//	*                    every public host
//	1.1.1.1, [2620:fe::fe]        a public address on ports 443 and 80
//	127.0.0.1:8443, [::1]:8443    exactly this address and port: the only way
//	                              to reach a private, loopback, link-local or
//	                              metadata address
//	!evil.example        never this host, on any port; !host:port on that port.
//	                     Deny beats allow, in whatever order they stand.
//
// Names match as wholes and at label boundaries. The error names the entry by
// its index, counted from 0, and its text.
func Parse(entries []string) (Rules, error) {
	if len(entries) > maxEntries {
		return Rules{}, fmt.Errorf("reading network rules: %d entries, %d at most", len(entries), maxEntries)
	}
	var r Rules
	for i, text := range entries {
		body, deny := strings.CutPrefix(text, "!")
		e, err := parseEntry(body)
		if err == nil && !deny {
			err = e.allowable()
		}
		if err != nil {
			return Rules{}, fmt.Errorf("reading network rules: entry %d (%.80q): %w", i, text, err)
		}
		e.text = text
		if deny {
			r.deny = append(r.deny, e)
		} else {
			r.allow = append(r.allow, e)
		}
	}
	return r, nil
}

func parseEntry(text string) (entry, error) {
	if rest, ok := strings.CutPrefix(text, "*"); ok && (rest == "" || rest[0] == ':') {
		e := entry{kind: anyHost}
		if rest == "" {
			return e, nil
		}
		port, err := parsePort(rest[1:])
		e.port = port
		return e, err
	}
	e := entry{kind: exact}
	if rest, ok := strings.CutPrefix(text, "*."); ok {
		e.kind, text = under, rest
	}
	if strings.Contains(text, "*") {
		return entry{}, errors.New("a star stands alone or as the first label")
	}
	const none = -1
	h, port, err := parseAuthority(text, none)
	if err != nil && strings.Count(text, ":") > 1 {
		h, err = parseHost(text) // an address without brackets has no port
		port = none
	}
	if err != nil {
		return entry{}, err
	}
	if e.kind == under && h.isAddr() {
		return entry{}, errors.New("addresses have no wildcard")
	}
	if e.kind == under {
		h.name = "." + h.name
	}
	e.host = h
	if port != none {
		e.port = port
	}
	return e, nil
}

// allowable refuses entries that would look as if they opened something and
// never do.
func (e entry) allowable() error {
	if e.kind == anyHost {
		return nil
	}
	if e.host.local() {
		return errors.New("this machine is listed by address and port, like 127.0.0.1:8443")
	}
	if !e.host.isAddr() {
		return nil
	}
	if !reachable(e.host.addr) {
		return errors.New("no single host has this address")
	}
	if word := reserved(e.host.addr); word != "" && e.port == 0 {
		return fmt.Errorf("%s address is listed with its port, like %s", word, e.host.authority(8443, 0))
	}
	return nil
}

// Entries gives the rule set as Parse reads it, allow entries first.
func (r Rules) Entries() []string {
	var out []string
	for _, e := range slices.Concat(r.allow, r.deny) {
		out = append(out, e.text)
	}
	return out
}

// Decide answers whether host, a name or an address in whatever spelling, may
// be reached on port. A name that is allowed can still be refused when its
// addresses are known: see [Proxy].
func (r Rules) Decide(host string, port int) Verdict {
	h, err := parseHost(host)
	if err != nil {
		return Verdict{Rule: defaultRule, Reason: "not a host: " + err.Error()}
	}
	return r.decide(h, port)
}

func (r Rules) decide(h host, port int) Verdict {
	if port < 1 || port > 65535 {
		return Verdict{Rule: defaultRule, Reason: fmt.Sprintf("%d is not a port", port)}
	}
	if e := r.denied(h, port); e != nil {
		return Verdict{Rule: e.text, Reason: "denied by the rule " + e.text}
	}
	if h.local() {
		return Verdict{Rule: defaultRule, Reason: fmt.Sprintf("%s is this machine: only an address with its port, like 127.0.0.1:%d, is ever allowed", h, port)}
	}
	if h.isAddr() && !r.exact(h.addr, port) {
		if word := reserved(h.addr); word != "" {
			return Verdict{Rule: defaultRule, Reason: fmt.Sprintf("%s is %s address: only the entry %s allows it", h, word, h.authority(port, 0))}
		}
	}
	var best, otherPort *entry
	for i := range r.allow {
		e := &r.allow[i]
		switch {
		case !e.matches(h):
		case e.port != port && (e.port != 0 || !webPort(port)):
			otherPort = e
		case best == nil || e.rank() > best.rank():
			best = e
		}
	}
	if best != nil {
		return Verdict{Allowed: true, Rule: best.text, exactPort: best.port != 0}
	}
	if otherPort != nil {
		return Verdict{Rule: defaultRule, Reason: fmt.Sprintf("the rule %s does not cover port %d: only the entry %s allows it", otherPort, port, h.authority(port, 0))}
	}
	return Verdict{Rule: defaultRule, Reason: "no rule allows " + h.String()}
}

// denied is the deny entry about h and port, or nil.
func (r Rules) denied(h host, port int) *entry {
	for i := range r.deny {
		if e := &r.deny[i]; e.matches(h) && (e.port == 0 || e.port == port) {
			return e
		}
	}
	return nil
}

// exact reports whether this very address and port is listed.
func (r Rules) exact(addr netip.Addr, port int) bool {
	return slices.ContainsFunc(r.allow, func(e entry) bool {
		return e.kind == exact && e.host.isAddr() && e.host.addr == addr && e.port == port
	})
}

func (e *entry) matches(h host) bool {
	switch e.kind {
	case anyHost:
		return true
	case under:
		return !h.isAddr() && strings.HasSuffix(h.name, e.host.name)
	case exact:
		return e.host == h
	}
	return false
}

// rank orders entries by how much they say: a port of their own first, since
// it changes what may be spoken, then the kind, then the longer name.
func (e *entry) rank() int {
	n := int(e.kind)<<10 + len(e.host.name)
	if e.port != 0 {
		n += 1 << 20
	}
	return n
}

// webPort reports whether port is one that entries without a port cover.
func webPort(port int) bool { return port == 443 || port == 80 }
