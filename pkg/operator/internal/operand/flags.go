package operand

import (
	"encoding/csv"
	"strings"
)

// FlagList returns values in the form of a flag that takes a comma-separated list.
func FlagList(values ...string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(values) // A strings.Builder takes everything.
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// FlagPair returns key=value in the form of a flag that takes such pairs. The flag
// reads a list of them only where there is a second equals sign.
func FlagPair(key, value string) string {
	pair := key + "=" + value
	if strings.Count(pair, "=") == 1 {
		return pair
	}
	return FlagList(pair)
}
