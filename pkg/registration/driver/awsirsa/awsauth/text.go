package awsauth

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errNoBlock says that a list does not have each item on lines of its own.
var errNoBlock = errors.New("not a block sequence")

// inText cuts the lines of a role out of a list that has its items on lines of
// their own, and adds one at the end. No other character changes.
func inText(text, roleARN string, added *Line) (string, error) {
	items, err := read(text)
	if err != nil {
		return "", err
	}
	if len(items) == 0 {
		return rewrite(text, roleARN, added)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1] // What follows the last line break is empty.
	starts, indent, err := starts(items, lines)
	if err != nil {
		return "", err
	}
	mine := ofRole(items, roleARN)
	for _, i := range slices.Backward(mine) {
		lines = slices.Delete(lines, starts[i], end(starts, i, lines))
	}
	if len(mine) == len(items) {
		return rewrite(strings.Join(lines, ""), roleARN, added)
	}
	if added == nil {
		return strings.Join(lines, ""), nil
	}
	block, err := yaml.Marshal([]Line{*added})
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(block)) {
		lines = append(lines, indent+line)
	}
	return strings.Join(lines, ""), nil
}

// starts returns the first line of each item, which begins with a dash, and what
// stands before the dash.
func starts(items []item, lines []string) (starts []int, indent string, err error) {
	for _, item := range items {
		at := item.node.Line - 1
		if at < 0 || at >= len(lines) {
			return nil, "", errNoBlock
		}
		before, after, dashed := strings.Cut(lines[at], "-")
		if !dashed || strings.TrimSpace(before) != "" || !strings.HasPrefix(after, " ") || slices.Contains(starts, at) {
			return nil, "", errNoBlock
		}
		starts, indent = append(starts, at), before
	}
	return starts, indent, nil
}

// end is the line after the last of an item. Comments and empty lines above the
// next item, and at the end, are not the item's.
func end(starts []int, i int, lines []string) int {
	at := len(lines)
	if i < len(starts)-1 {
		at = starts[i+1]
	}
	for ; at > starts[i]+1; at-- {
		if line := strings.TrimSpace(lines[at-1]); line != "" && !strings.HasPrefix(line, "#") {
			break
		}
	}
	return at
}
