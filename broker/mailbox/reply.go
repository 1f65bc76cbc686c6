package mailbox

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxLines   = 200
	maxLine    = 500 // bytes
	maxRefs    = 512 << 10
	maxRefName = 200
)

// Exit codes that a reply asks the agent's command to end with.
const (
	CodeDone    = 0
	CodeRefused = 1
	CodeUsage   = 2
	CodeWaiting = 3 // not answered yet
)

// Reply is an answer to an agent. The zero value refuses.
type Reply struct {
	OK bool
	// Lines is text for the agent. It is made plain here: see encode.
	Lines []string
	// Code is the exit code for the agent's command, 0 to 125; 0 with OK
	// false is sent as 1, another code with OK true as 0.
	Code int
	// Refs maps full ref names to object names, for the operation that
	// lists them. Those that are not plain ASCII names, and what passes
	// 512 KiB, are left out.
	Refs map[string]string
}

// Refuse is a reply that says no in one or more lines.
func Refuse(lines ...string) Reply { return Reply{Lines: lines, Code: CodeRefused} }

// UnknownOperation is the reply to an op that is not in known.
func UnknownOperation(op string, known ...string) Reply {
	return Reply{Code: CodeUsage, Lines: []string{
		"unknown operation '" + op + "'; fletch knows: " + strings.Join(known, ", "),
	}}
}

var (
	refForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/@+=,-]*$`)
	objectForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// encode gives the one line that the helpers inside a sandbox read without a
// JSON parser:
//
//	{"id":"a1","ok":true,"code":0,"refs":"<object> <ref>\n…","text":"line\nline"}
//
// The keys stand in this order, each once. No value holds a quote, and the
// only backslash is that of \n between lines: in text, " becomes ', \ becomes
// /, and what does not print (control, bidi, zero-width, bad bytes) becomes
// U+FFFD. It is JSON all the same.
func (r Reply) encode(id string) []byte {
	code := r.Code
	switch {
	case r.OK:
		code = CodeDone
	case code <= 0 || code > 125:
		code = CodeRefused
	}
	var refs []string
	size := 0
	for _, name := range slices.Sorted(maps.Keys(r.Refs)) {
		object := r.Refs[name]
		if len(name) > maxRefName || !refForm.MatchString(name) || !objectForm.MatchString(object) {
			continue
		}
		if size += len(name) + len(object) + 3; size > maxRefs {
			break
		}
		refs = append(refs, object+" "+name)
	}
	var lines []string
	for _, line := range r.Lines {
		for part := range strings.Lines(line) {
			if len(lines) < maxLines {
				lines = append(lines, plain(strings.TrimRight(part, "\r\n"), maxLine))
			}
		}
	}
	return fmt.Appendf(nil, `{"id":"%s","ok":%s,"code":%d,"refs":"%s","text":"%s"}`+"\n",
		id, strconv.FormatBool(r.OK), code, strings.Join(refs, `\n`), strings.Join(lines, `\n`))
}

// plain makes s printable text without quotes and backslashes, limit bytes at
// most.
func plain(s string, limit int) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"':
			r = '\''
		case r == '\\':
			r = '/'
		case r == '\t':
			r = ' '
		case !unicode.IsPrint(r):
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
