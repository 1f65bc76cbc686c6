package term

import "strconv"

// Mouse is one thing the mouse did over a cell; X and Y count from 0.
type Mouse struct {
	Action MouseAction
	Button MouseButton
	X, Y   int

	Shift, Alt, Ctrl bool
}

// MouseAction says what happened.
type MouseAction uint8

// The actions. A wheel only presses.
const (
	MousePress MouseAction = iota
	MouseRelease
	MouseMove // with Button held, or NoButton
)

// MouseButton is a button as the mouse protocols number them.
type MouseButton uint8

// The buttons.
const (
	LeftButton   MouseButton = 0
	MiddleButton MouseButton = 1
	RightButton  MouseButton = 2
	NoButton     MouseButton = 3
	WheelUp      MouseButton = 64
	WheelDown    MouseButton = 65
	WheelLeft    MouseButton = 66
	WheelRight   MouseButton = 67
)

// EncodeMouse gives the bytes for e, or nothing when the program did not ask
// for it or does not understand the SGR form: older forms cannot say where
// the mouse is on a wide screen.
func (m Modes) EncodeMouse(e Mouse) []byte {
	wheel := e.Button >= WheelUp
	switch {
	case !m.MouseSGR || m.Mouse == 0 || e.X < 0 || e.Y < 0:
		return nil
	case e.Action == MouseMove && (m.Mouse < 1002 || m.Mouse == 1002 && e.Button == NoButton):
		return nil
	case e.Action != MousePress && (m.Mouse == 9 || wheel):
		return nil
	case e.Action != MouseMove && e.Button == NoButton:
		return nil
	}
	code := int(e.Button)
	if e.Action == MouseMove {
		code += 32
	}
	if e.Shift {
		code += 4
	}
	if e.Alt {
		code += 8
	}
	if e.Ctrl {
		code += 16
	}
	final := "M"
	if e.Action == MouseRelease {
		final = "m"
	}
	return []byte("\x1b[<" + strconv.Itoa(code) + ";" + strconv.Itoa(e.X+1) + ";" + strconv.Itoa(e.Y+1) + final)
}
