package tui

import (
	"context"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"fletch/agents/attach"
	"fletch/agents/term"
	"fletch/tui/tuitest"
)

// benchModel is a dashboard of 120×40 that shows the drawn fleet.
func benchModel(b *testing.B) (Model, *live) {
	b.Helper()
	screens := tuitest.DrawnScreens(80, 36)
	b.Cleanup(screens.Close)
	o := Options{
		Hub: tuitest.NewHub(tuitest.Drawn(), tuitest.Machine(), tuitest.Noon), Screens: fakeScreens{screens}, Open: OpenBar,
		Now: tuitest.Noon, Env: []string{"LANG=C.UTF-8"},
	}
	m := newModel(context.Background(), o)
	for _, msg := range []tea.Msg{tea.WindowSizeMsg{Width: 120, Height: 40}, fleetMsg{fleet: tuitest.Drawn()}} {
		next, _ := m.Update(msg)
		m = next.(Model)
	}
	l := m.screens.live
	screen, err := screens.Connect(tuitest.AmberRiver)
	if err != nil {
		b.Fatal(err)
	}
	next, _ := m.Update(openedMsg{l, screen, nil})
	m = next.(Model)
	b.Cleanup(m.close)
	return m, l
}

// BenchmarkFrame is one changed row of the agent that is looked at, folded and
// drawn.
func BenchmarkFrame(b *testing.B) {
	m, l := benchModel(b)
	terminal := term.New(80, 36, 100)
	defer func() { _ = terminal.Close() }()
	frame := terminal.Snapshot()
	next, _ := m.Update(screenMsg{live: l, news: attach.FrameMsg{Frame: frame}})
	m = next.(Model)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		fmt.Fprintf(terminal, "\x1b[5;1H%d", i)
		f := terminal.Since(frame.Seq)
		frame.Seq = f.Seq
		next, _ := m.Update(screenMsg{live: l, news: attach.FrameMsg{Frame: f}})
		m = next.(Model)
		_ = m.View()
	}
}

// BenchmarkKey is the cursor that moves by one.
func BenchmarkKey(b *testing.B) {
	m, _ := benchModel(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := "j"
		if i%2 == 1 {
			key = "k"
		}
		next, _ := m.Update(keyPress(key))
		m = next.(Model)
		_ = m.View()
	}
}

// BenchmarkFirstFrame is a fleet of 100 agents, from the snapshot to the
// screen.
func BenchmarkFirstFrame(b *testing.B) {
	f := tuitest.Drawn()
	for i := range 92 {
		a := f.Agents[i%8]
		a.ID = f.Agents[0].ID[:4] + f.Agents[i%8].ID[:2] + f.Agents[i/8%8].ID[:1] + f.Agents[i/64].ID[:1]
		a.Since = time.Time{}
		f.Agents = append(f.Agents, a)
	}
	o := Options{Hub: tuitest.NewHub(f, tuitest.Machine(), tuitest.Noon), Screens: fakeScreens{tuitest.NewScreens()}, Now: tuitest.Noon, Env: []string{"LANG=C.UTF-8"}}
	for b.Loop() {
		m := newModel(context.Background(), o)
		next, _ := m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
		next, _ = next.Update(fleetMsg{fleet: f})
		_ = next.View()
	}
}
