package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the prefix of our own packages.
const module = "fletch"

// pkg is what go list says of one package.
type pkg struct {
	ImportPath string
	Imports    []string // without those of tests: a test may use any fake
}

// short is the name of a package in the tables: "agents/keeper"; "main" for
// the root.
func short(path string) string {
	if path == module {
		return "main"
	}
	return strings.TrimPrefix(path, module+"/")
}

// packages lists every package with its imports for one operating system.
func packages(t *testing.T, goos string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, stderr.String())
	}
	var all []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}

// table reads the rows of the table between <!-- name --> and <!-- /name -->
// in ARCHITECTURE.md: words of the first column, words of the second.
func table(t *testing.T, name string) [][2][]string {
	t.Helper()
	body, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(body), "<!-- "+name+" -->")
	inside, _, ended := strings.Cut(rest, "<!-- /"+name+" -->")
	if !found || !ended {
		t.Fatalf("ARCHITECTURE.md has no table marked %q", name)
	}
	var rows [][2][]string
	for line := range strings.Lines(inside) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || strings.HasPrefix(strings.TrimSpace(cells[1]), "-") {
			continue
		}
		rows = append(rows, [2][]string{words(cells[1]), words(cells[2])})
	}
	if len(rows) < 3 {
		t.Fatalf("the table %q has no rows", name)
	}
	return rows[1:] // the first names the columns
}

// words splits "`a`, `b` (why)" into a and b.
func words(cell string) []string {
	var all []string
	for _, part := range strings.Split(cell, ",") {
		if fields := strings.Fields(part); len(fields) > 0 {
			all = append(all, strings.Trim(fields[0], "`"))
		}
	}
	return all
}

// covers reports whether a name in a table stands for a package: itself,
// "x/*" for all below x, or "everything".
func covers(name, pkg string) bool {
	if below, ok := strings.CutSuffix(name, "/*"); ok {
		return strings.HasPrefix(pkg, below+"/")
	}
	return name == pkg || name == "everything"
}

// rowOf finds the one row that is about a package; a row that names it beats
// one that covers it.
func rowOf(rows [][2][]string, name string) (allowed []string, found int) {
	for _, row := range rows {
		if slices.Contains(row[0], name) {
			return row[1], 1
		}
	}
	for _, row := range rows {
		for _, word := range row[0] {
			if covers(word, name) {
				allowed = row[1]
				found++
			}
		}
	}
	return allowed, found
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	rows := table(t, "imports")
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			for _, p := range packages(t, goos) {
				name := short(p.ImportPath)
				allowed, found := rowOf(rows, name)
				if found != 1 {
					t.Errorf("%s has %d rows in ARCHITECTURE.md, want 1", name, found)
					continue
				}
				for _, path := range p.Imports {
					if path != module && !strings.HasPrefix(path, module+"/") {
						continue
					}
					if !slices.ContainsFunc(allowed, func(word string) bool { return covers(word, short(path)) }) {
						t.Errorf("%s must not import %s", name, short(path))
					}
				}
			}
		})
	}
}

// TestTableNamesOnlyPackagesThatExist keeps rows from outliving their
// packages.
func TestTableNamesOnlyPackagesThatExist(t *testing.T) {
	var names []string
	for _, p := range packages(t, "linux") {
		names = append(names, short(p.ImportPath))
	}
	exists := func(word string) bool {
		return word == "nothing" || slices.ContainsFunc(names, func(name string) bool { return covers(word, name) })
	}
	for _, row := range table(t, "imports") {
		for _, word := range slices.Concat(row[0], row[1]) {
			if !exists(word) {
				t.Errorf("the table names %s, which is no package", word)
			}
		}
	}
	for _, row := range table(t, "libraries") {
		for _, word := range row[1] {
			if !exists(word) {
				t.Errorf("the table of libraries names %s, which is no package", word)
			}
		}
	}
}

