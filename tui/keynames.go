package tui

import (
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// locks are modifiers that say how the keyboard stands, not what was meant.
const locks = tea.ModCapsLock | tea.ModNumLock | tea.ModScrollLock

// keyName is a key as the table writes it: the modifiers that were held,
// exactly, and the key: "j", "J", "ctrl+y", "ctrl+alt+y", "pgdown". On a
// layout that does not write Latin letters the place of the key on a US
// keyboard counts, where the terminal tells it.
func keyName(k tea.Key) string {
	mod := k.Mod &^ locks
	if mod&^tea.ModShift == 0 && k.Text != "" && k.Text != " " {
		if latin := baseLetter(k, mod); latin != "" {
			return latin
		}
		return k.Text
	}
	k.Mod = mod
	k.Text = ""
	return k.Keystroke()
}

// baseLetter is the ASCII letter where k lies on a US keyboard, if k wrote
// something that is not ASCII.
func baseLetter(k tea.Key, mod tea.KeyMod) string {
	r, _ := utf8.DecodeRuneInString(k.Text)
	if r < utf8.RuneSelf || k.BaseCode == 0 || k.BaseCode >= utf8.RuneSelf {
		return ""
	}
	if mod&tea.ModShift != 0 {
		return string(unicode.ToUpper(k.BaseCode))
	}
	return string(k.BaseCode)
}

// shown is a key as a person reads it.
func shown(key string) string {
	switch key {
	case "up":
		return "↑"
	case "down":
		return "↓"
	case "left":
		return "←"
	case "right":
		return "→"
	case "pgdown":
		return "pgdn"
	}
	return key
}
