package mailbox

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestReplyIsOneLineThatNeedsNoParser(t *testing.T) {
	hostile := Reply{
		Code:  CodeRefused,
		Lines: []string{`say "no" \ or` + "\x1b[2J\u202e\x00\xff", "two\nlines", ""},
		Refs: map[string]string{
			"refs/heads/main":      strings.Repeat("a", 40),
			`refs/heads/"quote`:    strings.Repeat("b", 40),
			"refs/heads/a b":       strings.Repeat("b", 40),
			"refs/heads/$(id)":     strings.Repeat("b", 40),
			"refs/heads/bad":       "HEAD",
			"-refs/heads/option":   strings.Repeat("b", 40),
			"refs/heads/fletch/ok": strings.Repeat("c", 64),
		},
	}
	want := `{"id":"m1","ok":false,"code":1,"refs":"` + strings.Repeat("c", 64) + ` refs/heads/fletch/ok\n` + strings.Repeat("a", 40) +
		` refs/heads/main","text":"say 'no' / or�[2J���\ntwo\nlines"}` + "\n"
	if got := string(hostile.encode("m1")); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	for _, c := range []struct {
		r    Reply
		want string
	}{
		{Reply{}, `"ok":false,"code":1,`},
		{Reply{OK: true, Code: 9}, `"ok":true,"code":0,`},
		{Reply{Code: CodeWaiting}, `"ok":false,"code":3,`},
		{Reply{Code: 1000}, `"ok":false,"code":1,`},
		{UnknownOperation("gh", "push", "refs"), `"text":"unknown operation 'gh'; fletch knows: push, refs"`},
	} {
		if got := string(c.r.encode("m1")); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c.r, got)
		}
	}
}

func TestReplyHasBounds(t *testing.T) {
	r := Reply{Refs: map[string]string{}}
	for range 10_000 {
		r.Lines = append(r.Lines, strings.Repeat("漢", 500))
		name := make([]byte, 0, 100)
		for n := len(r.Refs); len(name) < 100; n /= 26 {
			name = append(name, byte('a'+n%26))
		}
		r.Refs["refs/heads/"+string(name)] = strings.Repeat("a", 40)
	}
	if n := len(r.encode("m1")); n > maxLetter {
		t.Errorf("a reply of %d bytes", n)
	}
}

func FuzzReply(f *testing.F) {
	f.Add("plain", "refs/heads/main", 0, true)
	f.Add("\"\\\x00\u202e", "refs/heads/\"", 3, false)
	f.Fuzz(func(t *testing.T, line, ref string, code int, good bool) {
		r := Reply{OK: good, Code: code, Lines: []string{line}, Refs: map[string]string{ref: strings.Repeat("a", 40)}}
		out := r.encode("m1")
		var got answer
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		if got.OK != good || good != (got.Code == 0) || !utf8.Valid(out) {
			t.Errorf("%+v became %+v", r, got)
		}
		body, _ := strings.CutSuffix(string(out), "\n")
		for _, c := range body {
			if !unicode.IsPrint(c) && c != utf8.RuneError {
				t.Errorf("%U in %q", c, body)
			}
		}
		// What the sh helpers rely on: quotes only around keys and values,
		// backslashes only before n.
		if strings.Count(body, `"`) != 16 || strings.Count(body, `\`) != strings.Count(body, `\n`) {
			t.Errorf("a helper would misread %q", body)
		}
	})
}

func FuzzLetter(f *testing.F) {
	f.Add([]byte(`{"id":"m1","op":"push","args":{"ref":"x"}}`))
	f.Add([]byte(`{"id":"m1","id":"m1"}`))
	f.Add([]byte(`{"op":"push","id":"m1"}   `))
	f.Add([]byte(strings.Repeat("[", 1000)))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := parse("m1", body)
		if err != nil {
			if plain(err.Error(), 200) != err.Error() && !strings.ContainsAny(err.Error(), `"\`) {
				t.Errorf("error %q", err)
			}
			return
		}
		// Whatever passes means the same to a plain reader of JSON.
		var same struct {
			ID   string          `json:"id"`
			Op   string          `json:"op"`
			Args json.RawMessage `json:"args"`
		}
		if err := strict(body, &same); err != nil || same.ID != m.ID || same.Op != m.Op || !json.Valid(m.Args) || m.ID != "m1" {
			t.Errorf("%q: %+v, plainly %+v (%v)", body, m, same, err)
		}
	})
}
