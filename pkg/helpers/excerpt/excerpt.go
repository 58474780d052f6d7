package excerpt

import "unicode/utf8"

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
