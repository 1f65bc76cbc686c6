package tui

import (
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"fletch/tui/diff"
)

func TestNoKeyMeansTwoThingsInOnePlace(t *testing.T) {
	m, problems := newKeyMap(nil)
	if len(problems) > 0 {
		t.Error(problems)
	}
	for _, in := range scopes() {
		seen := map[string]action{}
		for _, b := range m.table {
			// A request has ways of its own to say later; typing has no others.
			if b.in != in && (b.in != inAny || in == inRequest || in == inTyping || in == inForm || in == inConfirm) {
				continue
			}
			for _, k := range b.keys {
				if other, twice := seen[k]; twice {
					t.Errorf("%s: %q is %s and %s", in, k, other, b.action)
				}
				seen[k] = b.action
			}
		}
	}
}

func scopes() []scope {
	return []scope{inAny, inFirst, inList, inScreen, inChanges, inText, inTyping, inRequest, inForm, inConfirm, inDialog}
}

// TestNoKeyThatBelongsToOthersIsTaken keeps away from the keys of tmux, screen,
// zellij, ssh, browsers, input methods and XON/XOFF.
func TestNoKeyThatBelongsToOthersIsTaken(t *testing.T) {
	never := []string{
		"ctrl+a", "ctrl+b", "ctrl+g", "ctrl+o", "ctrl+p", "ctrl+s", "ctrl+t", "ctrl+h", "ctrl+q", "ctrl+v", "ctrl+w",
		"ctrl+space", "ctrl+^", "ctrl+_", "ctrl+i", "ctrl+m", "ctrl+[", "~", "[", "]", "{", "}", `\`, "|",
	}
	for _, b := range keyTable() {
		for _, k := range b.keys {
			if slices.Contains(never, k) || strings.HasPrefix(k, "alt+") || strings.HasPrefix(k, "ctrl+shift+") || len(k) == 2 && k[0] == 'f' {
				t.Errorf("%s in %s takes %q", b.action, b.in, k)
			}
		}
	}
}

func TestEveryKeyOfTheListIsInItsHelp(t *testing.T) {
	shown := map[action]bool{}
	for _, g := range listHelp() {
		for _, r := range g.rows {
			for _, act := range r.acts {
				shown[act] = true
			}
		}
	}
	m, _ := newKeyMap(nil)
	for _, b := range m.table {
		if (b.in == inList || b.in == inAny) && !shown[b.action] && b.action != "interrupt" && b.action != "close" {
			t.Errorf("%s is not in the help", b.action)
		}
	}
	for act := range shown {
		if m.together(inList, acts(act)) == "" {
			t.Errorf("the help names %s, which has no key", act)
		}
	}
}

func TestTheTableOfMovesIsWhatThePagerKnows(t *testing.T) {
	m, _ := newKeyMap(nil)
	for _, in := range []scope{inRequest, inChanges} {
		for _, act := range acts("move", "file", "hunk") {
			b, _ := m.of(in, act)
			for _, k := range b.keys {
				if !diff.Moves(k) {
					t.Errorf("%s: the table has %q, which moves nothing", in, k)
				}
			}
		}
	}
}

func TestOneWrongLineOfKeysDropsThatLineOnly(t *testing.T) {
	m, problems := newKeyMap(map[string]string{"stop": "S", "fly": "f", "new": "q", "review": "ctrl+y"})
	if len(problems) != 3 {
		t.Errorf("problems: %q", problems)
	}
	if m.find(inList, "S") != "stop" || m.find(inList, "x") != "" || m.find(inList, "n") != "new" || m.find(inList, "r") != "review" {
		t.Error("the good line does not count, or a wrong one does")
	}
	atDesk(t, scene{w: 120, h: 40, options: func(o *Options) { o.Open, o.Keys = OpenBar, map[string]string{"fly": "f"} }}, func(d *desk) {
		d.sees(`keys.fly = "f": there is no such action`)
	})
}

func TestKeysAreNamedWithTheirExactModifiers(t *testing.T) {
	for bytes, want := range map[string]string{
		"\x19": "ctrl+y", "\x1b[121;5u": "ctrl+y", "\x1b[27;5;121~": "ctrl+y", "\x1b\x19": "ctrl+alt+y", "\x1b[121;6u": "ctrl+shift+y",
		"\x1d": "ctrl+]", "\x1c": `ctrl+\`, "j": "j", "J": "J", " ": "space", "\r": "enter", "\t": "tab", "\x1b[Z": "shift+tab",
		"\x1b[A": "up", "\x1b[6~": "pgdown", "\x1bj": "alt+j", "\x7f": "backspace", "\n": "ctrl+j", "?": "?", "\x1b[121;69u": "ctrl+y",
		"\x1b[1085:1053:121;5u": "ctrl+y", "é": "é",
	} {
		var decoder uv.EventDecoder
		_, event := decoder.Decode([]byte(bytes))
		press, ok := event.(uv.KeyPressEvent)
		if !ok {
			t.Errorf("%q is a %T", bytes, event)
			continue
		}
		if got := keyName(tea.Key(press)); got != want {
			t.Errorf("%q is %q, want %q", bytes, got, want)
		}
	}
}

func TestALayoutWithoutLatinLettersCountsByPlace(t *testing.T) {
	if got := keyName(tea.Key{Text: "о", Code: 'о', BaseCode: 'j'}); got != "j" {
		t.Errorf("got %q", got)
	}
	if got := keyName(tea.Key{Text: "О", Code: 'о', BaseCode: 'j', Mod: tea.ModShift}); got != "J" {
		t.Errorf("got %q", got)
	}
	if got := keyName(tea.Key{Text: "z", Code: 'z', BaseCode: 'y'}); got != "z" {
		t.Errorf("a German z is %q", got)
	}
}

// TestTheKeysAreDocumented writes docs/keys.md with -update.
func TestTheKeysAreDocumented(t *testing.T) {
	const path = "../docs/keys.md"
	m, _ := newKeyMap(nil)
	want := m.document()
	if *update {
		if err := os.MkdirAll("../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/keys.md is not what the table says; go test ./tui -run Documented -update (%v)", err)
	}
}
