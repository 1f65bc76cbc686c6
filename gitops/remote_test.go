package gitops

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckRemoteKeepsPlainURLsAndStripsUsers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://github.com/acme/shop.git":          "https://github.com/acme/shop.git",
		"https://ada:hunter2@github.com/acme/shop":  "https://github.com/acme/shop",
		"https://hunter2@github.com:8443/acme/shop": "https://github.com:8443/acme/shop",
		"HTTPS://github.com/acme/shop":              "https://github.com/acme/shop",
		"ssh://git@host.example:22/acme/shop.git":   "ssh://git@host.example:22/acme/shop.git",
		"ssh://git:pw@host.example/~ada/shop.git":   "ssh://git@host.example/~ada/shop.git",
		"git@github.com:acme/shop.git":              "git@github.com:acme/shop.git",
		"host.example:acme/shop.git":                "host.example:acme/shop.git",
		"http://127.0.0.1:8101/shop.git":            "http://127.0.0.1:8101/shop.git",
		"http://ada:pw@localhost:8101/shop.git":     "http://localhost:8101/shop.git",
		"http://[::1]:8101/shop.git":                "http://[::1]:8101/shop.git",
	} {
		got, err := CheckRemote(raw)
		if err != nil || got != want {
			t.Errorf("%q gives %q, %v; want %q", raw, got, err, want)
		}
		if again, err := CheckRemote(got); err != nil || again != got {
			t.Errorf("%q is not stable: %q, %v", got, again, err)
		}
	}
}

func TestCheckRemoteRefusesWhatCouldBeSomethingElse(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "/srv/shop.git", "./shop", "../shop", "file:///srv/shop.git", "git://host/shop.git", "ext::sh -c id", "fd::17",
		"http://github.com/acme/shop", "http://10.0.0.1/shop.git", "http://127.0.0.1.evil.example/x", "ftp://host/x",
		"-oProxyCommand=id:x", "ssh://-oProxyCommand=id/x", "ssh://-u@host/x", "-u@host:x", "host:-x", "ssh://host/-x", "ssh://host/~-x/../-y",
		"https://host/a%0ahost=evil", "https://host/a%0d", "https://host%0a.evil/x", "https://host/../x", "https://host/a/../../x",
		"https://host/x?y", "https://host/x#y", "https:///x", "https://host", "https://host/", "https://hóst/x", "https://host/\u202ex",
		"https://host/x y", "https://host/x\ny", "https://host/x\x00", "C:\\shop", "C:/shop", "https://ho st/x", "https://host\\@evil/x",
		"https://a@b@c/x`id`", strings.Repeat("a", 3000), "https+ext::x://y/z", "host:a::b",
	} {
		got, err := CheckRemote(raw)
		if !errors.Is(err, ErrRemote) {
			t.Errorf("%q gives %q, %v", raw, got, err)
		}
	}
}

func TestARefusedRemoteDoesNotShowItsToken(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"ftp://ada:hunter2@host/x", "https://ada:hunter2@host/x?y", "https://ada:hun/ter2@host/x?hunter2@y", "https://hunter2@/",
	} {
		_, err := CheckRemote(raw)
		if err == nil || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func FuzzCheckRemote(f *testing.F) {
	for _, seed := range []string{"https://ada:pw@host:1/a/b.git", "git@host:a/b", "ssh://-o@host/x", "https://host/%0a", "ext::x", "http://[::1]/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := CheckRemote(raw)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("%q: control bytes in %q", raw, err)
			}
			return
		}
		if again, err := CheckRemote(got); err != nil || again != got {
			t.Fatalf("%q gives %q, which gives %q, %v", raw, got, again, err)
		}
		if strings.HasPrefix(got, "-") || strings.Contains(got, "/-") || strings.Contains(got, "..") && strings.Contains(got, "/../") || strings.ContainsAny(got, " \n\r\t\x00%") {
			t.Fatalf("%q gives %q", raw, got)
		}
		if p := transport(got); p != "https" && p != "ssh" && p != "http" {
			t.Fatalf("%q uses %q", got, p)
		}
	})
}
