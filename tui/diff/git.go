package diff

import (
	"strconv"
	"strings"

	"fletch/state"
)

// reader takes git's unified diff line by line. It trusts nothing: what it
// does not understand becomes a line of its own, never nothing.
type reader struct {
	doc      *document
	head     *header
	open     bool // doc.files ends in the file being read
	oldLeft  int  // lines of the hunk that are still to come
	newLeft  int
	oldNum   int
	newNum   int
	linkTold bool
}

// header is what stands between "diff --git" and the first hunk.
type header struct {
	path, oldPath    string
	renamed, copied  string
	oldMode, newMode string
	added, deleted   bool
	binary           bool
	empty            bool // no hunk follows
	raw              []string
}

func (r *reader) line(l string) {
	if (r.oldLeft > 0 || r.newLeft > 0) && r.content(l) {
		return
	}
	r.oldLeft, r.newLeft = 0, 0
	switch {
	case strings.HasPrefix(l, "diff --git "):
		r.closeFile()
		oldPath, path := gitPaths(l[len("diff --git "):])
		r.head = &header{path: path, oldPath: oldPath}
	case strings.HasPrefix(l, "diff --cc "), strings.HasPrefix(l, "diff --combined "):
		r.closeFile()
		_, path, _ := strings.Cut(l[len("diff --"):], " ")
		r.head = &header{path: unquoted(path), raw: []string{"a merge of several versions; git's own words:"}}
	case strings.HasPrefix(l, "commit ") && state.Commit(l[len("commit "):]).Valid():
		// Contents that the last commit no longer has leave as well; what
		// each commit changed by itself follows.
		r.closeFile()
		r.doc.add(kindSection, "by itself: commit "+l[len("commit "):], 0)
	case strings.HasPrefix(l, "@@ ") && r.hunk(l):
	case strings.HasPrefix(l, `\ `) && r.open:
		r.noNewline()
	case r.head != nil:
		r.header(l)
	case l != "":
		r.doc.add(kindRaw, l, 0)
	}
}

// content takes a line of a hunk. A line that cannot be one ends the hunk:
// the counts in its header lied.
func (r *reader) content(l string) bool {
	mark := byte(' ')
	if l != "" {
		mark, l = l[0], l[1:]
	}
	f := &r.doc.files[len(r.doc.files)-1]
	switch {
	case mark == ' ' && r.oldLeft > 0 && r.newLeft > 0:
		r.doc.add(kindContext, l, int32(r.newNum))
		r.oldLeft, r.newLeft = r.oldLeft-1, r.newLeft-1
		r.oldNum, r.newNum = r.oldNum+1, r.newNum+1
	case mark == '-' && r.oldLeft > 0:
		r.doc.add(kindRemoved, l, int32(r.oldNum))
		r.oldLeft, r.oldNum = r.oldLeft-1, r.oldNum+1
		f.Removed++
	case mark == '+' && r.newLeft > 0:
		if r.isLink() && !r.linkTold {
			r.linkTold = true
			r.doc.add(kindNote, newOr(r.head.added)+"symlink → "+l, 0)
		}
		r.doc.add(kindAdded, l, int32(r.newNum))
		r.newLeft, r.newNum = r.newLeft-1, r.newNum+1
		f.Added++
	case mark == '\\':
		r.noNewline()
	default:
		return false
	}
	return true
}

func (r *reader) isLink() bool {
	return r.head != nil && (r.head.newMode == "120000" || r.head.deleted && r.head.oldMode == "120000")
}

// noNewline notes what git says with a backslash; a link's target never has one.
func (r *reader) noNewline() {
	if !r.isLink() {
		r.doc.add(kindNote, "no newline at the end", 0)
	}
}

func newOr(added bool) string {
	if added {
		return "new "
	}
	return ""
}

// hunk reads "@@ -41,9 +41,10 @@ …"; the words behind it are context that the
// agent chose, and are left to the lines themselves.
func (r *reader) hunk(l string) bool {
	ranges, _, found := strings.Cut(l[len("@@ "):], " @@")
	oldRange, newRange, two := strings.Cut(ranges, " ")
	oldAt, oldCount, okOld := span(oldRange, '-')
	newAt, newCount, okNew := span(newRange, '+')
	if !found || !two || !okOld || !okNew || r.head == nil {
		return false
	}
	if !r.open {
		r.openFile()
	}
	f := &r.doc.files[len(r.doc.files)-1]
	top := f.line
	if len(f.hunks) > 0 {
		r.doc.add(kindGap, "", 0)
		top = len(r.doc.lines) - 1
	}
	f.hunks = append(f.hunks, top)
	r.oldLeft, r.newLeft, r.oldNum, r.newNum = oldCount, newCount, oldAt, newAt
	return true
}

// span reads "-41,9" or "-41".
func span(s string, sign byte) (at, count int, ok bool) {
	if s == "" || s[0] != sign {
		return 0, 0, false
	}
	first, second, two := strings.Cut(s[1:], ",")
	start, err := strconv.ParseUint(first, 10, 30)
	if err != nil {
		return 0, 0, false
	}
	length := uint64(1)
	if two {
		if length, err = strconv.ParseUint(second, 10, 30); err != nil {
			return 0, 0, false
		}
	}
	return int(start), int(length), true
}

