package egress

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func rules(t *testing.T, entries ...string) Rules {
	t.Helper()
	r, err := Parse(entries)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestZeroRulesAndEmptyListDenyEverything(t *testing.T) {
	for name, r := range map[string]Rules{"zero": {}, "empty": rules(t), "only deny": rules(t, "!evil.example")} {
		for _, host := range []string{"api.anthropic.com", "1.1.1.1", "127.0.0.1", "localhost"} {
			if v := r.Decide(host, 443); v.Allowed || v.Rule != "default deny" || v.Reason == "" {
				t.Errorf("%s rules: Decide(%s) = %+v, want a default denial with a reason", name, host, v)
			}
		}
	}
}

func TestVerdictNamesTheRuleThatDecided(t *testing.T) {
	r := rules(t, "*", "*.npmjs.org", "registry.npmjs.org", "git.example:22", "!evil.example", "!*.evil.example", "!shop.example:80", "127.0.0.1:8443", "[::1]:8443", "1.1.1.1")
	tests := []struct {
		host    string
		port    int
		allowed bool
		rule    string
	}{
		{"registry.npmjs.org", 443, true, "registry.npmjs.org"},
		{"REGISTRY.npmjs.org.", 443, true, "registry.npmjs.org"},
		{"www.npmjs.org", 443, true, "*.npmjs.org"},
		{"a.b.npmjs.org", 80, true, "*.npmjs.org"},
		{"npmjs.org", 443, true, "*"},
		{"evil.example", 443, false, "!evil.example"},
		{"EVIL.example.", 443, false, "!evil.example"},
		{"a.evil.example", 443, false, "!*.evil.example"},
		{"notevil.example", 443, true, "*"},
		{"shop.example", 443, true, "*"},
		{"shop.example", 80, false, "!shop.example:80"},
		{"git.example", 22, true, "git.example:22"},
		{"git.example", 443, true, "*"},
		{"git.example", 25, false, "default deny"},
		{"127.0.0.1", 8443, true, "127.0.0.1:8443"},
		{"127.0.0.1", 8444, false, "default deny"},
		{"::ffff:127.0.0.1", 8443, true, "127.0.0.1:8443"},
		{"[::ffff:127.0.0.1]", 443, false, "default deny"},
		{"::1", 8443, true, "[::1]:8443"},
		{"1.1.1.1", 443, true, "1.1.1.1"},
		{"1.1.1.1.", 443, true, "1.1.1.1"},
		{"1.1.1.2", 443, true, "*"},
		{"1.1.1.2", 53, false, "default deny"},
		{"localhost", 443, false, "default deny"},
		{"localhost", 8443, false, "default deny"},
		{"a.localhost.", 80, false, "default deny"},
		{"notlocalhost", 80, true, "*"},
	}
	for _, tt := range tests {
		v := r.Decide(tt.host, tt.port)
		if v.Allowed != tt.allowed || v.Rule != tt.rule || (v.Reason == "") != tt.allowed {
			t.Errorf("Decide(%s, %d) = %+v, want allowed %v by %q", tt.host, tt.port, v, tt.allowed, tt.rule)
		}
	}
}

func TestNamesMatchWholeAndAtLabelBoundaries(t *testing.T) {
	r := rules(t, "allowed.com", "*.wild.com")
	for _, host := range []string{
		"EVIL.com.", "allowed.com.evil.com", "notallowed.com", "allowed.com..", ".allowed.com", "allowed.co",
		"wild.com", "xwild.com", "a.wild.com.evil.com", "a..wild.com", "www.allowed.com",
	} {
		if v := r.Decide(host, 443); v.Allowed {
			t.Errorf("%q is allowed by %s", host, v.Rule)
		}
	}
	for _, host := range []string{"allowed.com", "Allowed.COM", "allowed.com.", "a.wild.com", "a.b.WILD.com."} {
		if v := r.Decide(host, 443); !v.Allowed {
			t.Errorf("%q is denied: %s", host, v.Reason)
		}
	}
}

func TestHostsOutsideTheGrammarAreRefusedEvenUnderAStar(t *testing.T) {
	long := strings.Repeat("a", 63)
	r := rules(t, "*")
	for _, host := range []string{
		"", ".", "..", "a..b", "-a.com", "a-.com", "a_b.com", "evil.com\x00.allowed.com", "evil.com%00.allowed.com",
		"fe80::1%eth0", "[fe80::1%25eth0]", "[::1", "::1]", "[1.2.3.4]", "[allowed.com]", "user@allowed.com", "user:pw@allowed.com",
		"bücher.example", "a b.com", "a\tb", "a\r\nb", "a/b", "a\\b", "a?b", "a#b", "*.com", "*", "a,b",
		"0177.0.0.1", "0x7f.0.0.1", "127.1", "2130706433", "0x7f000001", "127.0.0.1.1", "1.2.3.256", "1.2.3", "allowed.0x7f", "a.1", "1.2.3.04",
		long + "a.com", strings.Repeat("a.", 127) + "com", "xn--\u212a.com", "1.1.1.1:443", "allowed.com:443",
	} {
		if v := r.Decide(host, 443); v.Allowed || !strings.HasPrefix(v.Reason, "not a host: ") {
			t.Errorf("Decide(%q) = %+v, want a refusal by the grammar", host, v)
		}
	}
	for _, host := range []string{"a", "xn--bcher-kva.example", "1a.com", "a.b1", long + ".com", "r3---sn-x.example", "0x7g.com", "1.1.1.1.com"} {
		if v := r.Decide(host, 443); !v.Allowed {
			t.Errorf("Decide(%q) = %+v, want it allowed", host, v)
		}
	}
}

func TestPrivateAddressesNeedAnExactEntry(t *testing.T) {
	private := []string{
		"127.0.0.1", "127.255.0.3", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.100.100.200",
		"169.254.169.254", "168.63.129.16", "192.0.0.192", "198.18.0.1", "203.0.113.9",
		"::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1", "2001::1", "2001:db8::1", "3fff::1",
		"::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "::10.0.0.1", "4000::1",
	}
	star := rules(t, "*", "*:8443")
	for _, addr := range private {
		for _, port := range []int{443, 80, 8443} {
			if v := star.Decide(addr, port); v.Allowed {
				t.Errorf("a star allows %s:%d", addr, port)
			}
		}
		if _, err := Parse([]string{addr}); err == nil {
			t.Errorf("the entry %q needs a port", addr)
		}
		entry := netip.AddrPortFrom(netip.MustParseAddr(addr), 8443).String()
		exact := rules(t, entry)
		if v := exact.Decide(addr, 8443); !v.Allowed || v.Rule != entry {
			t.Errorf("the entry %s does not allow itself: %+v", entry, v)
		}
		if v := exact.Decide(addr, 443); v.Allowed {
			t.Errorf("the entry %s allows port 443", entry)
		}
	}
	for _, addr := range []string{"1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::1", "::ffff:1.1.1.1"} {
		if v := star.Decide(addr, 443); !v.Allowed {
			t.Errorf("a star denies the public address %s: %s", addr, v.Reason)
		}
	}
}

func TestParseNamesTheBadEntry(t *testing.T) {
	for _, bad := range []string{
		"", "!", "!!a.com", "https://a.com", "a.com/", "a.com:", "a.com:0", "a.com:65536", "a.com:080", "a.com:+80", "a.com:-1", "a.com:http", "a.com:80:80",
		"*.", "*.*.com", "a*.com", "a.*.com", "*a.com", "**", "*:x", "*.1.2.3.4", "*.[::1]", " a.com", "a.com ", "10.0.0.0/8", "a_b.com",
		"localhost", "localhost:80", "x.localhost", "*.localhost", "127.0.0.1", "10.0.0.1", "[::1]", "::1", "0.0.0.0:80", "[::]:80", "224.0.0.1:80", "255.255.255.255:80",
	} {
		_, err := Parse([]string{"fine.example", bad})
		if err == nil {
			t.Errorf("Parse takes %q", bad)
		} else if !strings.Contains(err.Error(), "entry 1 (") {
			t.Errorf("Parse(%q) does not say which entry: %v", bad, err)
		}
	}
	if _, err := Parse(make([]string, maxEntries+1)); err == nil {
		t.Error("Parse takes any number of entries")
	}
	fine := []string{"a.com", "*.a.com", "*", "*:8080", "a.com:22", "1.1.1.1", "2606:4700::1111", "[2606:4700::1111]:853", "127.0.0.1:1", "!localhost", "!10.0.0.1", "!*", "!*:25"}
	r := rules(t, fine...)
	got, want := r.Entries(), slices.Clone(fine)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("Entries() = %q, want %q", got, want)
	}
}

