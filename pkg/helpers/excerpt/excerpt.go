package excerpt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Of returns text of up to longest bytes as it is. Of longer text it returns
// that many bytes or the few less that keep the last character whole, and three
// dots that say so.
func Of(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	end := longest
	for end > 0 && longest-end < utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// most is how many items of a list a message names.
const most = 5

// List joins up to five items of a list. Of a longer list it returns the first five and how
// many more there are.
func List(list []string, between string) string {
	if len(list) > most {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, between)
}
