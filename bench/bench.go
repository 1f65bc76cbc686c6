// Package bench measures what the budgets name, each beside its yardstick in
// the same run on the same machine, as a ratio. A machine is noisy: every
// number is the median of alternating runs.
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

// row is one measurement by name.
type row struct {
	name    string
	measure func(context.Context, World) (Row, error)
}

var rows = []row{
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
	for _, r := range rows {
		names = append(names, r.name)
	}
	return names
}

// Run makes the named measurements, or all; tell is called with each row as
// it is ready. A measurement that cannot be made is an error in the result,
// and the others go on.
func Run(ctx context.Context, w World, names []string, tell func(Row)) error {
	var faults []error
	for _, r := range rows {
		if len(names) > 0 && !slices.Contains(names, r.name) {
			continue
		}
		measured, err := r.measure(ctx, w)
		if err != nil {
			faults = append(faults, fmt.Errorf("measuring %s: %w", r.name, err))
			continue
		}
		measured.Name = r.name
		if measured.YardstickValue > 0 {
			measured.Ratio = measured.Value / measured.YardstickValue
		}
		tell(measured)
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

func median[T ~int64 | ~float64](all []T) T {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timed measures one call.
func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}
