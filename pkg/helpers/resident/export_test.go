package resident

import "io"

// Discardable is discardable, as addresses in hexadecimal.
func Discardable(smaps io.Reader) ([][2]uintptr, error) {
	regions, err := discardable(smaps)
	var found [][2]uintptr
	for _, r := range regions {
		found = append(found, [2]uintptr{r.from, r.to})
	}
	return found, err
}
