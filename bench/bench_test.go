package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentilesAreValuesThatWereMeasured(t *testing.T) {
	var all []time.Duration
	for i := 100; i > 0; i-- {
		all = append(all, time.Duration(i))
	}
	for p, want := range map[int]time.Duration{0: 1, 1: 1, 50: 50, 99: 99, 100: 100} {
		if got := percentile(all, p); got != want {
			t.Errorf("p%d is %d, want %d", p, got, want)
		}
	}
	if got := median([]time.Duration{9, 1, 5}); got != 5 {
		t.Errorf("the median is %d", got)
	}
	if got := percentile([]time.Duration{7}, 99); got != 7 {
		t.Errorf("of one it is %d", got)
	}
}

func TestBothSidesRunInTurn(t *testing.T) {
	var order []string
	side := func(name string, took time.Duration) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			order = append(order, name)
			return took, nil
		}
	}
	a, b, err := alternate(side("ours", 2*time.Millisecond), side("theirs", 4*time.Millisecond))
	if err != nil || a != 2 || b != 4 {
		t.Errorf("%v %v %v", a, b, err)
	}
	if got := strings.Join(order, " "); got != strings.TrimSpace(strings.Repeat("ours theirs ", rounds)) {
		t.Errorf("they ran as %s", got)
	}
}

func TestAProcessThatCameOrWentIsCounted(t *testing.T) {
	before := map[int]procStat{1: {cpu: 10, childFaults: 5}, 2: {cpu: 3}, 3: {cpu: 9}}
	after := map[int]procStat{1: {cpu: 15, childFaults: 9}, 2: {cpu: 3}, 4: {cpu: 2}}
	if cpu, started := difference(before, after); cpu != 7 || started != 2 {
		t.Errorf("%d of CPU, %d started", cpu, started)
	}
	if cpu, started := difference(before, before); cpu != 0 || started != 0 {
		t.Errorf("nothing happened: %d of CPU, %d started", cpu, started)
	}
}

func TestAMeasurementThatFailsCostsNoOther(t *testing.T) {
	broken := errors.New("broken")
	table := []measurement{
		{"first", func(context.Context, World) ([]Row, error) { return nil, broken }},
		{"second", func(context.Context, World) ([]Row, error) {
			return []Row{{Value: 6, YardstickValue: 3}, {Name: "second-p99", Value: 1}}, nil
		}},
	}
	var told []Row
	err := run(t.Context(), World{}, table, nil, func(r Row) { told = append(told, r) })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "measuring first") {
		t.Errorf("%v", err)
	}
	want := []Row{{Name: "second", Value: 6, YardstickValue: 3, Ratio: 2}, {Name: "second-p99", Value: 1}}
	if !slices.Equal(told, want) {
		t.Errorf("%+v", told)
	}
	told = nil
	if err := run(t.Context(), World{}, table, []string{"second"}, func(r Row) { told = append(told, r) }); err != nil || len(told) != 2 {
		t.Errorf("%+v %v", told, err)
	}
}
