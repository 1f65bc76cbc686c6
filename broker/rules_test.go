package broker

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestOnlyPlainBranchesOfAgentsPassCheckRef(t *testing.T) {
	for _, ref := range []string{"refs/heads/fletch/amber-river", "refs/heads/x", "refs/heads/a.b/c_d-2", "refs/heads/maintenance"} {
		if err := CheckRef(ref, "main", "release/1.0"); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, ref := range []string{
		"", "main", "fletch/amber", "HEAD", "refs/heads/", "refs/heads/main", "refs/heads/master", "refs/heads/Main", "refs/heads/head",
		"refs/heads/HEAD", "refs/tags/v1", "refs/heads/Fletch", "refs/heads/-x", "refs/heads/a/-x", "refs/heads/a//b", "refs/heads/a..b",
		"refs/heads/a.lock", "refs/heads/a.lock/b", "refs/heads/.a", "refs/heads/a/.b", "refs/heads/a/", "refs/heads/a.", "refs/heads/a b",
		"refs/heads/a\n", "refs/heads/a:b", "refs/heads/a^", "refs/heads/a~1", "refs/heads/a@{1}", "refs/heads/a*", "refs/heads/a\x00", "refs/heads/é",
		"refs/heads/$(id)", "refs/heads/refs/heads/x", "refs/heads/" + strings.Repeat("a", 102), "refs/heads/" + strings.Repeat("a", 40),
		"+refs/heads/x", "refs/heads/release/1.0", "refs/heads/trunk", "refs/pull/1/head", "refs/notes/x",
	} {
		if err := CheckRef(ref, "refs/heads/Trunk", "release/1.0"); !errors.Is(err, ErrRef) || hint(err) == "" {
			t.Errorf("%q passed: %v", ref, err)
		}
	}
}

func TestSanitizeLeavesOnlyPrintableText(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"plain":                              "plain",
		"remote: \x1b[31mprotected\x1b[m ok": "remote: protected ok",
		"two\nlines\there":                   "two lines here",
		"\x1b]0;title\x07":                   "\uFFFD]0;title\uFFFD",
		"a\u202Eb\u200Bc\u2066d":             "a\uFFFDb\uFFFDc\uFFFDd",
		"bad\xffbyte":                        "bad\uFFFDbyte",
		"\u009b2Jx":                          "\uFFFD2Jx",
		"grün 漢字":                            "grün 漢字",
		"  padded \n":                        "padded",
	} {
		if got := Sanitize(in, 200); got != want {
			t.Errorf("Sanitize(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Sanitize("abcdefgh", 6); got != "abc…" {
		t.Errorf("cut: %q", got)
	}
	if got := Sanitize("abcdef", 6); got != "abcdef" {
		t.Errorf("exact: %q", got)
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("remote: \x1b[31mno\x1b[m", 20)
	f.Add("漢字漢字", 5)
	f.Add("\xff\xfe\u202e", 1)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		got := Sanitize(s, limit)
		if len(got) > max(0, limit) || !utf8.ValidString(got) {
			t.Errorf("Sanitize(%q, %d) = %q", s, limit, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) && r != utf8.RuneError {
				t.Errorf("Sanitize(%q, %d) kept %U", s, limit, r)
			}
		}
	})
}

func FuzzCheckRef(f *testing.F) {
	f.Add("refs/heads/fletch/amber-river")
	f.Add("refs/heads/a..b")
	f.Fuzz(func(t *testing.T, ref string) {
		if CheckRef(ref) != nil {
			return
		}
		branch := strings.TrimPrefix(ref, "refs/heads/")
		if branch == ref || strings.ContainsAny(branch, " ~^:?*[\\@{}$\"'\n\x00") || strings.Contains(branch, "..") ||
			strings.HasPrefix(branch, "-") || strings.HasSuffix(branch, ".lock") || strings.ToLower(branch) != branch {
			t.Errorf("%q passed", ref)
		}
	})
}
