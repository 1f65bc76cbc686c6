package gitops

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is an error for a person: what is wrong, a stable word for scripts,
// and the way out.
type Fault struct {
	what string
	code string
	hint string
}

func (f *Fault) Error() string { return f.what }

// Code is the stable word for scripts; the Code constants list them all.
func (f *Fault) Code() string { return f.code }

// Hint is the way out, one line; empty when there is none.
func (f *Fault) Hint() string { return f.hint }

// Is makes two faults with one code equal, so that errors.Is works with the
// Err values of this package.
func (f *Fault) Is(target error) bool {
	other, ok := target.(*Fault)
	return ok && other.code == f.code
}

// The faults callers tell apart with errors.Is.
var (
	ErrNotRepository = &Fault{code: "not-a-repository"}
	ErrNoCommits     = &Fault{code: "no-commits"}
	ErrPartialClone  = &Fault{code: "partial-clone"}
	ErrNoSuchBase    = &Fault{code: "no-such-base"}
	ErrOwnFiles      = &Fault{code: "fletchs-own"}      // a repository inside FLETCH_HOME
	ErrRemote        = &Fault{code: "bad-remote"}       // a URL that CheckRemote refuses
	ErrNoRemote      = &Fault{code: "no-remote"}        // nothing is pinned, so nothing can be pushed
	ErrWrongBranch   = &Fault{code: "wrong-branch"}     // an agent asked for another ref than its own
	ErrNotForward    = &Fault{code: "non-fast-forward"} // needs force, which was not asked for
	ErrTooLarge      = &Fault{code: "too-large"}        // more than a person can be shown
	ErrUnborn        = &Fault{code: "no-head"}          // the workspace has no commit checked out
	ErrBroken        = &Fault{code: "bad-workspace"}    // the workspace gave no sound answer
	ErrTimeout       = &Fault{code: "workspace-hangs"}  // it gave none in time
	ErrQuota         = &Fault{code: "over-quota"}       // it sent more than it may
	ErrMoved         = &Fault{code: "remote-moved"}     // the lease does not hold any more
	ErrRefused       = &Fault{code: "remote-refused"}   // the remote said no; its words are in the text
	ErrAuth          = &Fault{code: "auth-failed"}
	ErrUnreachable   = &Fault{code: "unreachable"}
	ErrQuarantine    = &Fault{code: "quarantine-changed"} // fletch's own repository is not as fletch left it
)

func fault(code, hint, format string, args ...any) *Fault {
	return &Fault{what: fmt.Sprintf(format, args...), code: code, hint: hint}
}

// quote makes bytes somebody else chose safe to stand in an error: one line,
// at most 200 bytes, nothing a terminal would act on.
func quote(s string) string {
	const most = 200
	cut := ""
	if len(s) > most {
		s, cut = s[:most], "…"
	}
	return strconv.QuoteToGraphic(strings.ToValidUTF8(s, "\uFFFD")) + cut
}

// plain makes text of a remote or a program fit for a screen and a log: valid
// UTF-8, no control or bidi characters but line ends, at most max bytes.
func plain(s string, max int) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '\r':
			r = '\n'
		case r == '\t':
			r = ' '
		case r != '\n' && unsafeRune(r):
			r = '\uFFFD'
		}
		if b.Len()+utf8.RuneLen(r) > max {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// oneLine is plain on a single line.
func oneLine(s string, max int) string {
	return strings.Join(strings.Fields(plain(s, max)), " ")
}

// unsafeRune reports characters that move a cursor, start a sequence, or turn
// the reading direction: C0, DEL, C1, and the Unicode controls and formats.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// hasUnsafe reports whether a name holds such a character, or bytes that are
// no text at all.
func hasUnsafe(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, unsafeRune)
}
