package gitops

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"fletch/state"
)

// findings is what was found out about a plan before it is put into words.
type findings struct {
	q        quarantine
	plan     *state.Plan
	need     []state.Commit
	sizes    map[state.Commit]int64  // of need
	kinds    map[state.Commit]string // of need
	files    []change
	private  []state.Commit // of need
	descends bool
	pointers int
}

// flags puts the findings into fletch's words: red ones first, which need a
// second chord each.
func (f findings) flags() []state.Flag {
	var all []state.Flag
	red := func(name, format string, args ...any) {
		all = append(all, state.Flag{Name: name, Red: true, Text: fmt.Sprintf(format, args...)})
	}
	amber := func(n int, name, text string) {
		if n > 0 {
			all = append(all, state.Flag{Name: name, Text: text})
		}
	}
	if n := len(f.private); n > 0 {
		what := "commit"
		if f.kinds[f.private[0]] != "commit" {
			what = "object"
		}
		red("unpushed", "publishes %s of yours that you never pushed (%s)", count(n, what), f.shortest())
	}
	if f.plan.Force {
		red("force", "FORCE replaces %s", count(f.plan.Replaces, "commit"))
	}
	if !f.descends {
		red("history", "rewrites history it did not make")
	}
	if n := f.unsafeNames(); n > 0 {
		red("control", "control or bidi characters in %s", count(n, "name"))
	}
	if n := f.unchecked(); n > 0 {
		red("unchecked", "%d bytes could not be checked (too large)", n)
	}

	var c counts
	for _, file := range f.files {
		c.add(file, f.sizes)
	}
	amber(f.hidden(), "hidden", count(f.hidden(), "file")+" only in earlier commits")
	amber(c.ci, "ci", count(c.ci, "CI workflow"))
	amber(c.executables, "executable", count(c.executables, "executable"))
	amber(c.symlinks, "symlink", count(c.symlinks, "symlink"))
	amber(c.submodules, "submodule", count(c.submodules, "submodule"))
	amber(c.profiles, "profile", count(c.profiles, "fletch profile"))
	amber(f.merges(), "merge", "merge commit")
	amber(c.large, "large", count(c.large, "file")+" over 10 MB")
	amber(f.pointers, "lfs", "LFS pointer without its file")
	amber(f.strangers(), "author", "commit author is not you")
	if len(f.plan.Commits) == maxCommits {
		amber(1, "many", fmt.Sprintf("more than %d commits; the newest are listed", maxCommits))
	}
	return all
}

// count says how many, with an s where there is one to say.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// shortest names the private commits, three at most.
func (f findings) shortest() string {
	var ids []string
	for _, id := range f.private[:min(3, len(f.private))] {
		ids = append(ids, id.Short())
	}
	if len(f.private) > 3 {
		ids = append(ids, "…")
	}
	return strings.Join(ids, " ")
}

// unsafeNames counts the paths and authors that a screen would not show as
// they are.
func (f findings) unsafeNames() int {
	n := 0
	for _, file := range f.files {
		if hasUnsafe(file.path) || hasUnsafe(file.Old) {
			n++
		}
	}
	seen := map[string]bool{}
	for _, c := range f.plan.Commits {
		for _, name := range []string{c.Author, c.Email} {
			// The fields were made valid UTF-8: U+FFFD is where they were not.
			if !seen[name] && (hasUnsafe(name) || strings.ContainsRune(name, '\uFFFD')) {
				seen[name] = true
				n++
			}
		}
	}
	return n
}

// unchecked is the size of the blobs that are too large to be looked into.
func (f findings) unchecked() int64 {
	var sum int64
	for _, id := range f.need {
		if f.kinds[id] == "blob" && f.sizes[id] > maxShown {
			sum += f.sizes[id]
		}
	}
	return sum
}

// hidden counts the contents that leave with an earlier commit and are in no
// file of the last one: the difference to the base does not show them.
func (f findings) hidden() int {
	shown := map[state.Commit]bool{}
	for _, file := range f.files {
		shown[file.newBlob] = true
	}
	for _, id := range f.private {
		shown[id] = true
	}
	n := 0
	for _, id := range f.need {
		if f.kinds[id] == "blob" && !shown[id] && !empty(id) {
			n++
		}
	}
	return n
}

func (f findings) merges() int {
	n := 0
	for _, c := range f.plan.Commits {
		if len(c.Parents) > 1 {
			n++
		}
	}
	return n
}

// strangers counts commits under another name than the user's. Without a
// configured name nothing can be said.
func (f findings) strangers() int {
	n := 0
	for _, c := range f.plan.Commits {
		if f.q.Email != "" && c.Email != f.q.Email || f.q.Name != "" && c.Author != f.q.Name {
			n++
		}
	}
	return n
}

// counts are changed files by what a person should look at.
type counts struct {
	ci, executables, symlinks, submodules, profiles, large int
}

func (c *counts) add(f change, sizes map[state.Commit]int64) {
	if isCI(f.path) {
		c.ci++
	}
	if f.Mode == "100755" && f.oldMode != "100755" {
		c.executables++
	}
	if f.Mode == "120000" {
		c.symlinks++
	}
	if f.Mode == "160000" || strings.EqualFold(path.Base(f.path), ".gitmodules") {
		c.submodules++
	}
	if strings.HasPrefix(strings.ToLower(f.path), ".fletch/") {
		c.profiles++
	}
	if sizes[f.newBlob] > maxPlain {
		c.large++
	}
}

// isCI reports whether a forge or a build service runs what is in this file.
func isCI(name string) bool {
	name = strings.ToLower(name)
	for _, dir := range []string{
		".github/workflows/", ".github/actions/", ".gitea/workflows/", ".forgejo/workflows/", ".gitlab/ci/",
		".circleci/", ".buildkite/", ".woodpecker/", ".tekton/", ".azure-pipelines/",
	} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	switch path.Base(name) {
	case "jenkinsfile", ".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", ".drone.yml", ".woodpecker.yml",
		"bitbucket-pipelines.yml", "appveyor.yml", ".cirrus.yml", "action.yml", "action.yaml", "cloudbuild.yaml":
		return true
	}
	return false
}

// lfsMark is how a pointer of Git LFS begins.
const lfsMark = "version https://git-lfs.github.com/spec/v1\n"

// pointers counts new files that are only pointers of Git LFS: a push of
// commits does not upload what they point to.
func (g Git) pointers(ctx context.Context, q quarantine, files []change, sizes map[state.Commit]int64) (int, error) {
	var small []state.Commit
	for _, f := range files {
		if size := sizes[f.newBlob]; f.Mode != "160000" && size > int64(len(lfsMark)) && size < 1024 {
			small = append(small, f.newBlob)
		}
	}
	if len(small) == 0 {
		return 0, nil
	}
	out, err := g.onQuarantine(ctx, q, "looking for LFS pointers", list(unique(small)), 64<<20, "cat-file", "--batch", "--buffer")
	if err != nil {
		return 0, err
	}
	n := 0
	for len(out) > 0 {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		var id, kind string
		var size int
		if _, err := fmt.Sscanf(string(head), "%s %s %d", &id, &kind, &size); err != nil || size+1 > len(rest) {
			return 0, fmt.Errorf("looking for LFS pointers: git's answer is malformed")
		}
		if bytes.HasPrefix(rest[:size], []byte(lfsMark)) {
			n++
		}
		out = rest[size+1:]
	}
	return n, nil
}
