// Package bench measures what the budgets name, each beside its yardstick in
// the same run on the same machine, as a ratio. A machine is noisy: what is
// compared runs in turn, five times each, and medians stand in the table.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"fletch/hub/client"
)

// rounds is how often each side of a comparison is run.
const rounds = 5

// Row is one line of the table. A row without a yardstick has an empty
// Yardstick and a Ratio of 0.
type Row struct {
	Name           string  `json:"name"`
	Value          float64 `json:"value"`
	Unit           string  `json:"unit"`
	Yardstick      string  `json:"yardstick"`
	YardstickValue float64 `json:"yardstick_value"`
	Ratio          float64 `json:"ratio"`
	Budget         string  `json:"budget"`
}

// World is what the measurements work with.
type World struct {
	Self   string // the fletch executable
	Home   string // FLETCH_HOME, of its own
	Dir    string // for repositories and files
	Env    []string
	Client *client.Client
}

// measurement makes one or several rows; those without a name get its own.
type measurement struct {
	name    string
	measure func(context.Context, World) ([]Row, error)
}

var measurements = []measurement{
	{"version", versionStart},
	{"size", binarySize},
	{"spawn", spawn},
	{"memory", keeperMemory},
	{"echo", echo},
	{"frame", firstFrame},
	{"idle", idle},
	{"terminal", terminal},
}

// Names lists every measurement.
func Names() []string {
	var names []string
	for _, m := range measurements {
		names = append(names, m.name)
	}
	return names
}

// Run makes the named measurements, or all; tell is called with each row as
// it is ready. A measurement that cannot be made is an error in the result,
// and the others go on.
func Run(ctx context.Context, w World, names []string, tell func(Row)) error {
	return run(ctx, w, measurements, names, tell)
}

func run(ctx context.Context, w World, all []measurement, names []string, tell func(Row)) error {
	var faults []error
	for _, m := range all {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		measured, err := m.measure(ctx, w)
		if err != nil {
			faults = append(faults, fmt.Errorf("measuring %s: %w", m.name, err))
			continue
		}
		for _, r := range measured {
			if r.Name == "" {
				r.Name = m.name
			}
			if r.YardstickValue > 0 {
				r.Ratio = r.Value / r.YardstickValue
			}
			tell(r)
		}
	}
	return errors.Join(faults...)
}

// Write prints rows as a table.
func Write(out io.Writer, all []Row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "name\tvalue\tunit\tyardstick\tits value\tratio\tbudget")
	for _, r := range all {
		ratio, value := "", ""
		if r.Ratio > 0 {
			ratio, value = fmt.Sprintf("%.2f", r.Ratio), fmt.Sprintf("%.3g", r.YardstickValue)
		}
		fmt.Fprintf(table, "%s\t%.3g\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Value, r.Unit, r.Yardstick, value, ratio, r.Budget)
	}
	return table.Flush()
}

// alternate runs ours and theirs in turn and returns the median of each, in
// milliseconds.
func alternate(ours, theirs func() (time.Duration, error)) (a, b float64, err error) {
	var left, right []time.Duration
	for range rounds {
		l, err := ours()
		if err != nil {
			return 0, 0, err
		}
		r, err := theirs()
		if err != nil {
			return 0, 0, err
		}
		left, right = append(left, l), append(right, r)
	}
	return ms(median(left)), ms(median(right)), nil
}

func median(all []time.Duration) time.Duration { return percentile(all, 50) }

// percentile is the smallest of all that p percent are not above.
func percentile(all []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timed measures one call.
func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}
