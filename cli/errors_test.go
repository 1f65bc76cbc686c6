package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeForms are the ways in which the sources give an error its word.
var codeForms = []*regexp.Regexp{
	regexp.MustCompile(`(?:wire\.Errorf|refuse|fault)\("([a-z-]+)",`),
	regexp.MustCompile(`\b(?:code|Word): +"([a-z-]+)"`),
	regexp.MustCompile(`Code\(\) string +\{ return "([a-z-]+)" \}`),
}

func TestEveryErrorsWordIsInTheTableOnceAndSorted(t *testing.T) {
	var listed []string
	for _, e := range errorCodes {
		listed = append(listed, e.Code)
	}
	if !slices.IsSorted(listed) || len(slices.Compact(slices.Clone(listed))) != len(listed) {
		t.Error("the table is not sorted, or has a word twice")
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, form := range codeForms {
			for _, m := range form.FindAllStringSubmatch(string(raw), -1) {
				if !slices.Contains(listed, m[1]) {
					t.Errorf("%s: %q is not in the table", path, m[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
