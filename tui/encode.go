package tui

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"fletch/agents/term"
)

// encodeKey is what a key sends to a program in the given modes.
func encodeKey(modes term.Modes, k tea.Key) []byte {
	code, ok := termCode(k.Code)
	if !ok {
		return nil
	}
	return modes.EncodeKey(term.Key{
		Code: code, Text: k.Text,
		Shift: k.Mod&tea.ModShift != 0, Alt: k.Mod&(tea.ModAlt|tea.ModMeta) != 0, Ctrl: k.Mod&tea.ModCtrl != 0,
	})
}

// termCode is a key's code in the words of package term; false for keys that
// have none, such as a modifier by itself.
func termCode(code rune) (rune, bool) {
	switch code {
	case tea.KeyUp, tea.KeyKpUp:
		return term.Up, true
	case tea.KeyDown, tea.KeyKpDown:
		return term.Down, true
	case tea.KeyRight, tea.KeyKpRight:
		return term.Right, true
	case tea.KeyLeft, tea.KeyKpLeft:
		return term.Left, true
	case tea.KeyHome, tea.KeyFind, tea.KeyKpHome:
		return term.Home, true
	case tea.KeyEnd, tea.KeySelect, tea.KeyKpEnd:
		return term.End, true
	case tea.KeyPgUp, tea.KeyKpPgUp:
		return term.PgUp, true
	case tea.KeyPgDown, tea.KeyKpPgDown:
		return term.PgDn, true
	case tea.KeyInsert, tea.KeyKpInsert:
		return term.Insert, true
	case tea.KeyDelete, tea.KeyKpDelete:
		return term.Delete, true
	case tea.KeyKpEnter:
		return term.Enter, true
	case tea.KeyEnter, tea.KeyTab, tea.KeyBackspace, tea.KeyEscape, tea.KeySpace, tea.KeyExtended:
		return code, true
	}
	if code >= tea.KeyF1 && code <= tea.KeyF12 {
		return term.F1 + code - tea.KeyF1, true
	}
	if code >= tea.KeyKp0 && code <= tea.KeyKp9 {
		return '0' + code - tea.KeyKp0, true
	}
	return code, code <= utf8.MaxRune
}