func (r *reader) header(l string) {
	h := r.head
	if r.open { // after a hunk: text that belongs to none
		if l != "" {
			r.doc.add(kindRaw, l, 0)
		}
		return
	}
	word := func(prefix string) (string, bool) { return strings.CutPrefix(l, prefix) }
	if v, ok := word("--- "); ok {
		if p := unquoted(v); p != "/dev/null" {
			h.oldPath = stripped(p)
		}
	} else if v, ok := word("+++ "); ok {
		if p := unquoted(v); p != "/dev/null" {
			h.path = stripped(p)
		} else {
			h.path = h.oldPath
		}
	} else if v, ok := word("rename from "); ok {
		h.renamed = unquoted(v)
	} else if v, ok := word("rename to "); ok {
		h.path = unquoted(v)
	} else if v, ok := word("copy from "); ok {
		h.copied = unquoted(v)
	} else if v, ok := word("copy to "); ok {
		h.path = unquoted(v)
	} else if v, ok := word("old mode "); ok {
		h.oldMode = v
	} else if v, ok := word("new mode "); ok {
		h.newMode = v
	} else if v, ok := word("new file mode "); ok {
		h.added, h.newMode = true, v
	} else if v, ok := word("deleted file mode "); ok {
		h.deleted, h.oldMode = true, v
	} else if v, ok := word("index "); ok {
		if _, mode, has := strings.Cut(v, " "); has && h.newMode == "" {
			h.newMode, h.oldMode = mode, mode
		}
	} else if strings.HasPrefix(l, "Binary files ") || l == "GIT binary patch" {
		h.binary = true
	} else if l != "" && !strings.HasPrefix(l, "similarity index ") && !strings.HasPrefix(l, "dissimilarity index ") {
		h.raw = append(h.raw, l)
		if len(h.raw) >= 1000 { // a binary patch: the rest goes out as it comes
			r.openFile()
		}
	}
}

// openFile writes the header that has been collected.
func (r *reader) openFile() {
	d, h := r.doc, r.head
	r.open, r.linkTold = true, false
	d.files = append(d.files, File{Path: h.path, Binary: h.binary, line: len(d.lines)})
	d.add(kindFile, h.path, 0)
	for _, note := range h.notes() {
		d.add(kindNote, note, 0)
	}
	for _, l := range h.raw {
		d.add(kindRaw, l, 0)
	}
	h.raw = nil
}

func (r *reader) closeFile() {
	if r.head != nil && !r.open {
		r.head.empty = true
		r.openFile()
	}
	r.head, r.open, r.oldLeft, r.newLeft = nil, false, 0, 0
}

// notes says in fletch's words what git's header says. A path of the agent
// comes last in its note, so that nothing behind it can be invented.
func (h *header) notes() []string {
	var notes []string
	switch {
	case h.added && h.newMode == "120000" && !h.empty: // told with its target
	case h.added:
		notes = append(notes, "new "+thing(h.newMode))
	case h.deleted:
		notes = append(notes, "deleted "+thing(h.oldMode))
	case h.oldMode != h.newMode:
		notes = append(notes, "was "+thing(h.oldMode)+" ("+Visible(h.oldMode)+"), is now "+thing(h.newMode)+" ("+Visible(h.newMode)+")")
	}
	if h.binary {
		notes = append(notes, "binary: not shown")
	}
	if h.renamed != "" {
		notes = append(notes, "renamed from "+h.renamed)
	}
	if h.copied != "" {
		notes = append(notes, "copied from "+h.copied)
	}
	return notes
}

func thing(mode string) string {
	switch mode {
	case "100644", "":
		return "file"
	case "100755":
		return "executable"
	case "120000":
		return "symlink"
	case "160000":
		return "submodule"
	}
	return "file of mode " + Visible(mode)
}

// gitPaths reads what follows "diff --git". Without quotes and with spaces it
// is ambiguous; then the halves are compared, as git apply does, and the lines
// that follow correct a rename.
func gitPaths(s string) (oldPath, newPath string) {
	if strings.HasPrefix(s, `"`) {
		first, rest := quoted(s)
		return stripped(first), stripped(unquoted(strings.TrimPrefix(rest, " ")))
	}
	if half := len(s) / 2; len(s)%2 == 1 && s[half] == ' ' && stripped(s[:half]) == stripped(s[half+1:]) {
		return stripped(s[:half]), stripped(s[half+1:])
	}
	if at := strings.LastIndex(s, ` "`); at >= 0 {
		return stripped(s[:at]), stripped(unquoted(s[at+1:]))
	}
	if at := strings.LastIndex(s, " b/"); at >= 0 {
		return stripped(s[:at]), stripped(s[at+1:])
	}
	return s, s
}

// stripped takes off the "a/" or "b/" that git puts before a path.
func stripped(p string) string {
	if len(p) > 2 && (p[0] == 'a' || p[0] == 'b') && p[1] == '/' {
		return p[2:]
	}
	return p
}

// unquoted reads a path as git writes it: in C quotes when it holds anything
// odd, with a tab behind it when it holds a space.
func unquoted(s string) string {
	if !strings.HasPrefix(s, `"`) {
		return strings.TrimSuffix(s, "\t")
	}
	p, _ := quoted(s)
	return p
}

// quoted reads a path in C quotes off the front of s.
func quoted(s string) (path, rest string) {
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return out.String(), s[i+1:]
		case c != '\\' || i+1 == len(s):
			out.WriteByte(c)
		default:
			i++
			if at := strings.IndexByte(`abtnvfr"\`, s[i]); at >= 0 {
				out.WriteByte("\a\b\t\n\v\f\r\"\\"[at])
			} else if b, err := strconv.ParseUint(s[i:min(i+3, len(s))], 8, 8); err == nil && i+3 <= len(s) {
				out.WriteByte(byte(b))
				i += 2
			} else {
				out.WriteByte('\\')
				out.WriteByte(s[i])
			}
		}
	}
	return out.String(), ""
}
