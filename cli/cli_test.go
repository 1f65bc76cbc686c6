package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"fletch/hub/wire"
)

// fletch runs a command line that needs no hub.
func fletch(args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = Main(args, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestTheVersionIsOneLineOrJSON(t *testing.T) {
	code, out, errOut := fletch("version")
	if code != exitDone || errOut != "" || out != "fletch "+version()+"\n" {
		t.Errorf("exit %d, %q, %q", code, out, errOut)
	}
	var said struct {
		Version  string
		Protocol int
	}
	code, out, _ = fletch("version", "--json")
	if err := json.Unmarshal([]byte(out), &said); code != exitDone || err != nil || said.Version != version() || said.Protocol != wire.Protocol {
		t.Errorf("exit %d, %q, %v", code, out, err)
	}
}

func TestHelpListsEveryCommandAndEveryErrorsWord(t *testing.T) {
	_, out, _ := fletch("help")
	for _, name := range []string{"new", "ls", "show", "attach", "send", "logs", "wait", "stop", "resume", "rm", "undo", "requests", "allow", "deny", "diff", "log", "doctor", "hub", "demo", "bench", "version"} {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("help does not list %s:\n%s", name, out)
		}
	}
	_, out, _ = fletch("help", "errors")
	for _, e := range errorCodes {
		if !strings.Contains(out, e.Code) || !strings.Contains(out, e.Meaning) {
			t.Errorf("help errors does not list %s", e.Code)
		}
	}
	var listed []struct{ Code, Meaning string }
	if _, out, _ = fletch("help", "errors", "--json"); json.Unmarshal([]byte(out), &listed) != nil || len(listed) != len(errorCodes) {
		t.Errorf("help errors --json lists %d of %d", len(listed), len(errorCodes))
	}
}

func TestMistakesInUseEndWithTwoBeforeAnythingIsStarted(t *testing.T) {
	t.Setenv("FLETCH_HOME", "/proc/nowhere") // whoever opens it fails otherwise
	for _, args := range [][]string{
		{"bogus"},
		{"help", "bogus"},
		{"hub", "bogus"},
		{"hub", "--json"},
		{"ls", "extra"},
		{"ls", "--bogus"},
		{"send"},
		{"send", "fern"},
		{"send", "fern", "x", "--key", "nokey"},
		{"logs", "fern", "--raw", "--text"},
		{"allow", "1", "--commit", "abc"},
		{"wait", "fern", "--until", "happy"},
		{"stop"},
		{"stop", "fern", "--all"},
		{"bench", "bogus"},
		{"new", "true"},
	} {
		code, out, errOut := fletch(args...)
		if code != exitUsage || out != "" || !strings.HasPrefix(errOut, "error: ") && !strings.HasPrefix(errOut, "{") {
			t.Errorf("%q: exit %d, %q, %q", args, code, out, errOut)
		}
	}
}

func TestAMistakeInAFlagIsToldInJSONToo(t *testing.T) {
	for _, args := range [][]string{{"ls", "--bogus", "--json"}, {"--json", "bogus"}} {
		_, _, errOut := fletch(args...)
		var failure wire.Failure
		if err := json.Unmarshal([]byte(errOut), &failure); err != nil || failure.Error.Word != "usage" {
			t.Errorf("%q: %q", args, errOut)
		}
	}
	if wantsJSON([]string{"new", "--", "tool", "--json"}) {
		t.Error("what follows -- is for fletch")
	}
}

func TestTheExitCodeIsTheErrorsOwn(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		said string
	}{
		{nil, 0, ""},
		{errors.New("went wrong"), 1, "error: went wrong\n"},
		{usage("do so", "wrong"), 2, "error: wrong\nhint: do so\n"},
		{fmt.Errorf("wrapped: %w", exitError{exitWaiting, errors.New("later")}), 3, "error: wrapped: later\n"},
		{exitError{code: 3}, 3, ""},
		{errors.New("evil \x1b[2J"), 1, "error: evil <U+001B>[2J\n"},
	} {
		var out bytes.Buffer
		if code := (&app{err: &out}).report(c.err); code != c.code || out.String() != c.said {
			t.Errorf("%v: exit %d, %q", c.err, code, out.String())
		}
	}
}

func TestTheDashboardNeedsATerminal(t *testing.T) {
	code, _, errOut := fletch()
	if code != exitUsage || !strings.Contains(errOut, "needs a terminal") || !strings.Contains(errOut, "hint: ") {
		t.Errorf("exit %d, %q", code, errOut)
	}
}
