package truststore

import (
	"go.yaml.in/yaml/v3"
)

// follow leads through an alias.
func follow(n *yaml.Node) *yaml.Node {
	for i := 0; i < 10 && n != nil && n.Kind == yaml.AliasNode; i++ {
		n = n.Alias
	}
	return n
}

// member returns a member of an object, nil if there is none.
func member(n *yaml.Node, name string) *yaml.Node {
	if n = follow(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return follow(n.Content[i+1])
		}
	}
	return nil
}

// items returns the elements of a list.
func items(n *yaml.Node) []*yaml.Node {
	if n = follow(n); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		out[i] = follow(item)
	}
	return out
}

// set makes value a member of an object, in the place of one that is there.
func set(n *yaml.Node, name string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, text(name), value)
	n.Style = 0
}

func remove(n *yaml.Node, name string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			n.Content = append(n.Content[:i], n.Content[i+2:]...)
			return
		}
	}
}

// ensure returns a member of a kind, which it adds if it is missing or empty.
func ensure(n *yaml.Node, name string, kind yaml.Kind) *yaml.Node {
	found := member(n, name)
	if found == nil || found.Kind != kind {
		found = &yaml.Node{Kind: kind}
		set(n, name, found)
	}
	if len(found.Content) == 0 {
		found.Style = 0 // An empty list is written in brackets, a full one is not.
	}
	return found
}

func text(s string) *yaml.Node {
	var n yaml.Node
	n.SetString(s)
	return &n
}

// encode turns a value into a node.
func encode(v any) (*yaml.Node, error) {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return nil, err
	}
	return &n, nil
}
