package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// section is the heading that this program owns in the file it writes; the rest of the file is somebody else's.
const section = "## Deliveries"

// figures are all values measured so far, by name, in the order in which the names came first.
type figures struct {
	order   []string
	unit    map[string]string
	values  map[string][]float64
	against map[string]string
}

func newFigures() *figures {
	return &figures{unit: map[string]string{}, values: map[string][]float64{}, against: map[string]string{}}
}

func (f *figures) add(name, unit string, value float64) {
	if !slices.Contains(f.order, name) {
		f.order = append(f.order, name)
	}
	f.unit[name] = unit
	f.values[name] = append(f.values[name], value)
	fmt.Printf("  %-80s %s%s\n", name, digits(value), unit)
}

// compare shows a figure as a multiple of another. Both have one value for each run, so the ratios are those of single runs.
func (f *figures) compare(name, with string) { f.against[name] = with }

// ratios are a figure's ratios by run, where both were measured in all of them.
func (f *figures) ratios(name string) []float64 {
	values, base := f.values[name], f.values[f.against[name]]
	if len(base) == 0 || len(base) != len(values) {
		return nil
	}
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = values[i] / base[i]
	}
	return ratios
}

// table is all figures in Markdown: the median of the runs, the lowest and the highest, and the median ratio.
func (f *figures) table() string {
	var b strings.Builder
	b.WriteString("| figure | median | lowest to highest | ratio |\n|---|---:|---:|---:|\n")
	for _, name := range f.order {
		values := slices.Sorted(slices.Values(f.values[name]))
		ratio := ""
		if r := f.ratios(name); r != nil {
			ratio = fmt.Sprintf("%.2f of \"%s\"", median(r), f.against[name])
		}
		fmt.Fprintf(&b, "| %s | %s%s | %s to %s | %s |\n", name, digits(median(values)), f.unit[name], digits(values[0]), digits(values[len(values)-1]), ratio)
	}
	return b.String()
}

// write puts the table into the file's own section, and leaves what people wrote below its table and all other sections as they are.
func (f *figures) write(file string) error {
	before, old, after, err := splitFile(file)
	if err != nil {
		return err
	}
	_, notes, _ := strings.Cut(old, "\n### ")
	if notes != "" {
		notes = "\n### " + notes
	}
	text := fmt.Sprintf("%s\n\nMeasured by `make bench` on %d cores, %s, %s: generator, receiver, Postgres (durable) and Entrega on one machine.\n\n%s",
		section, runtime.NumCPU(), runtime.GOARCH, time.Now().UTC().Format("2006-01-02"), f.table())
	return os.WriteFile(file, []byte(before+text+notes+after), 0o644)
}

func splitFile(file string) (before, own, after string, err error) {
	raw, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return "# Performance\n\n", "", "", nil
	}
	if err != nil {
		return "", "", "", fmt.Errorf("read %s: %w", file, err)
	}
	before, rest, found := strings.Cut(string(raw), section+"\n")
	if !found {
		return strings.TrimRight(before, "\n") + "\n\n", "", "", nil
	}
	own, after, found = strings.Cut(rest, "\n## ")
	if found {
		after = "\n## " + after
	}
	return before, own, after, nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
