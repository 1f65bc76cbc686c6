package tui

import (
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"fletch/state"
	"fletch/themes"
	"fletch/tui/diff"
	"fletch/tui/sheet"
)

// pagerWidth is how wide a patch is laid out for the person's pager.
const pagerWidth = 100

// pagerMsg is a patch that the person wants to read in their pager.
type pagerMsg struct{ patch state.Patch }

// fold gives the terminal to $PAGER, with the text as the sheet would show
// it: safe characters only. The sheet was out of sight meanwhile and starts
// its locks over.
func (msg pagerMsg) fold(m Model) (Model, tea.Cmd) {
	words := strings.Fields(orWord(getenv(m.o.Env, "PAGER"), "less"))
	cmd := exec.CommandContext(m.ctx, words[0], words[1:]...)
	cmd.Env = m.o.Env
	view := diff.New(msg.patch)
	total := view.Position(pagerWidth, 1).Total
	rows := view.View(themes.New(true, themes.None), themes.Marks{}, pagerWidth, total)
	cmd.Stdin = strings.NewReader(stripped(strings.Join(rows, "\n")) + "\n")
	return m, tea.ExecProcess(cmd, func(err error) tea.Msg { return pagedMsg{err} })
}

type pagedMsg struct{ err error }

func (msg pagedMsg) take(m Model) Model {
	if m.request != nil {
		s, _ := m.request.sheet.Update(sheet.Key{Name: "ctrl+l"}, m.now)
		m = m.withSheet(s)
	}
	if msg.err != nil {
		m.toast = failure("showing it in the pager", msg.err)
	}
	return m
}
