package term

import (
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// DEC modes that matter here by number.
const (
	modeAppCursor   = 1
	modeAppKeypad   = 66
	modeMargins     = 69 // DECLRMM
	modeMouseSGR    = 1006
	modeFocus       = 1004
	modePaste       = 2004
	modeSync        = 2026
	modeGraphemes   = 2027
	modeInBandSize  = 2048
	maxTrackedModes = 256
)

// knownModes are the modes that have an effect here besides the ones above;
// DECRQM answers for these and no others.
var knownModes = [...]int{6, 7, 9, 12, 25, 1000, 1002, 1003, 1047, 1048, 1049}

// handle registers what stands before, or in the place of, x/vt's handlers.
func (e *emulator) handle() {
	e.vt.SetCallbacks(vt.Callbacks{
		Bell:        func() { e.owner.tell(Bell{}) },
		AltScreen:   func(bool) { e.all = true },
		EnableMode:  func(m ansi.Mode) { e.changeMode(m, true) },
		DisableMode: func(m ansi.Mode) { e.changeMode(m, false) },
	})
	e.guard()
	e.handleKeyboard()
	e.handleQueries()
	e.handleOSC()
	e.vt.RegisterEscHandler('c', func() bool { // RIS
		e.owner.draw(false)
		e.reset()
		return false
	})
	e.vt.RegisterCsiHandler(ansi.Command('!', 0, 'p'), func(ansi.Params) bool { // DECSTR
		e.kitty = [2][]uint8{}
		e.keys.AppCursor, e.keys.AppKeypad = false, false
		e.shape = 0
		return false
	})
	e.vt.RegisterCsiHandler(ansi.Command(0, ' ', 'q'), func(p ansi.Params) bool { // DECSCUSR
		if n := param(p, 0, 0); n <= 6 {
			e.shape = uint8(n)
		}
		return false
	})
	e.vt.RegisterEscHandler('=', func() bool { e.keys.AppKeypad = true; return false })
	e.vt.RegisterEscHandler('>', func() bool { e.keys.AppKeypad = false; return false })
}

// changeMode follows the modes the program sets.
func (e *emulator) changeMode(mode ansi.Mode, on bool) {
	dec, ok := mode.(ansi.DECMode)
	if !ok {
		return
	}
	n := int(dec)
	if len(e.set) < maxTrackedModes || !on {
		if on {
			e.set[n] = true
		} else {
			delete(e.set, n)
		}
	}
	switch n {
	case modeAppCursor:
		e.keys.AppCursor = on
	case modeAppKeypad:
		e.keys.AppKeypad = on
	case modePaste:
		e.keys.Paste = on
	case modeFocus:
		e.keys.Focus = on
	case modeMouseSGR:
		e.keys.MouseSGR = on
	case modeSync:
		e.owner.draw(on)
	case modeInBandSize:
		if on {
			e.reportSize()
		}
	case 9, 1000, 1002, 1003:
		// They exclude each other: the last one set counts.
		switch {
		case on:
			e.keys.Mouse = uint16(n)
		case e.keys.Mouse == uint16(n):
			e.keys.Mouse = 0
		}
	}
}

// guard bounds parameters that x/vt uses without a check, see its issue 974:
// margins outside the screen index out of range, and a huge count costs much
// time for few bytes.
func (e *emulator) guard() {
	e.vt.RegisterCsiHandler('r', func(p ansi.Params) bool {
		rows := e.vt.Height()
		if len(p) > 1 && param(p, 1, 0) > rows {
			p[1] = ansi.Param(rows)
		}
		if len(p) > 0 && param(p, 0, 0) >= rows {
			p[0] = ansi.Param(max(1, rows-1))
		}
		return false
	})
	noMargins := func(p ansi.Params) bool {
		for i := range p {
			if p[i].Param(0) == modeMargins {
				p[i] = 0
			}
		}
		return false
	}
	e.vt.RegisterCsiHandler(ansi.Command('?', 0, 'h'), noMargins)
	for _, final := range "@ABCDEFILMPSTXZae" {
		e.vt.RegisterCsiHandler(int(final), func(p ansi.Params) bool {
			if most := max(e.size()); len(p) > 0 && param(p, 0, 0) > most {
				p[0] = ansi.Param(most)
			}
			return false
		})
	}
	e.vt.RegisterCsiHandler('b', func(p ansi.Params) bool {
		cols, rows := e.size()
		if len(p) > 0 && param(p, 0, 0) > cols*rows {
			p[0] = ansi.Param(cols * rows)
		}
		return false
	})
	// The saved cursor may be outside of a screen that shrank since.
	restore := func() {
		s := e.current()
		s.RestoreCursor()
		s.ScrollUp(0)
	}
	e.vt.RegisterEscHandler('8', func() bool { restore(); return true })
	e.vt.RegisterCsiHandler('u', func(ansi.Params) bool { restore(); return true })
	e.vt.RegisterCsiHandler('J', func(p ansi.Params) bool {
		if param(p, 0, 0) != 3 {
			return false
		}
		e.vt.ClearScrollback() // x/vt would clear the screen as well
		return true
	})
}

// param is parameter i, or otherwise where it is missing.
func param(p ansi.Params, i, otherwise int) int {
	n, _, ok := p.Param(i, otherwise)
	if !ok {
		return otherwise
	}
	return n
}
