package tui

// The smallest terminal that shows anything but a sentence.
const (
	minCols = 40
	minRows = 10
)

// shape is how the parts of the screen lie.
type shape uint8

const (
	tooSmall shape = iota
	bare           // a list or an agent, no titles: less than 14 rows
	single         // one pane at a time
	stacked        // the list above the end of the selected agent's screen
	beside         // the list left, the agent right
)

// rect is a part of the screen in cells.
type rect struct{ x, y, w, h int }

func (r rect) holds(x, y int) bool {
	return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h
}

// layout says where everything is. It depends on nothing but its arguments.
type layout struct {
	shape shape
	w, h  int
	// list and right are without their title rows. One of them is empty
	// when only the other is shown.
	list, right rect
	// listTitle and rightTitle are the rows of the titles, -1 when there is
	// none.
	listTitle, rightTitle int
	// divider is the column between list and right, -1 when there is none.
	divider int
	bottom  int // row of the line above the hints, -1 when there is none
	hints   int // row of the hint line
	// dialog is where a sheet, a form or help is shown, edges included.
	dialog rect
}

// lay divides a terminal. rows is how many rows the list would like; whole is
// whether the right side has the screen to itself, narrow layouts show either
// the list or, when onRight, the other side.
func lay(w, h, rows int, onRight, whole bool) layout {
	l := layout{w: w, h: h, divider: -1, bottom: h - 2, hints: h - 1, listTitle: -1, rightTitle: -1}
	l.dialog = rect{0, 1, w, h - 1}
	body := rect{0, 2, w, h - 4}
	switch {
	case w < minCols || h < minRows:
		return layout{w: w, h: h, divider: -1, bottom: -1, hints: -1, listTitle: -1, rightTitle: -1}
	case h < 14:
		l.shape, l.bottom = bare, -1
		l.dialog = rect{0, 0, w, h}
		body = rect{0, 1, w, h - 2}
		if onRight || whole {
			l.right, l.rightTitle = body, 0
			return l
		}
		l.list = body
		return l
	case w >= 100:
		l.shape = beside
	case w < 60 || h < 22 || rows == 0:
		l.shape = single
	default:
		l.shape = stacked
	}
	if whole || onRight && l.shape != beside {
		l.right, l.rightTitle = body, 1
		return l
	}
	switch l.shape {
	case beside:
		left := min(38, max(34, w-82))
		l.listTitle, l.rightTitle, l.divider = 1, 1, left
		l.list = rect{0, 2, left, h - 4}
		l.right = rect{left + 2, 2, w - left - 2, h - 4}
		if w >= 110 {
			l.dialog = rect{left, 1, w - left, h - 2}
		}
	case stacked:
		// The end of the agent's screen is worth at least seven rows; the
		// list scrolls in what is left.
		above := max(4, min(rows+1, body.h-8))
		l.listTitle = 1
		l.list = rect{0, 2, w, above}
		l.rightTitle = 2 + above
		l.right = rect{1, 3 + above, w - 1, body.h - above - 1}
	case single, bare, tooSmall:
		l.listTitle, l.list = 1, body
	}
	return l
}

// typingSize is how large an agent's screen is when it has the keyboard in
// this terminal: the one size that agents are given.
func typingSize(w, h int, whole bool) (cols, rows int) {
	l := lay(w, h, 0, true, whole)
	return l.right.w, l.right.h
}
