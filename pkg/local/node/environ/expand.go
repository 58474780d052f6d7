package environ

import "strings"

// Expand replaces each $(NAME) in s by the value that lookup gives. A reference
// that lookup does not know stays as it is, "$$" stands for "$", so that
// "$$(NAME)" is "$(NAME)"; an unfinished reference is plain text.
func Expand(s string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		rest := after
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			rest = after[1:]
		case strings.HasPrefix(after, "("):
			name, behind, closed := strings.Cut(after[1:], ")")
			if !closed {
				b.WriteString("$" + after)
				return b.String()
			}
			value, known := lookup(name)
			if !known {
				value = "$(" + name + ")"
			}
			b.WriteString(value)
			rest = behind
		default:
			b.WriteByte('$')
		}
		s = rest
	}
}
