package term

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// maxKittyDepth bounds the stack of keyboard flags, as the protocol asks.
const maxKittyDepth = 16

// The colours a program hears of when it asks. The real ones belong to
// whatever terminal shows the dashboard, and there may be several; a dark
// background is the common case.
const (
	replyFg = "rgb:e5e5/e5e5/e5e5"
	replyBg = "rgb:0000/0000/0000"
)

// handleKeyboard keeps the kitty keyboard flags, one stack per screen.
func (e *emulator) handleKeyboard() {
	stack := func() *[]uint8 {
		if e.vt.IsAltScreen() {
			return &e.kitty[1]
		}
		return &e.kitty[0]
	}
	e.vt.RegisterCsiHandler(ansi.Command('>', 0, 'u'), func(p ansi.Params) bool {
		s := stack()
		if len(*s) >= maxKittyDepth {
			*s = slices.Delete(*s, 0, 1)
		}
		*s = append(*s, uint8(param(p, 0, 0)&31))
		return true
	})
	e.vt.RegisterCsiHandler(ansi.Command('<', 0, 'u'), func(p ansi.Params) bool {
		s := stack()
		*s = (*s)[:max(0, len(*s)-max(1, param(p, 0, 1)))]
		return true
	})
	e.vt.RegisterCsiHandler(ansi.Command('=', 0, 'u'), func(p ansi.Params) bool {
		s := stack()
		if len(*s) == 0 {
			*s = append(*s, 0)
		}
		top := &(*s)[len(*s)-1]
		flags := uint8(param(p, 0, 0) & 31)
		switch param(p, 1, 1) {
		case 1:
			*top = flags
		case 2:
			*top |= flags
		case 3:
			*top &^= flags
		}
		return true
	})
	e.vt.RegisterCsiHandler(ansi.Command('?', 0, 'u'), func(ansi.Params) bool {
		e.owner.reply(fmt.Sprintf("\x1b[?%du", e.flags()))
		return true
	})
}

// flags are the keyboard flags of the screen that is shown.
func (e *emulator) flags() uint8 {
	stack := e.kitty[0]
	if e.vt.IsAltScreen() {
		stack = e.kitty[1]
	}
	if len(stack) == 0 {
		return 0
	}
	return stack[len(stack)-1]
}

// handleQueries answers what programs ask, in the place of x/vt. What has no
// true answer here (pixel sizes, graphics) is swallowed: programs put a DA1
// behind such a question and take its answer for a no.
func (e *emulator) handleQueries() {
	reply := e.owner.reply
	csi := func(prefix, inter, final byte, answer func(p ansi.Params)) {
		e.vt.RegisterCsiHandler(ansi.Command(prefix, inter, final), func(p ansi.Params) bool {
			answer(p)
			return true
		})
	}
	csi(0, 0, 'c', func(p ansi.Params) {
		if param(p, 0, 0) == 0 {
			reply("\x1b[?62;22c") // a VT220 with colour
		}
	})
	csi('>', 0, 'c', func(p ansi.Params) {
		if param(p, 0, 0) == 0 {
			reply("\x1b[>1;10;0c")
		}
	})
	csi('=', 0, 'c', func(ansi.Params) {})
	csi('>', 0, 'q', func(ansi.Params) { reply("\x1bP>|fletch\x1b\\") })
	csi(0, 0, 'n', func(p ansi.Params) {
		switch param(p, 0, 0) {
		case 5:
			reply("\x1b[0n")
		case 6:
			c := e.cursor()
			reply(fmt.Sprintf("\x1b[%d;%dR", c.Y+1, c.X+1))
		}
	})
	csi('?', 0, 'n', func(p ansi.Params) {
		switch param(p, 0, 0) {
		case 6:
			c := e.cursor()
			reply(fmt.Sprintf("\x1b[?%d;%dR", c.Y+1, c.X+1))
		case 996:
			reply("\x1b[?997;1n") // dark, as replyBg says
		}
	})
	csi(0, '$', 'p', func(p ansi.Params) { reply(fmt.Sprintf("\x1b[%d;0$y", param(p, 0, 0))) })
	csi('?', '$', 'p', func(p ansi.Params) {
		n := param(p, 0, 0)
		reply(fmt.Sprintf("\x1b[?%d;%d$y", n, e.modeState(n)))
	})
	csi(0, 0, 't', func(p ansi.Params) {
		if param(p, 0, 0) == 18 {
			cols, rows := e.size()
			reply(fmt.Sprintf("\x1b[8;%d;%dt", rows, cols))
		}
	})
	e.vt.RegisterDcsHandler(ansi.Command(0, '+', 'q'), func(_ ansi.Params, data []byte) bool { // XTGETTCAP
		name, _, _ := strings.Cut(string(data[:min(len(data), 64)]), ";")
		if _, err := hex.DecodeString(name); err != nil {
			name = ""
		}
		reply("\x1bP0+r" + name + "\x1b\\")
		return true
	})
	e.vt.RegisterDcsHandler(ansi.Command(0, '$', 'q'), func(ansi.Params, []byte) bool { // DECRQSS
		reply("\x1bP0$r\x1b\\")
		return true
	})
}

// modeState is DECRQM's word for a mode: 0 unknown, 1 set, 2 reset, 3 always
// set.
func (e *emulator) modeState(n int) int {
	switch n {
	case modeGraphemes:
		return 3
	case modeAppCursor, modeAppKeypad, modeMouseSGR, modeFocus, modePaste, modeSync, modeInBandSize:
	default:
		if !slices.Contains(knownModes[:], n) {
			return 0
		}
	}
	if e.set[n] {
		return 1
	}
	return 2
}

// reportSize tells the program its size in-band, mode 2048. Pixels are zero:
// there are none.
func (e *emulator) reportSize() {
	cols, rows := e.size()
	e.owner.reply(fmt.Sprintf("\x1b[48;%d;%d;0;0t", rows, cols))
}

// answerColors answers OSC 4, 10, 11 and 12 where they ask, and swallows them
// where they set: a palette is the person's.
func (e *emulator) answerColors(data string) {
	fields := strings.Split(data, ";")
	switch fields[0] {
	case "4":
		for i := 1; i+1 < len(fields) && i < 64; i += 2 {
			n, err := strconv.ParseUint(fields[i], 10, 8)
			if err != nil || fields[i+1] != "?" {
				continue
			}
			r, g, b, _ := ansi.IndexedColor(n).RGBA()
			e.owner.reply(fmt.Sprintf("\x1b]4;%d;rgb:%04x/%04x/%04x\x1b\\", n, r, g, b))
		}
	case "10", "12":
		if len(fields) == 2 && fields[1] == "?" {
			e.owner.reply("\x1b]" + fields[0] + ";" + replyFg + "\x1b\\")
		}
	case "11":
		if len(fields) == 2 && fields[1] == "?" {
			e.owner.reply("\x1b]11;" + replyBg + "\x1b\\")
		}
	}
}
