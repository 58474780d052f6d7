package policy

import (
	"slices"
	"strings"
)

// operator is a condition operator that was taken apart.
type operator struct {
	// matches compares a value of the policy with one of the request.
	matches func(want, got string) bool
	// negated operators hold when no value matches, a missing key included.
	negated bool
	// ifExists operators hold when the request has no such key.
	ifExists bool
	// null operators look at whether the request has the key.
	null bool
	// set is "ForAllValues" or "ForAnyValue", for keys with several values.
	set string
}

// parseOperator reports false for an operator that is not implemented.
func parseOperator(name string) (operator, bool) {
	var o operator
	if set, rest, ok := strings.Cut(name, ":"); ok {
		if set != "ForAllValues" && set != "ForAnyValue" {
			return o, false
		}
		o.set, name = set, rest
	}
	if name == "Null" {
		o.null = true
		return o, o.set == ""
	}
	name, o.ifExists = strings.CutSuffix(name, "IfExists")
	if before, after, ok := strings.Cut(name, "Not"); ok {
		o.negated, name = true, before+after
	}
	switch name {
	case "StringEquals":
		o.matches = func(want, got string) bool { return want == got }
	case "StringEqualsIgnoreCase", "Bool":
		o.matches = strings.EqualFold
	case "StringLike", "ArnEquals", "ArnLike":
		// IAM treats the two operators on ARNs alike: both take wildcards.
		o.matches = wildcard
	default:
		return o, false
	}
	return o, true
}

// met reports whether all conditions hold for a request.
func (c conditions) met(r *Request) bool {
	for name, keys := range c {
		o, _ := parseOperator(name)
		for key, wants := range keys {
			if !o.applies(r, key, wants) {
				return false
			}
		}
	}
	return true
}

func (o operator) applies(r *Request, key string, wants []string) bool {
	got, exists := r.value(key)
	if o.null {
		return strings.EqualFold(wants[0], "true") != exists
	}
	if !exists {
		return o.ifExists || o.negated || o.set == "ForAllValues"
	}
	hit := func(value string) bool {
		found := slices.ContainsFunc(wants, func(want string) bool {
			want, ok := r.expand(want)
			return ok && o.matches(want, value)
		})
		return found != o.negated
	}
	if o.set == "ForAnyValue" || (o.set == "" && !o.negated) {
		return slices.ContainsFunc(got, hit)
	}
	return !slices.ContainsFunc(got, func(value string) bool { return !hit(value) })
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
