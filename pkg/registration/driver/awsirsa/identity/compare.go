package identity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences returns in what a document that IAM has differs from p, a clause for
// each difference, and nothing if both say the same.
//
// IAM may keep a list of one item as the item, and lists have no order. A principal
// that no longer exists shows as its unique ID, so that the policy has to be put
// again; see "IAM roles" under "AWS JSON policy elements: Principal" in the IAM User
// Guide.
func (p Policy) Differences(document string) []string {
	text, err := p.Compact()
	if err != nil {
		return []string{err.Error()}
	}
	var want, got any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		return []string{err.Error()}
	}
	if err := json.Unmarshal([]byte(document), &got); err != nil {
		return []string{"not a policy document"}
	}
	return differences("", normal(got), normal(want))
}

// differences compares two parts of policies that are in one spelling.
func differences(path string, got, want any) []string {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return memberDifferences(path, got, want)
		}
	case []any:
		if got, ok := got.([]any); ok {
			return itemDifferences(path, got, want)
		}
	}
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, and must be %s", cmp.Or(path, "it"), shown(got), shown(want))}
}

func memberDifferences(path string, got, want map[string]any) []string {
	var all []string
	members := maps.Clone(got)
	maps.Copy(members, want)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		member := strings.TrimPrefix(path+"."+key, ".")
		value, present := got[key]
		wanted, expected := want[key]
		switch {
		case !present:
			all = append(all, fmt.Sprintf("%s is missing, and must be %s", member, shown(wanted)))
		case !expected:
			all = append(all, fmt.Sprintf("%s is %s, and must not exist", member, shown(value)))
		default:
			all = append(all, differences(member, value, wanted)...)
		}
	}
	return all
}

// itemDifferences leaves out what both lists have. Statements that are left in both
// are compared with each other.
func itemDifferences(path string, got, want []any) []string {
	lacking, extra := without(want, got), without(got, want)
	var all []string
	for len(lacking) > 0 && len(extra) > 0 {
		_, structured := lacking[0].(map[string]any)
		if !structured {
			break
		}
		all = append(all, differences(path, extra[0], lacking[0])...)
		lacking, extra = lacking[1:], extra[1:]
	}
	for _, item := range lacking {
		all = append(all, fmt.Sprintf("%s lacks %s", path, shown(item)))
	}
	for _, item := range extra {
		all = append(all, fmt.Sprintf("%s has %s, which must not exist", path, shown(item)))
	}
	return all
}

// without returns the items of list that others lacks.
func without(list, others []any) []any {
	return slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		return slices.ContainsFunc(others, func(other any) bool { return reflect.DeepEqual(item, other) })
	})
}

// shown is a part of a policy in a sentence.
func shown(part any) string {
	text, err := encode(part)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// isList reports whether an element of a policy is a list, also when it is written as
// its only item.
func isList(element string) bool {
	return slices.Contains([]string{"Statement", "Action", "Resource"}, element)
}

// normal is a part of a policy in one of its spellings, without the names that
// policies and statements may have.
func normal(part any) any {
	switch part := part.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range part {
			if key == "Id" || key == "Sid" {
				continue
			}
			out[key] = normal(value)
			if _, several := out[key].([]any); isList(key) && !several {
				out[key] = []any{out[key]}
			}
		}
		return out
	case []any:
		if len(part) == 1 {
			return normal(part[0])
		}
		out := make([]any, len(part))
		for i, item := range part {
			out[i] = normal(item)
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return out
	}
	return part
}
