package driver

import "strings"

// SummaryPart returns what the message of a condition that sums up several registrations of
// an add-on, as "<label>: <message>; <label>: <message>", says of one of them. The label is
// the name of a custom signer, or the type of another registration.
func SummaryPart(message, label string) (string, bool) {
	rest, found := strings.CutPrefix(message, label+": ")
	if !found {
		if _, rest, found = strings.Cut(message, "; "+label+": "); !found {
			return "", false
		}
	}
	// A label has no spaces, and none of our sentences one word before a colon.
	for i := 0; ; {
		j := strings.Index(rest[i:], "; ")
		if j < 0 {
			return rest, true
		}
		i += j + len("; ")
		if word, _, ok := strings.Cut(rest[i:], ": "); ok && !strings.Contains(word, " ") {
			return rest[:i-len("; ")], true
		}
	}
}
