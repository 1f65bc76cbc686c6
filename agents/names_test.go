package agents

import (
	"errors"
	"strings"
	"testing"
)

func free(string) bool { return false }

func TestGeneratedNamesHaveTheFormThatIsAccepted(t *testing.T) {
	for range 500 {
		names, err := pickNames("", 1, free)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkName(names[0]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCopiesShareAStemAndAreNumbered(t *testing.T) {
	names, err := pickNames("pine", 3, free)
	if err != nil || strings.Join(names, " ") != "pine-1 pine-2 pine-3" {
		t.Fatalf("%v %v", names, err)
	}
}

func TestATakenNameIsRefusedWithTheWayOut(t *testing.T) {
	_, err := pickNames("pine", 3, func(n string) bool { return n == "pine-2" })
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code() != "name-taken" || !strings.Contains(refusal.Hint(), "--name") {
		t.Fatalf("%v", err)
	}
}

func TestOddNamesAreRefused(t *testing.T) {
	for _, name := range []string{"../x", "-rf", "A", "a b", "a\nb", "a--b", "a-", "1a", "é", strings.Repeat("a", 33), "a/b", "\x1b[2J"} {
		if checkName(name) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestIDsAreEightSafeCharactersAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := string(newID())
		if len(id) != 8 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}
