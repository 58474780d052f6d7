package argument

import (
	"encoding/csv"
	"strings"
)

// List returns values in the form that a flag takes which is a comma-separated list.
func List(values ...string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(values) // A strings.Builder takes everything.
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// Pair returns key=value in the form that a flag takes which is a list of pairs. The flag
// reads a list of them only where there is a second equals sign.
func Pair(key, value string) string {
	pair := key + "=" + value
	if strings.Count(pair, "=") == 1 {
		return pair
	}
	return List(pair)
}
