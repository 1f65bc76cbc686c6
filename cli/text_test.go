package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestPlainShowsWhatATerminalWouldObey(t *testing.T) {
	for text, want := range map[string]string{
		"fine, even ü and 漢":  "fine, even ü and 漢",
		"two\nlines\tand tab": "two\nlines\tand tab",
		"\x1b[31mred":         "<U+001B>[31mred",
		"back\rwards":         "back<U+000D>wards",
		"csi \u009b2J":        "csi <U+009B>2J",
		"bidi \u202egnp.exe":  "bidi <U+202E>gnp.exe",
		"tag \U000e0041":      "tag <U+E0041>",
		"zero\x00":            "zero<U+0000>",
		"bad \xff":            "bad \uFFFD",
	} {
		if got := plain(text); got != want {
			t.Errorf("plain(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestACellIsOneCellWhateverItHolds(t *testing.T) {
	if got := cell("a\tb\nc\x1b"); got != "a b c<U+001B>" {
		t.Errorf("%q", got)
	}
}

// obeyed finds what a terminal would act on.
func obeyed(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	})
}

func FuzzPlainLetsNothingThroughThatATerminalObeys(f *testing.F) {
	for _, seed := range []string{"", "a\x1b]52;c;aGk=\x07b", "\u202e", "\xc3\x28", "\x9b1m", "\U000e0001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := plain(text); obeyed(got) {
			t.Errorf("plain(%q) = %q", text, got)
		}
		if got := cell(text); strings.ContainsAny(got, "\n\t") {
			t.Errorf("cell(%q) = %q", text, got)
		}
	})
}

func TestLinesOfOutputLoseTheirSequencesAndKeepTheirText(t *testing.T) {
	for written, want := range map[string]string{
		"one\r\ntwo\r\n":                   "one\ntwo\n",
		"\x1b[1mbold\x1b[0m\n":             "bold\n",
		"\x1b]0;title\x07text\n":           "text\n",
		"no end":                           "no end\n",
		"progress 1\rprogress 2\n":         "progress 1<U+000D>progress 2\n",
		strings.Repeat("x", longestLine+3): strings.Repeat("x", longestLine) + "\nxxx\n",
	} {
		var out bytes.Buffer
		lines := &plainLines{out: &out}
		for part := []byte(written); len(part) > 0; {
			n := min(len(part), 7)
			if _, err := lines.Write(part[:n]); err != nil {
				t.Fatal(err)
			}
			part = part[n:]
		}
		if err := lines.flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%.60q became %.60q, want %.60q", written, out.String(), want)
		}
	}
}

func FuzzLinesOfOutputAreTheSameHoweverTheyArrive(f *testing.F) {
	f.Add([]byte("a\x1b[3"), []byte("1mb\n"))
	f.Add([]byte("\xe6\xbc"), []byte("\xa2\r\n\n"))
	f.Add([]byte("\x1b]8;;http://x"), []byte("\x1b\\\\text\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var split, whole bytes.Buffer
		one, two := &plainLines{out: &whole}, &plainLines{out: &split}
		_, _ = one.Write(append(bytes.Clone(first), second...))
		_, _ = two.Write(first)
		_, _ = two.Write(second)
		_, _ = one.flush(), two.flush()
		if whole.String() != split.String() && len(first)+len(second) < longestLine {
			t.Errorf("whole %q, in two parts %q", whole.String(), split.String())
		}
		if obeyed(whole.String()) {
			t.Errorf("%q", whole.String())
		}
	})
}

func TestHowLongAgoIsSaidRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "just now", -time.Hour: "just now", 5 * time.Minute: "5 min ago",
		119 * time.Minute: "1 h ago", 47 * time.Hour: "47 h ago", 49 * time.Hour: "2 days ago",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestWhatIsNotIncludedIsCounted(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "1 uncommitted file is", 3: "3 uncommitted files are"} {
		if got := notIncluded(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
