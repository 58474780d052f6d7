package growth

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Sizes are the numbers of clusters in the environment's BENCH_SIZES, such as
// "100,300", or else those given.
func Sizes(b *testing.B, defaults ...int) []int {
	b.Helper()
	value := os.Getenv("BENCH_SIZES")
	if value == "" {
		return defaults
	}
	var sizes []int
	for field := range strings.SplitSeq(value, ",") {
		size, err := strconv.Atoi(field)
		if err != nil {
			b.Fatalf("BENCH_SIZES: %v", err)
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// Table has a row of costs for every name, with a column for every size. The zero
// value is empty.
type Table struct {
	names []string
	rows  map[string]*row
	sizes []int
}

type row struct{ sizes, costs []float64 }

// Add reports a cost at a size, which is the benchmark's b, and keeps it for Print.
func (t *Table) Add(b *testing.B, size int, name string, cost float64) {
	b.Helper()
	b.ReportMetric(cost, name)
	if t.rows == nil {
		t.rows = map[string]*row{}
	}
	r := t.rows[name]
	if r == nil {
		r = &row{}
		t.rows[name], t.names = r, append(t.names, name)
	}
	if len(t.sizes) == 0 || t.sizes[len(t.sizes)-1] != size {
		t.sizes = append(t.sizes, size)
	}
	r.sizes, r.costs = append(r.sizes, float64(size)), append(r.costs, cost)
}

// Print prints the table behind the results: go test shows nothing that a benchmark logs
// which has others, and ten lines of what another one does.
func (t *Table) Print(b *testing.B) {
	b.Helper()
	lines := []string{line("", t.sizes, "%d", "exponent")}
	for _, name := range t.names {
		r := t.rows[name]
		lines = append(lines, line(name, r.costs, "%.4g", r.exponent()))
	}
	if _, err := fmt.Fprintln(os.Stdout, strings.Join(lines, "\n")); err != nil {
		b.Fatal(err)
	}
}

func line[N any](name string, values []N, format, last string) string {
	cells := []string{fmt.Sprintf("%-24s", name)}
	for _, value := range values {
		cells = append(cells, fmt.Sprintf("%12s", fmt.Sprintf(format, value)))
	}
	return strings.Join(append(cells, fmt.Sprintf("%9s", last)), " ")
}

// exponent is the slope of the line that fits the logarithms of cost and size best,
// "-" where something costs nothing or there is one size only. A size of one does not
// count: it shows what there is to pay without any growth.
func (r *row) exponent() string {
	var sumX, sumY, sumXX, sumXY float64
	var n float64
	for i := range r.costs {
		if r.costs[i] <= 0 {
			return "-"
		}
		if r.sizes[i] <= 1 {
			continue
		}
		n++
		x, y := math.Log(r.sizes[i]), math.Log(r.costs[i])
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	spread := n*sumXX - sumX*sumX
	if spread == 0 {
		return "-"
	}
	return strconv.FormatFloat((n*sumXY-sumX*sumY)/spread, 'f', 2, 64)
}
