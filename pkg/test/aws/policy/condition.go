package policy

import (
	"slices"
	"strings"
)

// conditions are the values that condition keys must have, by operator.
type conditions struct {
	StringEquals map[string]texts `json:"StringEquals"`
}

// met reports whether all conditions hold for a request.
func (c conditions) met(r *Request) bool {
	for key, wants := range c.StringEquals {
		if !slices.ContainsFunc(r.values(key), func(got string) bool { return slices.Contains(wants, got) }) {
			return false
		}
	}
	return true
}

// wildcard matches * and ? as IAM does: across all characters, / and : included.
func wildcard(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	switch pattern[0] {
	case '*':
		rest := strings.TrimLeft(pattern, "*")
		for i := range len(text) + 1 {
			if wildcard(rest, text[i:]) {
				return true
			}
		}
		return false
	case '?':
		return text != "" && wildcard(pattern[1:], text[1:])
	}
	return text != "" && text[0] == pattern[0] && wildcard(pattern[1:], text[1:])
}