func TestDenyingEverythingBeatsAllowingEverything(t *testing.T) {
	if v := rules(t, "!*", "*", "a.com", "127.0.0.1:80").Decide("a.com", 443); v.Allowed || v.Rule != "!*" {
		t.Errorf("%+v", v)
	}
	if v := rules(t, "*:25", "!*:25").Decide("a.com", 25); v.Allowed {
		t.Errorf("%+v", v)
	}
}

func FuzzHostHasOneSpelling(f *testing.F) {
	for _, seed := range []string{"api.anthropic.com", "A.b.", "1.2.3.4", "::ffff:1.2.3.4", "[2606:4700::1]", "0x7f.1", "a..b", "xn--a", "%", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHost(text)
		if err != nil {
			return
		}
		again, err := parseHost(h.String())
		if err != nil || again != h {
			t.Fatalf("%q reads as %q, which reads as %q (%v)", text, h, again, err)
		}
		if h.isAddr() && (!h.addr.IsValid() || h.addr.Is4In6() || h.addr.Zone() != "") {
			t.Fatalf("%q reads as the address %v", text, h.addr)
		}
		if strings.Trim(h.String(), "abcdefghijklmnopqrstuvwxyz0123456789-.:") != "" {
			t.Fatalf("%q reads as %q", text, h)
		}
	})
}

func FuzzParseKeepsPrivateAddressesShut(f *testing.F) {
	for _, seed := range []string{"*", "*:80", "!a", "a.com:22", "127.0.0.1:80", "[::1]:80", "*.com", "::1", "2002:7f00:1::"} {
		f.Add(seed, "127.0.0.1", 80)
	}
	f.Fuzz(func(t *testing.T, entry, host string, port int) {
		r, err := Parse([]string{entry})
		if err != nil {
			return
		}
		v := r.Decide(host, port)
		if v.Allowed == (v.Reason != "") || v.Rule == "" {
			t.Fatalf("%q: Decide(%q, %d) = %+v", entry, host, port, v)
		}
		if h, err := parseHost(host); v.Allowed && err == nil && h.isAddr() && reserved(h.addr) != "" && !r.exact(h.addr, port) {
			t.Fatalf("%q allows %q", entry, host)
		}
	})
}
