package cli

import (
	"errors"
	"slices"
	"testing"

	"fletch/agents/term"
)

func TestKeysAreNamedAsPeopleNameThem(t *testing.T) {
	for name, want := range map[string]term.Key{
		"enter":         {Code: term.Enter},
		"ENTER":         {Code: term.Enter},
		"esc":           {Code: term.Escape},
		"ctrl-c":        {Code: 'c', Ctrl: true},
		"ctrl-space":    {Code: term.Space, Ctrl: true},
		"alt-x":         {Code: 'x', Alt: true, Text: "x"},
		"shift-tab":     {Code: term.Tab, Shift: true},
		"ctrl-alt-left": {Code: term.Left, Ctrl: true, Alt: true},
		"y":             {Code: 'y', Text: "y"},
		"-":             {Code: '-', Text: "-"},
		"ctrl--":        {Code: '-', Ctrl: true},
		"ü":             {Code: 'ü', Text: "ü"},
	} {
		got, err := parseKeys([]string{name})
		if err != nil || !slices.Equal(got, []term.Key{want}) {
			t.Errorf("%q: %+v %v, want %+v", name, got, err, want)
		}
	}
}

func TestAKeyThatIsNoKeyIsAMistakeInUse(t *testing.T) {
	for _, name := range []string{"", "ctrl-", "hyper-x", "enterr", "ctrl-shift-", "xy"} {
		_, err := parseKeys([]string{"up", name})
		var exit exitError
		if !errors.As(err, &exit) || exit.code != exitUsage {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzKeyNamesNeverPanic(f *testing.F) {
	for _, seed := range []string{"ctrl-c", "alt-", "-", "shift-ctrl-alt-é", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if keys, err := parseKeys([]string{name}); err == nil && (len(keys) != 1 || keys[0].Code == 0) {
			t.Errorf("%q is %+v", name, keys)
		}
	})
}
