package egress

import (
	"fmt"
	"net"
	"net/netip"
)

// special lists every range that is not the public Internet, with the word
// for it (IANA special-purpose registries). IPv6 is the other way round, see
// reserved: only 2000::/3 is public at all.
var special = []struct {
	prefix netip.Prefix
	word   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier-NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud metadata"}, // Azure's, inside public space
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local"},       // 169.254.169.254 is metadata
	{netip.MustParsePrefix("172.16.0.0/12"), "a private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved"}, // broadcast is its last one

	{netip.MustParsePrefix("::/128"), "an unspecified"},
	{netip.MustParsePrefix("::1/128"), "a loopback"},
	{netip.MustParsePrefix("fc00::/7"), "a private"}, // fd00:ec2::254 and fd20:ce::254 are metadata
	{netip.MustParsePrefix("fe80::/10"), "a link-local"},
	{netip.MustParsePrefix("fec0::/10"), "a private"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast"},
	{netip.MustParsePrefix("2001::/23"), "a reserved"}, // Teredo among others: it hides an IPv4 address
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation"},
}

var (
	publicIPv6 = netip.MustParsePrefix("2000::/3")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
)

// reserved says what kind of address that must not be reached by a rule about
// public hosts addr is ("a private", "a loopback", …), or "" for a public one.
// An address that carries an IPv4 address inside is judged by that one.
func reserved(addr netip.Addr) string {
	if !addr.IsValid() || addr.Zone() != "" {
		return "an unusable"
	}
	addr = addr.Unmap()
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.word
		}
	}
	if addr.Is4() {
		return ""
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return reserved(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToFour.Contains(addr):
		return reserved(netip.AddrFrom4([4]byte(b[2:6])))
	case !publicIPv6.Contains(addr):
		return "a reserved"
	}
	return ""
}

// reachable reports whether any connection to addr makes sense at all, even
// one that an exact entry lists.
func reachable(addr netip.Addr) bool {
	return addr.IsValid() && !addr.IsUnspecified() && !addr.IsMulticast() && addr != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// checkAddrs holds every answer for a host against the rules, not only the
// one that would be dialled: a name with one private address among public
// ones is an attempt to get there by a retry. It gives the answers unwrapped.
func (r Rules) checkAddrs(port int, answers []netip.Addr, own func() ([]netip.Addr, error)) ([]netip.Addr, error) {
	if len(answers) == 0 {
		return nil, fmt.Errorf("it has no address")
	}
	mine, err := own()
	if err != nil {
		return nil, fmt.Errorf("the addresses of this machine are unknown: %w", err)
	}
	checked := make([]netip.Addr, 0, len(answers))
	for _, addr := range answers {
		addr = addr.Unmap()
		if e := r.denied(host{addr: addr}, port); e != nil {
			return nil, fmt.Errorf("%s is denied by %s", addr, e)
		}
		if !r.exact(addr, port) {
			if word := reserved(addr); word != "" {
				return nil, fmt.Errorf("%s is %s address", addr, word)
			}
			for _, m := range mine {
				if m == addr {
					return nil, fmt.Errorf("%s is an address of this machine", addr)
				}
			}
		}
		checked = append(checked, addr)
	}
	return checked, nil
}

// ownAddrs lists the addresses of this machine: what listens on all of them
// is as private as what listens on loopback, even where one is public.
func ownAddrs() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range all {
		if prefix, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(prefix.IP); ok {
				own = append(own, addr.Unmap())
			}
		}
	}
	return own, nil
}
