package tui

import (
	"reflect"
	"time"
	"unsafe"

	tea "charm.land/bubbletea/v2"
)

// How often the framework looks whether there is something to draw: while
// something happens, and while nothing does.
const (
	paceBusy = 2 * time.Millisecond
	paceIdle = time.Second
	// paceStay is how long it stays busy after the last message.
	paceStay = 50 * time.Millisecond
)

// pace sets the framework's drawing ticker. Bubble Tea draws when a ticker of
// a fixed rate says so, also when there is nothing to draw: a rate at which an
// echo is not felt to lag wakes the processor hundreds of times a second for
// an idle fleet. So the ticker runs fast for as long as messages come, and
// nearly stands still otherwise. Where the framework does not have that ticker
// any more, its own rate counts; TestTheFrameworkHasATicker would tell.
type pace struct {
	program *tea.Program
	ticker  *time.Ticker // nil until the program runs
	busy    bool
	news    bool // a message has come since the last look
}

// idleMsg asks whether anything has happened lately. It is no news itself.
type idleMsg struct{}

// touch is called for every message that is news.
func (p *pace) touch() tea.Cmd {
	if p == nil || p.program == nil {
		return nil
	}
	if p.ticker == nil {
		if p.ticker = tickerOf(p.program); p.ticker == nil {
			p.program = nil
			return nil
		}
	}
	p.news = true
	if p.busy {
		return nil
	}
	p.busy = true
	p.ticker.Reset(paceBusy)
	return p.look()
}

// settle is called for idleMsg: it slows the ticker down when nothing came.
func (p *pace) settle() tea.Cmd {
	if p.news {
		return p.look()
	}
	p.busy = false
	p.ticker.Reset(paceIdle)
	return nil
}

func (p *pace) look() tea.Cmd {
	p.news = false
	return tea.Tick(paceStay, func(time.Time) tea.Msg { return idleMsg{} })
}

// tickerOf is the drawing ticker of a running program, or nil if it has none.
// It must be called from the program's own goroutine, as Update is.
func tickerOf(p *tea.Program) *time.Ticker {
	field := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*time.Ticker]() {
		return nil
	}
	return *(**time.Ticker)(unsafe.Pointer(field.UnsafeAddr())) //nolint:gosec // the framework has no setter for it; the type was checked
}
