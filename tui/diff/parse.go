package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fletch/state"
)

// Bounds of what is read. Beyond them the viewer says what is missing, and
// [Viewer.Whole] is false: nobody should allow what could not be shown.
const (
	maxBytes = 16 << 20
	maxLines = 500_000
)

// kind says what a line is, and with that who wrote it.
type kind uint8

const (
	kindCommit  kind = iota // fletch: "commit 1 of 3  9f3c1e7", then the agent's subject in quotes
	kindBy                  // fletch: who the commits say made them
	kindMessage             // the agent's message
	kindOmitted             // fletch: what the diff leaves out
	kindSection             // fletch: what follows is the diff of one commit
	kindFile                // the agent's path
	kindNote                // fletch: what happened to the file; may end in the agent's words
	kindContext             // the agent's text from here on
	kindAdded
	kindRemoved
	kindGap // between two hunks
	kindRaw // something git wrote that is not understood here, shown as it is
)

// line is one line before it is wrapped.
type line struct {
	text string
	num  int32 // in the file; 0 is none
	// cells is how wide text is at most; the true width when flat.
	cells int32
	flat  bool // printable ASCII: one cell for each byte
	kind  kind
}

// File is one changed path, as the diff tells it.
type File struct {
	Path           string // the agent's bytes: not safe to show without [Visible]
	Added, Removed int
	Binary         bool

	line  int   // its header
	hunks []int // the line to put on top for each hunk
}

// document is a patch taken apart. It never changes after parse.
type document struct {
	lines  []line
	files  []File
	heads  []int // lines of kindCommit
	digits int   // of the largest line number
	bytes  int   // of all texts
	cut    bool
}

func parse(p state.Patch) *document {
	d := &document{digits: 4}
	commits(d, p.Commits)
	text := p.Diff
	for _, what := range p.Omitted {
		d.add(kindOmitted, "left out: "+what, 0)
	}
	at := len(d.lines)
	r := reader{doc: d}
	d.lines = slices.Grow(d.lines, min(strings.Count(text, "\n"), maxLines))
	for text != "" && d.room(text) {
		var l string
		l, text, _ = strings.Cut(text, "\n")
		r.line(l)
	}
	r.closeFile()
	var missing []string
	if d.cut {
		missing = append(missing, fmt.Sprintf("left out: all beyond %d lines or %d MiB; this diff is too large to show here", maxLines, maxBytes>>20))
	} else if len(p.Omitted) == 0 {
		missing = absent(p.Files, d.files)
	}
	d.insert(at, missing)
	return d
}

// absent names what the plan lists and the diff does not show.
func absent(listed []state.PlanFile, shown []File) []string {
	if len(listed) == 0 {
		return nil
	}
	has := make(map[string]bool, len(shown))
	for _, f := range shown {
		has[strings.ToValidUTF8(f.Path, "\uFFFD")] = true
	}
	var missing []string
	for _, f := range listed {
		if !has[f.Path] {
			missing = append(missing, "left out: "+f.Path+": changed, but not in this diff")
		}
	}
	return missing
}

// insert puts fletch's own lines before line at, where they are read first.
func (d *document) insert(at int, texts []string) {
	if len(texts) == 0 {
		return
	}
	tail := slices.Clone(d.lines[at:])
	d.lines = d.lines[:at]
	for _, t := range texts {
		d.add(kindOmitted, t, 0)
	}
	d.lines = append(d.lines, tail...)
	for i := range d.files {
		d.files[i].line += len(texts)
		for j := range d.files[i].hunks {
			d.files[i].hunks[j] += len(texts)
		}
	}
}

// add appends a line. A newline within text begins no line: it is a control
// character like others, and is written out.
func (d *document) add(k kind, text string, num int32) {
	cells, flat := measure(text)
	d.bytes += len(text)
	d.lines = append(d.lines, line{text: text, num: num, kind: k, cells: cells, flat: flat})
	if num >= 10_000 {
		d.digits = max(d.digits, len(strconv.Itoa(int(num))))
	}
}

// room reports whether the next line of rest may still be taken, and notes it
// when it may not.
func (d *document) room(rest string) bool {
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	d.cut = d.cut || len(d.lines) >= maxLines || d.bytes+len(rest) > maxBytes
	return !d.cut
}

// measure says how many cells text takes at most, and whether it is printable
// ASCII. It looks at every byte once and at no table: a hundred thousand lines
// must not be felt.
func measure(text string) (cells int32, flat bool) {
	if plain(text) {
		return int32(len(text)), true
	}
	n := 0
	for _, r := range text {
		if r >= ' ' && r < 0x7f {
			n++
			continue
		}
		n += widest(r)
	}
	return int32(n), false
}

// widest is how many cells r, which is not printable ASCII, may take at most.
func widest(r rune) int {
	switch {
	case r == '\t':
		return tabStop
	case r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3, r >= 0xc0 && r <= 0x24f, // Han, Hangul, Latin
		r >= 0x2010 && r <= 0x2027, r >= 0x2030 && r <= 0x205e, r >= 0x2190 && r <= 0x21ff, r >= 0x2500 && r <= 0x259f: // dashes, quotes, arrows, boxes
		return 2
	}
	return len("<U+10FFFF>")
}

// commits writes each commit with its whole message: what a message says is
// published like the rest.
func commits(d *document, all []state.PlanCommit) {
	same := true
	for _, c := range all {
		same = same && c.Author == all[0].Author && c.Email == all[0].Email
	}
	for i, c := range all {
		if !d.room(c.Subject) {
			return
		}
		d.heads = append(d.heads, len(d.lines))
		d.add(kindCommit, fmt.Sprintf("commit %d of %d  %s  “%s”", i+1, len(all), c.ID.Short(), c.Subject), 0)
		if !same {
			by(d, c)
		}
		body := strings.TrimRight(c.Message, "\n")
		if rest, found := strings.CutPrefix(body, c.Subject); found {
			body = strings.TrimLeft(rest, "\n")
		}
		for body != "" && d.room(body) {
			var l string
			l, body, _ = strings.Cut(body, "\n")
			d.add(kindMessage, l, 0)
		}
		if d.cut {
			return
		}
	}
	if same && len(all) > 0 {
		by(d, all[0])
	}
}

func by(d *document, c state.PlanCommit) {
	if c.Author != "" || c.Email != "" {
		d.add(kindBy, "by “"+c.Author+"” <"+c.Email+">", 0)
	}
}
