package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/kubectl/pkg/util/term"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/printable"
)

const (
	// wideColumns is the width of a table with -o wide.
	wideColumns = 160
	// leastRest is what a table leaves for a column that takes the rest of the line.
	leastRest = 24
	// gap is between two columns.
	gap = "  "

	// longestCell is how many bytes a table shows in one cell, and longestEnd in the last of
	// a row. Every row is as wide as the widest, but for its last cell: an agent must not
	// be able to make them all unreadable with one of its own.
	longestCell = 128
	longestEnd  = 1024
	// LongestMessage is how many bytes of a condition or an event a report shows. The
	// machine formats have the whole text.
	LongestMessage = 2048
)

// column is a Column without its type.
type column = Column[any]

func plainColumns[T any](columns []Column[T]) []column {
	out := make([]column, len(columns))
	for i, c := range columns {
		out[i] = column{Header: c.Header, Wide: c.Wide, Rest: c.Rest, Value: func(item any) string { return c.Value(item.(T)) }} //nolint:errcheck // as in plain
	}
	return out
}

// table prints rows. Rows that follow later are aligned with those before, as kubectl
// aligns what it watches.
type table struct {
	out       io.Writer
	columns   []column
	width     int
	noHeaders bool

	widths []int
}

// print prints rows, the first time below the headers.
func (t *table) print(items []any) error {
	var rows [][]string
	if t.widths == nil {
		t.widths = make([]int, len(t.columns))
		if !t.noHeaders {
			rows = append(rows, t.row(func(c column) string { return strings.ToUpper(c.Header) }))
		}
	}
	for _, item := range items {
		rows = append(rows, t.row(func(c column) string {
			if v := c.Value(item); v != "" {
				return printable.Line(v)
			}
			return "-"
		}))
	}
	t.fit(rows)
	var text strings.Builder
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			text.WriteString(cell + strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)) + gap)
		}
		text.WriteString(row[len(row)-1] + "\n")
	}
	_, err := io.WriteString(t.out, text.String())
	return err
}

func (t *table) row(text func(column) string) []string {
	cells := make([]string, len(t.columns))
	for i, c := range t.columns {
		longest := longestCell
		if i == len(t.columns)-1 {
			longest = longestEnd
		}
		cells[i] = excerpt.Of(text(c), longest)
	}
	return cells
}

// fit widens the columns to what rows need, and cuts what takes the rest of a line.
func (t *table) fit(rows [][]string) {
	rest, used := -1, 0
	for i, c := range t.columns {
		if c.Rest {
			rest = i
		}
	}
	for i := range t.columns {
		if i == rest {
			continue
		}
		for _, row := range rows {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i]))
		}
		used += t.widths[i] + len(gap)
	}
	if rest < 0 {
		return
	}
	for _, row := range rows {
		row[rest] = cut(row[rest], max(t.width-used, leastRest))
		t.widths[rest] = max(t.widths[rest], utf8.RuneCountInString(row[rest]))
	}
}

// shown are the columns of a format: without the wide ones, or with those that have a
// value.
func shown(columns []column, format Format, items []any) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		empty := func(item any) bool { return c.Value(item) == "" }
		none := len(items) > 0 && !slices.ContainsFunc(items, func(item any) bool { return !empty(item) })
		return c.Wide && (format != Wide || none)
	})
}

// Short is the beginning of a fingerprint or a key id, enough to distinguish it in a table.
func Short(id string) string {
	const shown = 8
	prefix := ""
	if kind, rest, ok := strings.Cut(id, ":"); ok {
		prefix, id = kind+":", rest
	}
	return prefix + excerpt.Of(id, shown)
}

// widthOf is how wide lines to a stream may be: least, or a terminal that is wider.
func widthOf(stream io.Writer, least int) int {
	if size := (term.TTY{Out: stream}).GetSize(); size != nil {
		return max(least, int(size.Width))
	}
	return least
}

// labelsColumn is what --show-labels adds.
func labelsColumn(k kind) column {
	return column{Header: "labels", Value: func(item any) string {
		var list []string
		for key, value := range k.ref(item).Labels {
			list = append(list, fmt.Sprintf("%s=%s", key, value))
		}
		slices.Sort(list)
		return strings.Join(list, ",")
	}}
}
