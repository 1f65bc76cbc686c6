package gitops

import (
	"strings"
	"testing"
	"unicode/utf8"
)

const zeros = "0000000000000000000000000000000000000000"

func FuzzParseRaw(f *testing.F) {
	id := strings.Repeat("1", 40)
	f.Add([]byte(":100644 100755 " + id + " " + id + " M\x00a b\x001\t2\ta b\x00"))
	f.Add([]byte(":100644 100644 " + id + " " + id + " R090\x00old\x00new\xff\x003\t0\t\x00old\x00new\xff\x00"))
	f.Add([]byte(":000000 120000 " + zeros + " " + id + " A\x00l\x00-\t-\tl\x00"))
	f.Add([]byte(":000000 120000 " + zeros + " " + id + " A\x00l\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		all, err := parseRaw(out)
		if err != nil {
			return
		}
		for _, c := range all {
			if !utf8.ValidString(c.Path) || len(c.Change) != 1 {
				t.Fatalf("%q gives %+v", out, c)
			}
		}
	})
}

func TestParseRawReadsRenamesAndBinaries(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("1", 40)
	all, err := parseRaw([]byte(":100644 100644 " + id + " " + id + " R090\x00old\x00new\x00:000000 120000 " + zeros + " " + id + " A\x00l\x003\t4\t\x00old\x00new\x00-\t-\tl\x00"))
	if err != nil || len(all) != 2 || all[0].Old != "old" || all[0].Path != "new" || all[0].Added != 3 || all[0].Removed != 4 || !all[1].Binary || all[1].Mode != "120000" {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := parseRaw([]byte(":100644 100644 " + id + " " + id + " M\x00a\x001\t1\tb\x00")); err == nil {
		t.Error("counts of another path were taken")
	}
}

func FuzzParseCommits(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add([]byte(id + "\x00" + id + " " + id + "\x00Ada\x00a@b\x00sub\xffject\x00body\n\x00\x01\n"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, out []byte) {
		all, err := parseCommits(out)
		if err != nil {
			return
		}
		for _, c := range all {
			if !c.ID.Valid() || !utf8.ValidString(c.Message) || !utf8.ValidString(c.Author) {
				t.Fatalf("%q gives %+v", out, c)
			}
		}
	})
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[31mb\u202ec\r\nd\te\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got := oneLine(s, 100); hasUnsafe(got) || len(got) > 100 {
			t.Fatalf("%q gives %q", s, got)
		}
		if got := quote(s); hasUnsafe(got) {
			t.Fatalf("%q gives %q", s, got)
		}
	})
}

func FuzzCheckBranch(f *testing.F) {
	for _, seed := range []string{"fletch/amber-river", "-x", "a..b", "refs/heads/main", "a/.b", "a.lock", "x\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if checkBranch(s) != nil {
			return
		}
		if strings.ContainsAny(s, " :+~^?*[\\@{}$`'\"\n\t") || strings.Contains(s, "..") || strings.HasPrefix(s, "-") || hasUnsafe(s) {
			t.Fatalf("%q is taken", s)
		}
	})
}
