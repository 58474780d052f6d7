package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
)

// maxNodes bounds what aliases can blow a file up to.
const maxNodes = 1 << 21

// reader reads a YAML tree into values and collects what is wrong with it.
type reader struct {
	findings []policy.Finding
	// lines tells where each path stands, for findings that come later.
	lines map[string]int
	// nodes is how many more nodes may be read.
	nodes int
}

// node is a place in the tree.
type node struct {
	r    *reader
	path string
	y    *yaml.Node
}

// at goes to a place below n, through an alias if it is one.
func (n node) at(field string, y *yaml.Node) node {
	path := field
	switch {
	case strings.HasPrefix(field, "["):
		path = n.path + field
	case n.path != "":
		path = n.path + "." + field
	}
	for y.Kind == yaml.AliasNode && y.Alias != nil && n.r.nodes > 0 {
		n.r.nodes--
		y = y.Alias
	}
	n.r.nodes--
	n.r.lines[path] = y.Line
	return node{n.r, path, y}
}

func (n node) fail(fix, format string, args ...any) {
	n.r.fail(n.path, fix, format, args...)
}

func (r *reader) fail(path, fix, format string, args ...any) {
	r.findings = append(r.findings, policy.Finding{
		Severity: policy.Error, Path: path, Line: r.line(path), Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// line finds where a path stands, or the nearest part of it that does.
func (r *reader) line(path string) int {
	for path != "" {
		if line, ok := r.lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}

// null reports whether nothing was written.
func (n node) null() bool { return n.y.Kind == yaml.ScalarNode && n.y.Tag == "!!null" }

// fields are what an object may hold.
type fields map[string]func(node)

// object reads the members of an object.
func (n node) object(known fields) {
	if n.null() {
		return
	}
	if n.y.Kind != yaml.MappingNode {
		n.fail("write it as fields with values", "it must be an object")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.y.Content) && n.r.nodes > 0; i += 2 {
		key := n.y.Content[i].Value
		child := n.at(key, n.y.Content[i+1])
		read, ok := known[key]
		switch {
		case seen[key]:
			child.fail("remove one of the two", "the field is there twice")
		case !ok:
			n.r.lines[child.path] = n.y.Content[i].Line
			child.fail(suggestion(key, known), "there is no such field")
		default:
			read(child)
		}
		seen[key] = true
	}
}

// list reads the elements of a list.
func (n node) list(element func(i int, child node)) {
	if n.null() {
		return
	}
	if n.y.Kind != yaml.SequenceNode {
		n.fail("begin each element with a dash", "it must be a list")
		return
	}
	for i, y := range n.y.Content {
		if n.r.nodes <= 0 {
			return
		}
		element(i, n.at("["+strconv.Itoa(i)+"]", y))
	}
}

// scalar returns the text of a single value.
func (n node) scalar(want string) (string, bool) {
	if n.y.Kind != yaml.ScalarNode || n.null() {
		n.fail("", "it must be %s", want)
		return "", false
	}
	return n.y.Value, true
}

// text reads a string; a number or a truth is taken as it is written.
func (n node) text(into *string) {
	if s, ok := n.scalar("a text"); ok {
		*into = s
	}
}

// texts reads a list of strings, or a single one.
func (n node) texts(into *[]string) {
	if n.y.Kind == yaml.ScalarNode && !n.null() {
		*into = []string{n.y.Value}
		return
	}
	*into = []string{}
	n.list(func(_ int, child node) {
		var s string
		child.text(&s)
		*into = append(*into, s)
	})
}

func (n node) boolean(into *bool) {
	s, ok := n.scalar("true or false")
	if !ok {
		return
	}
	switch s {
	case "true", "false":
		*into = s == "true"
	default:
		n.fail("", "%q must be true or false", s)
	}
}

func (n node) number(into *int) {
	s, ok := n.scalar("a number")
	if !ok {
		return
	}
	i, err := strconv.Atoi(s)
	if err != nil || i < 0 {
		n.fail("", "%q must be a whole number, 0 or more", s)
		return
	}
	*into = i
}

func (n node) decimal(into *float64) {
	s, ok := n.scalar("a number")
	if !ok {
		return
	}
	f, err := strconv.ParseFloat(s, 64)
	if positive := f > 0 && f < 1e9; err != nil || !positive { // NaN is not either.
		n.fail("", "%q must be a number greater than 0", s)
		return
	}
	*into = f
}

func (n node) duration(into *time.Duration) {
	s, ok := n.scalar("a duration such as 1h or 90s")
	if !ok {
		return
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		n.fail("", "%q must be a duration such as 1h or 90s", s)
		return
	}
	*into = d
}

// suggestion names the field that may have been meant.
func suggestion(key string, known fields) string {
	names := slices.Sorted(maps.Keys(known))
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	for _, name := range names {
		if plain(name) == plain(key) || distance(plain(name), plain(key)) <= 2 {
			return "did you mean " + name + "?"
		}
	}
	return "remove it, or use one of " + strings.Join(names, ", ")
}

// distance is how many letters must be changed, added or removed.
func distance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
