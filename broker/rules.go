package broker

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"fletch/state"
)

// branchForm is what an agent's branch may be called: far less than git
// allows, so that no name reads as an option, a pattern, a revision or a path
// out of refs/heads on any file system.
var branchForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,100}$`)

// mailForm is a mailbox message's id.
var mailForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckRef refuses every ref that an agent may not push to: it must be
// refs/heads/ and a plain lower-case branch name, and neither main, master
// nor head. protected names more branches that are refused, in any case and
// with or without refs/heads/ before them: the repository's default branch
// and the base. Errors wrap [ErrRef].
func CheckRef(ref string, protected ...string) error {
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok {
		return refuse(ErrRef, "%q is not under refs/heads/", Sanitize(ref, 120))
	}
	if !branchForm.MatchString(branch) {
		return refuse(ErrRef, "%q has characters or a length that no agent's branch has", Sanitize(ref, 120))
	}
	for part := range strings.SplitSeq(branch, "/") {
		switch {
		case part == "", strings.HasPrefix(part, "."), strings.HasPrefix(part, "-"),
			strings.HasSuffix(part, "."), strings.HasSuffix(part, ".lock"), strings.Contains(part, ".."):
			return refuse(ErrRef, "%q is not a well-formed branch name", ref)
		}
	}
	if strings.HasPrefix(branch, "refs/") || state.Commit(branch).Valid() {
		return refuse(ErrRef, "%q would be mistaken for something else", ref)
	}
	for _, name := range append([]string{"main", "master", "head"}, protected...) {
		if strings.EqualFold(strings.TrimPrefix(name, "refs/heads/"), branch) {
			return refuse(ErrRef, "%q is protected", ref)
		}
	}
	return nil
}

// askable refuses a plan that no person should be shown.
func askable(p state.Plan, mail string) error {
	switch {
	case p.Agent == "":
		return errors.New("the plan names no agent")
	case p.Remote == "":
		return errors.New("the plan names no remote")
	case !p.Commit.Valid():
		return errors.New("the plan's commit is not a full object name")
	case p.Old != "" && !p.Old.Valid():
		return errors.New("the plan's lease is not a full object name")
	case mail != "" && !mailForm.MatchString(mail):
		return errors.New("the message has no usable id")
	}
	return CheckRef(p.Ref, p.BaseRef)
}

// allowable refuses an allow that is not about exactly r. An empty commit or
// plan hash is a difference too.
func allowable(r state.Request, v state.Verdict) error {
	if v.Commit != r.Plan.Commit {
		return refuse(ErrMoved, "it is commit %s, the verdict is about %s", r.Plan.Commit, orNone(string(v.Commit)))
	}
	if v.Plan != r.PlanHash {
		return refuse(ErrMoved, "it is plan %s, the verdict is about %s", r.PlanHash, orNone(v.Plan))
	}
	missing := slices.DeleteFunc(r.Plan.Red(), func(f state.Flag) bool { return slices.Contains(v.Accept, f.Name) })
	missing = slices.CompactFunc(missing, func(a, b state.Flag) bool { return a.Name == b.Name })
	if len(missing) > 0 {
		return refuse(ErrFlags, "%s", names(missing))
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return Sanitize(s, 80)
}

// movedOn says what took a request's place.
func movedOn(was, is state.Plan) string {
	if was.Commit == is.Commit {
		return fmt.Sprintf("moved on: what %s would publish has changed", is.Commit.Short())
	}
	return fmt.Sprintf("moved on: %s is now %s", was.Commit.Short(), is.Commit.Short())
}

// clonePlan copies p so that nobody who helped to make it can change what a
// person reads and allows.
func clonePlan(p state.Plan) state.Plan {
	p.Commits = slices.Clone(p.Commits)
	for i := range p.Commits {
		p.Commits[i].Parents = slices.Clone(p.Commits[i].Parents)
	}
	p.Files = slices.Clone(p.Files)
	p.Flags = slices.Clone(p.Flags)
	return p
}

// colour matches the escape sequences that git and remotes put around words.
// What it does not match is made visible, not dropped.
var colour = regexp.MustCompile("\x1b\\[[0-9;:]{0,32}[mK]")

// Sanitize makes one line of text from git, a remote or a person fit for a
// terminal or for an agent: valid UTF-8 of printable characters only. Colour
// sequences go, line breaks and tabs become spaces, everything else that does
// not print (control, bidi and zero-width characters, bad bytes) becomes
// U+FFFD. At most limit bytes are returned; a cut shows as "…".
func Sanitize(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	// Only a bounded part of s is looked at, however long it is: colours
	// are the only thing that shrinks.
	if len(s)/16 > limit {
		s = s[:16*limit]
	}
	s = colour.ReplaceAllString(s, "")
	var b strings.Builder
	const more = "…"
	cut := 0 // the longest prefix that leaves room for the mark
	for _, r := range strings.TrimSpace(s) {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			r = ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			if cut+len(more) > limit {
				return b.String()[:cut]
			}
			return b.String()[:cut] + more
		}
		b.WriteRune(r)
		if b.Len()+len(more) <= limit {
			cut = b.Len()
		}
	}
	return b.String()
}
