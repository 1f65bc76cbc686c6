package sheet

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTheReasonIsEditedAsReadlineDoes(t *testing.T) {
	for keys, want := range map[string]string{
		"a b c":                              "abc|",
		"a b backspace":                      "a|",
		"a b ctrl+h":                         "a|",
		"a b left c":                         "ac|b",
		"a b ctrl+b ctrl+b c":                "c|ab",
		"a b home c end d":                   "cabd|",
		"a b ctrl+a right c":                 "ac|b",
		"a b ctrl+a ctrl+f ctrl+f ctrl+f c":  "abc|",
		"a b left ctrl+u":                    "|b",
		"a b c left left ctrl+k":             "a|",
		"a b left delete":                    "a|",
		"a b left ctrl+d ctrl+d":             "a|",
		"a _ b c ctrl+w":                     "a |",
		"a _ b _ ctrl+w":                     "a |",
		"a _ b ctrl+w ctrl+w ctrl+w":         "|",
		"a b _ c d alt+b alt+b x":            "x|ab cd",
		"a b _ c d home alt+f alt+f":         "ab cd|",
		"a b _ c d home alt+d":               "| cd",
		"e\u0301 x backspace backspace":      "|",
		"日 本 left left":                      "|日本",
		"backspace delete left right ctrl+w": "|",
		"a ctrl+y ctrl+c ctrl+x super+v":     "a|",
	} {
		s, now, _ := run(open(request(nil), 80, 23), t0, "x 1000")
		for _, key := range strings.Fields(keys) {
			k := Key{Name: key}
			if utf8.RuneCountInString(key) <= 2 {
				k.Text = strings.ReplaceAll(key, "_", " ")
			}
			s, _ = s.Update(k, now)
		}
		if got := s.reason.text[:s.reason.at] + "|" + s.reason.text[s.reason.at:]; got != want {
			t.Errorf("%q: got %q, want %q", keys, got, want)
		}
	}
}

func TestTheReasonIsOneBoundedLineWithoutControls(t *testing.T) {
	s, now, _ := run(open(request(nil), 80, 23), t0, "x 1000")
	s, _ = s.Update(Key{Text: "a\r\nb\tc\x1b[31md\u0085\xff" + strings.Repeat("ü", 400), Paste: true}, now)
	if got := s.reason.text; !strings.HasPrefix(got, "a b c[31md") || len(got) > reasonBytes || len(got) < reasonBytes-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	_, a := s.Update(press("enter"), now)
	if v := verdict(t, a); strings.ContainsFunc(v.Reason, unicode.IsControl) {
		t.Errorf("sends %q", v.Reason)
	}
}

func TestTheCursorOfTheReasonStaysInSight(t *testing.T) {
	for _, w := range []int{3, 10, 37} {
		for _, h := range []int{1, 2, 3} {
			f := field{}.insert(strings.Repeat("日本 word ", 12) + "\u202e")
			for {
				found := false
				for _, r := range f.rows(w, h) {
					for _, s := range r {
						found = found || s.tone == cursor
					}
					if w >= 10 && r.width() > w {
						t.Errorf("%d×%d: a row is %d wide", w, h, r.width())
					}
				}
				if !found {
					t.Fatalf("%d×%d: no cursor at %d", w, h, f.at)
				}
				if f.at == 0 {
					break
				}
				f, _ = f.edit("left")
			}
		}
	}
}

func FuzzReason(f *testing.F) {
	f.Add("a b", "left\nctrl+w\nx")
	f.Add("e\u0301\u200d👩\xff", "backspace\ndelete\nalt+b")
	f.Fuzz(func(t *testing.T, text, keys string) {
		line := field{}.insert(text)
		for _, k := range strings.SplitN(keys, "\n", 200) {
			edited, ok := line.edit(k)
			if !ok {
				edited = line.insert(k)
			}
			if line = edited; line.at < 0 || line.at > len(line.text) || len(line.text) > reasonBytes || !utf8.ValidString(line.text) || !utf8.ValidString(line.text[:line.at]) {
				t.Fatalf("after %q: %q at %d", k, line.text, line.at)
			}
			line.rows(20, 2)
		}
	})
}
