// Command show puts the dashboard with a made-up fleet on this terminal, to
// look at it. Nothing it shows is real, and nothing it does reaches further
// than its own memory.
//
//	go run ./tui/tuitest/show [-fleet drawn|empty|first|bare] [-size 80x36]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"fletch/state"
	"fletch/tui"
	"fletch/tui/tuitest"
)

type screens struct{ *tuitest.Screens }

func (s screens) Open(_ context.Context, id state.AgentID) (tui.Screen, error) {
	screen, err := s.Connect(id)
	if err != nil {
		return nil, err
	}
	return screen, nil
}

func main() {
	kind := flag.String("fleet", "drawn", "drawn, empty, first or bare")
	size := flag.String("size", "80x36", "of the agents' screens")
	bar := flag.Bool("bar", false, "requests do not open by themselves")
	ask := flag.Duration("ask", 0, "after this time another agent asks to push")
	flag.Parse()
	if err := show(*kind, *size, *bar, *ask); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func show(kind, size string, bar bool, ask time.Duration) error {
	var cols, rows int
	if _, err := fmt.Sscanf(size, "%dx%d", &cols, &rows); err != nil {
		return fmt.Errorf("reading -size: %w", err)
	}
	start := time.Now()
	now := func() time.Time { return tuitest.Noon().Add(time.Since(start)) }
	fleet, machine := tuitest.Drawn(), tuitest.Machine()
	switch kind {
	case "drawn":
	case "empty":
		fleet = state.Fleet{Left: tuitest.Noon()}
	case "first":
		fleet = state.Fleet{}
	case "bare":
		fleet, machine = state.Fleet{}, tuitest.BareMachine()
	default:
		return errors.New("-fleet is drawn, empty, first or bare")
	}
	hub := tuitest.NewHub(fleet, machine, now)
	for _, id := range []state.AgentID{tuitest.AmberRiver, tuitest.FernLake, tuitest.CalmCedar} {
		hub.SetPatch("7", id, tuitest.Patch(tuitest.Head))
	}
	hub.SetPatch("8", "", tuitest.Patch(tuitest.Newer))
	terms := tuitest.DrawnScreens(cols, rows)
	defer terms.Close()
	if ask > 0 {
		timer := time.AfterFunc(ask, func() {
			hub.Happen(tuitest.GoldFinch, state.Asked{Request: tuitest.Push("8", tuitest.GoldFinch, "gold-finch", tuitest.Newer, now())})
		})
		defer timer.Stop()
	}
	o := tui.Options{
		Hub: hub, Screens: screens{terms}, Dir: "/home/you/src/shop", Home: "/home/you", Version: "0.1.0", Now: now,
		Demo: func(context.Context) error { return errors.New("there is no demo in here") },
	}
	if bar {
		o.Open = tui.OpenBar
	}
	return tui.Run(context.Background(), o)
}
