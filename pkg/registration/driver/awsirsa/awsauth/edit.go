package awsauth

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

// Line maps one role.
type Line struct {
	// RoleARN is the role's ARN, which must have no path: EKS compares it with that
	// of a session, which has none.
	RoleARN  string   `yaml:"rolearn"`
	Username string   `yaml:"username"`
	Groups   []string `yaml:"groups"`
}

// ErrUnreadable says that a map is no list of mappings. Only its owner knows what
// was meant.
var ErrUnreadable = errors.New("mapRoles is not a list of mappings with a rolearn each")

// Ensure returns mapRoles with line as the only one of its role. It returns text
// itself if it is like that.
func Ensure(text string, line Line) (string, error) {
	items, err := read(text)
	if err != nil {
		return "", err
	}
	mine := ofRole(items, line.RoleARN)
	if len(mine) == 1 && line.equal(items[mine[0]].line) {
		return text, nil
	}
	return edit(text, line.RoleARN, &line)
}

// Remove returns mapRoles without the lines of a role. It returns text itself if
// it has none.
func Remove(text, roleARN string) (string, error) {
	items, err := read(text)
	if err != nil {
		return "", err
	}
	if len(ofRole(items, roleARN)) == 0 {
		return text, nil
	}
	return edit(text, roleARN, nil)
}

// Find returns the lines of a role, as they are.
func Find(text, roleARN string) ([]Line, error) {
	items, err := read(text)
	if err != nil {
		return nil, err
	}
	var found []Line
	for _, i := range ofRole(items, roleARN) {
		found = append(found, items[i].line)
	}
	return found, nil
}

// roles returns the roles of all lines. Lines without a role are skipped: EKS maps no
// identity with them.
func roles(text string) ([]awsarn.Role, error) {
	items, err := read(text)
	var found []awsarn.Role
	for _, item := range items {
		if role, err := awsarn.ParseRole(item.line.RoleARN); err == nil {
			found = append(found, role)
		}
	}
	return found, err
}

// item is one item of mapRoles.
type item struct {
	node *yaml.Node
	line Line
}

// read returns the items of mapRoles.
func read(text string) ([]item, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, ErrUnreadable
	}
	if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
		return nil, nil
	}
	list := document.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, ErrUnreadable
	}
	items := make([]item, len(list.Content))
	for i, node := range list.Content {
		items[i].node = node
		if node.Kind != yaml.MappingNode || node.Decode(&items[i].line) != nil || items[i].line.RoleARN == "" {
			return nil, ErrUnreadable
		}
	}
	return items, nil
}

// ofRole returns which items are of a role. IAM names differ by more than case.
func ofRole(items []item, roleARN string) []int {
	var found []int
	for i, item := range items {
		if strings.EqualFold(item.line.RoleARN, roleARN) {
			found = append(found, i)
		}
	}
	return found
}

func (l Line) equal(other Line) bool {
	return l.RoleARN == other.RoleARN && l.Username == other.Username && slices.Equal(l.Groups, other.Groups)
}

// edit removes the lines of a role and adds one, if any. It edits the text, or where
// that does not have the right result, as for a list in one line, rewrites the list.
func edit(text, roleARN string, added *Line) (string, error) {
	for _, how := range []func(string, string, *Line) (string, error){inText, rewrite} {
		edited, err := how(text, roleARN, added)
		if err == nil && verify(text, edited, roleARN, added) == nil {
			return edited, nil
		}
	}
	return "", fmt.Errorf("mapRoles cannot be changed without changing other lines: %w", ErrUnreadable)
}

// verify reads an edited map: it must have the lines of others as they were, in
// their order, and nothing but added of the role.
func verify(before, after, roleARN string, added *Line) error {
	old, err := read(before)
	if err != nil {
		return err
	}
	items, err := read(after)
	if err != nil {
		return err
	}
	mine := ofRole(items, roleARN)
	switch {
	case added == nil && len(mine) > 0,
		added != nil && (len(mine) != 1 || !added.equal(items[mine[0]].line)),
		!slices.EqualFunc(without(old, roleARN), without(items, roleARN), same):
		return ErrUnreadable
	}
	return nil
}

func without(items []item, roleARN string) []*yaml.Node {
	var others []*yaml.Node
	for _, item := range items {
		if !strings.EqualFold(item.line.RoleARN, roleARN) {
			others = append(others, item.node)
		}
	}
	return others
}

// same compares what two items say, regardless of their spelling.
func same(a, b *yaml.Node) bool {
	var one, other any
	return a.Decode(&one) == nil && b.Decode(&other) == nil && reflect.DeepEqual(one, other)
}

// rewrite writes the whole list, with its comments and quotes.
func rewrite(text, roleARN string, added *Line) (string, error) {
	items, err := read(text)
	if err != nil {
		return "", err
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: without(items, roleARN)}
	if added != nil {
		item := &yaml.Node{}
		if err := item.Encode(added); err != nil {
			return "", err
		}
		list.Content = append(list.Content, item)
	}
	out, err := yaml.Marshal(list)
	return string(out), err
}
