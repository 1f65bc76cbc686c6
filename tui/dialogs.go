package tui

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/themes"
)

// dialog is something the person opened over the dashboard. Dialogs are
// values in a stack; the topmost has the keyboard, while news goes on
// arriving below.
type dialog interface {
	scope() scope
	// key takes a key and says what comes of it.
	key(name, text string, keys keyMap, now time.Time) (dialog, outcome)
	paste(text string) dialog
	// surveyed tells a dialog that is open what the machine can do.
	surveyed(s state.Survey) dialog
	// armsAt is when the dialog begins to answer; zero: at once.
	armsAt() time.Time
	// height is how many rows it takes from the bottom; 0: all.
	height() int
	// view draws it in w by h cells, edges included; cursor is where text
	// goes, nil if nowhere.
	view(s themes.Styles, keys keyMap, w, h int, now time.Time) (lines []string, cursor *tea.Position)
}

// outcome is what a dialog wants done.
type outcome struct {
	closes bool
	rest   bool                         // the key was an esc that came slowly; what is left of it counts, too
	then   func(Model) (Model, tea.Cmd) // nil: nothing
}

func (m Model) onDialogKey(k tea.Key, name string) (Model, tea.Cmd) {
	top := len(m.dialogs) - 1
	d, out := m.dialogs[top].key(name, k.Text, m.keys, m.now)
	m.dialogs = slices.Clone(m.dialogs)
	m.dialogs[top] = d
	if out.closes {
		m.dialogs = m.dialogs[:top]
		m = m.uncovered()
	}
	var cmds []tea.Cmd
	if out.then != nil {
		var cmd tea.Cmd
		m, cmd = out.then(m)
		cmds = append(cmds, cmd)
	}
	if out.rest && m.request == nil {
		k.Mod &^= tea.ModAlt
		k.Text = string(k.Code)
		var cmd tea.Cmd
		m, cmd = m.takeKey(k, keyName(k))
		cmds = append(cmds, cmd)
	}
	return m, tea.Batch(cmds...)
}

// slowEsc reports whether a key is alt and a letter: in a slow terminal that is
// how esc and a letter behind it arrive.
func slowEsc(name string) bool { return len(name) == len("alt+x") && name[:4] == "alt+" }

// fixed is what a dialog is that has no text and waits for nothing.
type fixed struct{}

func (fixed) armsAt() time.Time { return time.Time{} }
func (fixed) height() int       { return 0 }

// confirmKind is what is asked before it is done.
type confirmKind uint8

const (
	confirmStop confirmKind = iota
	confirmRemove
	confirmResume
)

// confirm asks once. It opens disarmed, so that a key that was meant for
// something else does not answer it, and needs no typing, since undo or
// enter take back what it does.
type confirm struct {
	kind  confirmKind
	agent state.Agent
	armed time.Time
}

func newConfirm(kind confirmKind, a state.Agent, now time.Time) confirm {
	return confirm{kind, a, now.Add(confirmArms)}
}

func (confirm) scope() scope                     { return inConfirm }
func (c confirm) paste(string) dialog            { return c }
func (c confirm) surveyed(s state.Survey) dialog { return c }
func (c confirm) armsAt() time.Time              { return c.armed }
func (confirm) height() int                      { return 4 }

func (c confirm) key(name, _ string, keys keyMap, now time.Time) (dialog, outcome) {
	switch act := keys.find(inConfirm, name); {
	case act == "no":
		return c, outcome{closes: true}
	case slowEsc(name):
		return c, outcome{closes: true, rest: true}
	case act == "yes" && !now.Before(c.armed):
		return c, outcome{closes: true, then: c.done}
	case act == "yes":
		c.armed = now.Add(confirmArms) // a key that repeats never answers
	}
	return c, outcome{}
}

// words are the question, what it means, and what is being done meanwhile.
func (c confirm) words() (question, meaning, doing string) {
	name := c.agent.Name
	switch c.kind {
	case confirmStop:
		return "stop " + name, "Its program ends now. Its work stays; enter continues it later.", "stopping " + name
	case confirmRemove:
		meaning = "Its work goes to the trash for 7 days; u brings it back."
		if c.agent.Status.Live() {
			meaning = "It is still running and ends now. " + meaning
		}
		return "remove " + name, meaning, "removing " + name
	case confirmResume:
		return "continue " + name, "It starts again in its own checkout, sealed as before.", "continuing " + name
	}
	return "", "", ""
}

func (c confirm) done(m Model) (Model, tea.Cmd) {
	hub, a := m.o.Hub, c.agent
	_, _, doing := c.words()
	return m, m.do(doing, func(ctx context.Context) (tea.Msg, error) {
		switch c.kind {
		case confirmStop:
			return doneMsg{good("stopped " + a.Name + "; enter continues it")}, hub.Stop(ctx, a.ID)
		case confirmRemove:
			return doneMsg{good("removed " + a.Name + "; u brings it back (7 days)")}, hub.Remove(ctx, a.ID, a.Status.Live())
		case confirmResume:
			return doneMsg{good("continuing " + a.Name)}, hub.Resume(ctx, a.ID)
		}
		return nil, nil
	})
}

func (c confirm) view(s themes.Styles, _ keyMap, w, h int, now time.Time) ([]string, *tea.Position) {
	question, meaning, _ := c.words()
	edge := s.Focus
	if c.kind != confirmResume {
		edge = s.Bad
	}
	yes, no := s.Focus.Bold(true), s.Focus
	if now.Before(c.armed) {
		yes, no = s.Faint, s.Faint
	}
	lines := []string{sheetTop(edge, w, span{edge.Bold(true), question})}
	for _, text := range wrap(meaning, w-4) {
		lines = append(lines, newRow(w).add(edge, themes.HeavyVertical).add(s.Text, "  "+text).String())
	}
	for len(lines) < h-1 {
		lines = append(lines, newRow(w).add(edge, themes.HeavyVertical).String())
	}
	return append(lines[:h-1], sheetBottom(edge, w,
		span{yes, "enter"}, span{s.Text, " " + question + "   "}, span{no, "esc"}, span{s.Faint, " leave it as it is"})), nil
}

// undo brings back the agent that was removed last.
func (m Model) undo() (Model, tea.Cmd) {
	if len(m.fleet.Trash) == 0 {
		m.toast = inform("there is nothing to bring back").from(m.now)
		return m, nil
	}
	hub := m.o.Hub
	return m, m.do("bringing it back", func(ctx context.Context) (tea.Msg, error) {
		a, err := hub.Undo(ctx)
		return doneMsg{good("brought back " + a.Name)}, err
	})
}
