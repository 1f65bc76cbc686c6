package term

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key is one key press. Code is what the key is without modifiers: a
// character ('a', '1', 'ä') or one of the keys below. Text is what it types,
// empty for keys that type nothing.
type Key struct {
	Code rune
	Text string

	Shift, Alt, Ctrl bool
}

// Keys that are characters.
const (
	Tab       rune = '\t'
	Enter     rune = '\r'
	Escape    rune = 0x1b
	Space     rune = ' '
	Backspace rune = 0x7f
)

// Keys that are not; their codes lie beyond Unicode.
const (
	Up rune = unicode.MaxRune + 1 + iota
	Down
	Right
	Left
	Home
	End
	PgUp
	PgDn
	Insert
	Delete
	F1
	F2
	F3
	F4
	F5
	F6
	F7
	F8
	F9
	F10
	F11
	F12
)

// Kitty keyboard flags that change what is sent.
const (
	kittyDisambiguate = 1
	kittyAllKeys      = 8
	kittyText         = 16
)

// finalByte is how a key of the form CSI X is spelt; 0 for other keys.
func finalByte(code rune) byte {
	switch code {
	case Up, Down, Right, Left:
		return 'A' + byte(code-Up)
	case Home:
		return 'H'
	case End:
		return 'F'
	case F1, F2, F3, F4:
		return 'P' + byte(code-F1)
	}
	return 0
}

// keyNumber is how a key of the form CSI n ~ is spelt; 0 for other keys.
func keyNumber(code rune) int {
	switch code {
	case Insert:
		return 2
	case Delete:
		return 3
	case PgUp:
		return 5
	case PgDn:
		return 6
	case F3:
		return 13
	case F5:
		return 15
	case F6, F7, F8, F9, F10:
		return 17 + int(code-F6)
	case F11, F12:
		return 23 + int(code-F11)
	}
	return 0
}

// EncodeKey gives the bytes a terminal in these modes sends for k; nothing
// for a key that has none.
func (m Modes) EncodeKey(k Key) []byte {
	k.Text = strings.Map(typed, k.Text)
	switch {
	case k.Code > unicode.MaxRune:
		return m.functional(k)
	case m.KittyFlags&(kittyDisambiguate|kittyAllKeys) != 0:
		if seq := m.kitty(k); seq != nil {
			return seq
		}
	}
	return legacy(k)
}

// modifiers is 1 plus a bit for each modifier.
func (k Key) modifiers() int {
	n := 1
	if k.Shift {
		n++
	}
	if k.Alt {
		n += 2
	}
	if k.Ctrl {
		n += 4
	}
	return n
}

// functional spells keys that are no characters.
func (m Modes) functional(k Key) []byte {
	mods := k.modifiers()
	kitty := m.KittyFlags&(kittyDisambiguate|kittyAllKeys) != 0
	letter := finalByte(k.Code)
	if letter != 0 && !(kitty && k.Code == F3) { // CSI R is a cursor report
		switch {
		case mods > 1:
			return []byte("\x1b[1;" + strconv.Itoa(mods) + string(rune(letter)))
		case !kitty && (letter >= 'P' || m.AppCursor):
			return []byte{0x1b, 'O', letter}
		}
		return []byte{0x1b, '[', letter}
	}
	number := keyNumber(k.Code)
	switch {
	case number == 0:
		return nil
	case mods > 1:
		return []byte("\x1b[" + strconv.Itoa(number) + ";" + strconv.Itoa(mods) + "~")
	}
	return []byte("\x1b[" + strconv.Itoa(number) + "~")
}

// kitty spells a character key as CSI code ; modifiers u where the protocol
// wants that, and gives nil where the key stays what it always was.
func (m Modes) kitty(k Key) []byte {
	mods := k.modifiers()
	code := unicode.ToLower(k.Code)
	all := m.KittyFlags&kittyAllKeys != 0
	if code == 0 {
		return nil
	}
	if !all {
		switch code {
		case Escape:
		case Enter, Tab, Backspace:
			if mods == 1 {
				return nil
			}
		default:
			if !k.Ctrl && !k.Alt {
				return nil
			}
		}
	}
	seq := "\x1b[" + strconv.Itoa(int(code))
	text := ""
	if all && m.KittyFlags&kittyText != 0 && !k.Ctrl && !k.Alt {
		var points []string
		for _, r := range k.Text {
			points = append(points, strconv.Itoa(int(r)))
		}
		text = strings.Join(points, ":")
	}
	switch {
	case text != "":
		seq += ";" + strconv.Itoa(mods) + ";" + text
	case mods > 1:
		seq += ";" + strconv.Itoa(mods)
	}
	return []byte(seq + "u")
}

// legacy spells a character key as terminals always did.
func legacy(k Key) []byte {
	var seq []byte
	switch {
	case k.Code == Tab && k.Shift:
		seq = []byte("\x1b[Z")
	case k.Code == Backspace && k.Ctrl:
		seq = []byte{0x08}
	case k.Code == Tab, k.Code == Enter, k.Code == Escape, k.Code == Backspace:
		seq = []byte{byte(k.Code)}
	case k.Ctrl:
		seq = control(k.Code)
	case k.Text != "":
		seq = []byte(k.Text)
	case k.Shift:
		seq = character(unicode.ToUpper(k.Code))
	default:
		seq = character(k.Code)
	}
	if k.Alt && len(seq) > 0 {
		seq = append([]byte{0x1b}, seq...)
	}
	return seq
}

func character(r rune) []byte {
	if typed(r) < 0 {
		return nil
	}
	return utf8.AppendRune(nil, r)
}

// control gives the control byte of ctrl and a character; where there is
// none, the character itself.
func control(r rune) []byte {
	switch r = unicode.ToLower(r); {
	case r >= 'a' && r <= 'z', r == '[', r == '\\', r == ']', r == '^', r == '_':
		return []byte{byte(r) & 0x1f}
	case r == '@', r == ' ', r == '2':
		return []byte{0}
	case r >= '3' && r <= '7':
		return []byte{0x1b + byte(r-'3')}
	case r == '8', r == '?':
		return []byte{0x7f}
	case r == '/':
		return []byte{0x1f}
	}
	return character(r)
}

// typed drops what no key types: control characters and broken UTF-8.
func typed(r rune) rune {
	if unicode.IsControl(r) || r == utf8.RuneError {
		return -1
	}
	return r
}
