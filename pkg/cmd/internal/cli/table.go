package cli

import (
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Column is one column of a table over rows of T.
type Column[T any] struct {
	// Header is printed in capitals.
	Header string
	// Wide columns are shown with -o wide only, and only if a row has a value.
	Wide bool
	// Rest is what the other columns leave of a line: for the sentence that says what
	// is wrong. Of several, the last is.
	Rest bool
	// Value is the cell; empty is shown as a dash.
	Value func(T) string
}

// PrintList prints items of a kind in the format of o.
func PrintList[T any](w io.Writer, o *Output, kind Kind[T], items []T, columns []Column[T]) error {
	plain := kind.plain()
	sorted, err := plain.sorted(plainItems(items), o.sortBy)
	if err != nil {
		return err
	}
	return (&printer{writer: w, out: o, kind: plain, columns: plainColumns(columns)}).list(sorted)
}

// PrintFound prints those of the objects that were asked for which are there, and
// returns missing, the error about the others. Where none is, the error says it all.
func PrintFound[T any](items []T, missing error, show func([]T) error) error {
	if missing != nil && len(items) == 0 {
		return missing
	}
	if err := show(items); err != nil {
		return err
	}
	return missing
}

// PrintTable prints items as a table, in the format TableFmt or Wide of o.
func PrintTable[T any](w io.Writer, o *Output, items []T, columns []Column[T]) error {
	return (&printer{writer: w, out: o, columns: plainColumns(columns)}).rows(plainItems(items))
}

// Age is how long ago something was, in a table; empty when that is unknown.
func Age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.ShortHumanDuration(max(now.Sub(at), 0))
}

// Until is the time that is left, in a table: empty when the end is unknown.
func Until(end *time.Time, now time.Time) string {
	switch {
	case end == nil:
		return ""
	case !now.Before(*end):
		return "expired"
	}
	return duration.ShortHumanDuration(end.Sub(now))
}

// YesNo is a truth in a table.
func YesNo(b bool) string {
	return map[bool]string{true: "yes", false: "no"}[b]
}

// Columns is the default width of a terminal, which help and findings fit.
const Columns = 80

// Fold breaks a text into lines of a terminal's width; all but the first begin
// with indent, the first with the spaces that text has.
func Fold(text, indent string) string {
	var out strings.Builder
	first := text[:len(text)-len(strings.TrimLeft(text, " "))]
	out.WriteString(first)
	used, between := len(first), ""
	for word := range strings.FieldsSeq(text) {
		if between != "" && used+len(between)+len(word) > Columns {
			between = "\n" + indent
			used = len(indent) - len(between)
		}
		out.WriteString(between + word)
		used += len(between) + len(word)
		between = " "
	}
	return out.String()
}
