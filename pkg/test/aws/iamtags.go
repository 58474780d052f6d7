package aws

import (
	"maps"
	"slices"
	"strings"
)

func (c *Cloud) tagRole(q *request, r *role) (any, error) {
	added, err := q.tags()
	if err != nil {
		return nil, err
	}
	tags := maps.Clone(r.Tags)
	for key, value := range added {
		// Keys differ by more than case: the last spelling stays.
		maps.DeleteFunc(tags, func(k, _ string) bool { return strings.EqualFold(k, key) })
		tags[key] = value
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	r.Tags = tags
	return nil, nil
}

// tagList are tags in an answer.
func tagList(tags map[string]string) list {
	items := list{}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		items = append(items, object{"Key": key, "Value": tags[key]})
	}
	return items
}
