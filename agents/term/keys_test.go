package term

import (
	"bytes"
	"strings"
	"testing"
)

func TestKeysAreSpeltByMode(t *testing.T) {
	kitty := Modes{KittyFlags: 1}
	for _, c := range []struct {
		name  string
		modes Modes
		key   Key
		want  string
	}{
		{"a letter", Modes{}, Key{Code: 'a', Text: "a"}, "a"},
		{"a capital", Modes{}, Key{Code: 'a', Text: "A", Shift: true}, "A"},
		{"a capital without text", Modes{}, Key{Code: 'a', Shift: true}, "A"},
		{"composed text", Modes{}, Key{Code: 'a', Text: "\u00e4\u00f6"}, "\u00e4\u00f6"},
		{"alt", Modes{}, Key{Code: 'b', Text: "b", Alt: true}, "\x1bb"},
		{"ctrl+c", Modes{}, Key{Code: 'c', Ctrl: true}, "\x03"},
		{"ctrl+alt+c", Modes{}, Key{Code: 'c', Ctrl: true, Alt: true}, "\x1b\x03"},
		{"ctrl+space", Modes{}, Key{Code: Space, Text: " ", Ctrl: true}, "\x00"},
		{"ctrl+]", Modes{}, Key{Code: ']', Ctrl: true}, "\x1d"},
		{"ctrl+4", Modes{}, Key{Code: '4', Ctrl: true}, "\x1c"},
		{"ctrl+/", Modes{}, Key{Code: '/', Ctrl: true}, "\x1f"},
		{"enter", Modes{}, Key{Code: Enter}, "\r"},
		{"alt+enter", Modes{}, Key{Code: Enter, Alt: true}, "\x1b\r"},
		{"shift+tab", Modes{}, Key{Code: Tab, Shift: true}, "\x1b[Z"},
		{"backspace", Modes{}, Key{Code: Backspace}, "\x7f"},
		{"ctrl+backspace", Modes{}, Key{Code: Backspace, Ctrl: true}, "\b"},
		{"escape", Modes{}, Key{Code: Escape}, "\x1b"},
		{"up", Modes{}, Key{Code: Up}, "\x1b[A"},
		{"up in application mode", Modes{AppCursor: true}, Key{Code: Up}, "\x1bOA"},
		{"ctrl+left", Modes{AppCursor: true}, Key{Code: Left, Ctrl: true}, "\x1b[1;5D"},
		{"home", Modes{}, Key{Code: Home}, "\x1b[H"},
		{"page up", Modes{}, Key{Code: PgUp}, "\x1b[5~"},
		{"shift+delete", Modes{}, Key{Code: Delete, Shift: true}, "\x1b[3;2~"},
		{"F1", Modes{}, Key{Code: F1}, "\x1bOP"},
		{"F4", Modes{}, Key{Code: F4}, "\x1bOS"},
		{"F5", Modes{}, Key{Code: F5}, "\x1b[15~"},
		{"F12", Modes{}, Key{Code: F12}, "\x1b[24~"},
		{"shift+F3", Modes{}, Key{Code: F3, Shift: true}, "\x1b[1;2R"},
		{"kitty: a letter", kitty, Key{Code: 'a', Text: "a"}, "a"},
		{"kitty: escape", kitty, Key{Code: Escape}, "\x1b[27u"},
		{"kitty: ctrl+c", kitty, Key{Code: 'c', Ctrl: true}, "\x1b[99;5u"},
		{"kitty: ctrl+shift+c", kitty, Key{Code: 'C', Ctrl: true, Shift: true}, "\x1b[99;6u"},
		{"kitty: enter", kitty, Key{Code: Enter}, "\r"},
		{"kitty: shift+enter", kitty, Key{Code: Enter, Shift: true}, "\x1b[13;2u"},
		{"kitty: alt+a", kitty, Key{Code: 'a', Text: "a", Alt: true}, "\x1b[97;3u"},
		{"kitty: up", Modes{KittyFlags: 1, AppCursor: true}, Key{Code: Up}, "\x1b[A"},
		{"kitty: F3", kitty, Key{Code: F3}, "\x1b[13~"},
		{"kitty: all keys", Modes{KittyFlags: 8}, Key{Code: 'a', Text: "a"}, "\x1b[97u"},
		{"kitty: all keys with text", Modes{KittyFlags: 24}, Key{Code: 'a', Text: "A", Shift: true}, "\x1b[97;2;65u"},
		{"control bytes in text", Modes{}, Key{Text: "a\x1b\x03b"}, "ab"},
		{"no key at all", Modes{}, Key{}, ""},
		{"an unknown special key", Modes{}, Key{Code: F12 + 1}, ""},
	} {
		if got := string(c.modes.EncodeKey(c.key)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAPasteCannotEndItselfOrPressKeys(t *testing.T) {
	hostile := "a\x1b[20\x1b[201~1~b\x03\x1b[201~rm\r\nc\td\u009b\x7f"
	got := string(Modes{Paste: true}.EncodePaste(hostile))
	inner, ok := strings.CutPrefix(got, pasteStart)
	inner, ok2 := strings.CutSuffix(inner, pasteEnd)
	if !ok || !ok2 || strings.ContainsAny(inner, "\x1b\x03\r\x7f") {
		t.Errorf("paste = %q", got)
	}
	if !strings.HasSuffix(inner, "rm\nc\td") {
		t.Errorf("text between the brackets = %q", inner)
	}
	if got := string(Modes{}.EncodePaste("one\ntwo")); got != "one\rtwo" {
		t.Errorf("without brackets: %q", got)
	}
	if got := (Modes{Paste: true}).EncodePaste("\x1b"); got != nil {
		t.Errorf("a paste of nothing = %q", got)
	}
}

func TestMouseIsSentOnlyWhereAskedFor(t *testing.T) {
	click := Mouse{Button: LeftButton, X: 4, Y: 2}
	for _, c := range []struct {
		modes Modes
		event Mouse
		want  string
	}{
		{Modes{}, click, ""},
		{Modes{Mouse: 1000}, click, ""},
		{Modes{Mouse: 1000, MouseSGR: true}, click, "\x1b[<0;5;3M"},
		{Modes{Mouse: 1000, MouseSGR: true}, Mouse{Action: MouseRelease, X: 4, Y: 2}, "\x1b[<0;5;3m"},
		{Modes{Mouse: 1000, MouseSGR: true}, Mouse{Button: WheelDown, Ctrl: true}, "\x1b[<81;1;1M"},
		{Modes{Mouse: 1000, MouseSGR: true}, Mouse{Action: MouseMove}, ""},
		{Modes{Mouse: 1002, MouseSGR: true}, Mouse{Action: MouseMove}, "\x1b[<32;1;1M"},
		{Modes{Mouse: 1002, MouseSGR: true}, Mouse{Action: MouseMove, Button: NoButton}, ""},
		{Modes{Mouse: 1003, MouseSGR: true}, Mouse{Action: MouseMove, Button: NoButton}, "\x1b[<35;1;1M"},
		{Modes{Mouse: 1003, MouseSGR: true}, Mouse{X: -1}, ""},
	} {
		if got := c.modes.EncodeMouse(c.event); !bytes.Equal(got, []byte(c.want)) {
			t.Errorf("%+v in %+v: %q, want %q", c.event, c.modes, got, c.want)
		}
	}
}

func TestFocusIsSentOnlyWhereAskedFor(t *testing.T) {
	if got := (Modes{}).EncodeFocus(true); got != nil {
		t.Errorf("unasked: %q", got)
	}
	if got := string(Modes{Focus: true}.EncodeFocus(true)) + string(Modes{Focus: true}.EncodeFocus(false)); got != "\x1b[I\x1b[O" {
		t.Errorf("asked: %q", got)
	}
}