// TestLibrariesStayBehindTheirPackage: a library that only one package knows
// can be replaced there.
func TestLibrariesStayBehindTheirPackage(t *testing.T) {
	rows := table(t, "libraries")
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			for _, p := range packages(t, goos) {
				for _, path := range p.Imports {
					where, ours := library(rows, path)
					if !ours && isLibrary(path) {
						t.Errorf("%s imports %s, which has no row", short(p.ImportPath), path)
					}
					if ours && !slices.ContainsFunc(where, func(word string) bool { return covers(word, short(p.ImportPath)) }) {
						t.Errorf("%s must not import %s", short(p.ImportPath), path)
					}
				}
			}
		})
	}
}

// library finds where a library may be imported: the row with the longest
// prefix of its path counts.
func library(rows [][2][]string, path string) (where []string, found bool) {
	longest := 0
	for _, row := range rows {
		for _, prefix := range row[0] {
			if (path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > longest {
				where, found, longest = row[1], true, len(prefix)
			}
		}
	}
	return where, found
}

// isLibrary reports whether a path is neither ours nor the standard library's.
func isLibrary(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first != module && strings.Contains(first, ".")
}

// sources parses every Go file of the project that is not a test.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files, set := map[string]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files[filepath.ToSlash(path)], err = parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestOnlyGitopsStartsGit: every other package asks it, since a git that is
// started carelessly runs code that an agent wrote. bench times a bare git in
// repositories that no agent was in.
func TestOnlyGitopsStartsGit(t *testing.T) {
	for path, file := range sources(t) {
		if strings.HasPrefix(path, "gitops/") || strings.HasPrefix(path, "bench/") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || (name.Sel.Name != "Command" && name.Sel.Name != "CommandContext") {
				return true
			}
			for _, arg := range call.Args {
				if text, ok := arg.(*ast.BasicLit); ok && text.Kind == token.STRING {
					word, _ := strconv.Unquote(text.Value)
					if filepath.Base(word) == "git" {
						t.Errorf("%s starts git", path)
					}
				}
			}
			return true
		})
	}
}

// TestNoPackageActsOnImport: no init, so that importing a package changes
// nothing.
func TestNoPackageActsOnImport(t *testing.T) {
	for path, file := range sources(t) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function", path)
			}
		}
	}
}

// TestDocumentsNameTestsThatExist: a promise in a document names the test
// that holds it, and the test is there.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	exist := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		body, err := os.ReadFile(path)
		for _, match := range declared.FindAllSubmatch(body, -1) {
			exist[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	for _, doc := range []string{"ARCHITECTURE.md", "SECURITY.md", "README.md", "CONTRIBUTING.md"} {
		body, err := os.ReadFile(doc)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, match := range named.FindAllSubmatch(body, -1) {
			if name := string(match[1]); !exist[name] {
				t.Errorf("%s names %s, which is no test", doc, name)
			}
		}
	}
}

// TestDocumentsLinkToFilesThatExist follows every relative link.
func TestDocumentsLinkToFilesThatExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	docs, err := filepath.Glob("*.md")
	if err != nil || len(docs) < 4 {
		t.Fatal(docs, err)
	}
	more, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range slices.Concat(docs, more) {
		body, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllSubmatch(body, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), string(match[1]))); err != nil {
				t.Errorf("%s links to %s: %v", doc, match[1], err)
			}
		}
	}
}

// TestMakefileTargetsAreToldAndCanRun: every target of the Makefile is in the
// README or in CONTRIBUTING.md, and every script that it calls can be run.
func TestMakefileTargetsAreToldAndCanRun(t *testing.T) {
	body, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var docs []byte
	for _, doc := range []string{"README.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, text...)
	}
	for _, match := range regexp.MustCompile(`(?m)^(\w+):`).FindAllSubmatch(body, -1) {
		if want := fmt.Sprintf("make %s", match[1]); !bytes.Contains(docs, []byte(want)) {
			t.Errorf("neither README.md nor CONTRIBUTING.md says %q", want)
		}
	}
	for _, script := range regexp.MustCompile(`hack/\w+\.sh`).FindAllString(string(body), -1) {
		if info, err := os.Stat(script); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("%s cannot be run: %v", script, err)
		}
	}
}
