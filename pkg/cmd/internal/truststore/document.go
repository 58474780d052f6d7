package truststore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
)

// Document is a configuration as it is written, comments included.
type Document struct {
	doc  *yaml.Node
	root *yaml.Node
}

// ParseDocument reads a document; empty data is an empty one. It needs to be
// YAML with an object in it and no more: see Config for what it means.
func ParseDocument(data []byte) (*Document, error) {
	doc := &yaml.Node{}
	switch err := yaml.NewDecoder(bytes.NewReader(data)).Decode(doc); {
	case errors.Is(err, io.EOF):
		doc = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
		doc.Content[0].HeadComment = string(bytes.TrimSpace(data))
	case err != nil:
		return nil, fmt.Errorf("it is not valid YAML: %w", err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		root.Kind, root.Tag, root.Value = yaml.MappingNode, "", ""
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("it is not an object with clusters in it")
	}
	return &Document{doc: doc, root: root}, nil
}

// Bytes is the document as it is to be written.
func (d *Document) Bytes() ([]byte, error) {
	if len(d.root.Content) == 0 && d.root.HeadComment == "" {
		return nil, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err := errors.Join(encoder.Encode(d.doc), encoder.Close())
	return out.Bytes(), err
}

// Config is what the document means. See config.Parse for its errors.
func (d *Document) Config(opts config.Options) (*config.Config, error) {
	data, err := d.Bytes()
	if err != nil {
		return nil, err
	}
	return config.Parse(data, opts)
}

// Clusters are the names of the entries, in their order.
func (d *Document) Clusters() []string {
	var out []string
	for _, entry := range items(member(d.root, "clusters")) {
		if name := member(entry, "name"); name != nil {
			out = append(out, name.Value)
		}
	}
	return out
}

// Seed reports whether the document has clusters and no policy (seed 002's
// form). To give it a policy closes what it leaves open.
func (d *Document) Seed() bool {
	entries := items(member(d.root, "clusters"))
	other := func(node *yaml.Node, known ...string) bool {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if !slices.Contains(known, node.Content[i].Value) {
				return true
			}
		}
		return false
	}
	return len(entries) > 0 && !other(d.root, "clusters") && !slices.ContainsFunc(entries, func(entry *yaml.Node) bool {
		keyless := member(entry, "jwks_uri") == nil && member(entry, "jwks_data") == nil
		return keyless || other(entry, "name", "issuer", "jwks_uri", "jwks_data")
	})
}

// SetCluster adds the entry of a cluster, or changes the fields of it that e
// names: its rules stay. In a document of the seed's form the entry takes that
// form, so that the document keeps its meaning.
func (d *Document) SetCluster(e Entry) error {
	seed := d.Seed()
	keys := (*Keys).fields
	if seed {
		keys = (*Keys).seedFields
	}
	fields, err := e.fields(keys)
	if err != nil {
		return err
	}
	entry := d.entry(e.Name)
	if entry == nil {
		entry = &yaml.Node{Kind: yaml.MappingNode}
		if !seed && e.Allow == nil {
			// An entry with rules of its own, if none: a document is never open
			// because of what it does not say.
			fields = append(fields, text("allow"), &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle})
		}
		clusters := ensure(d.root, "clusters", yaml.SequenceNode)
		clusters.Content = append(clusters.Content, entry)
	}
	fields = news(entry, fields)
	sources := []string{"jwks_uri", "jwks_data", "keys"}
	for i := 0; i+1 < len(fields); i += 2 {
		if slices.Contains(sources, fields[i].Value) {
			for _, other := range sources {
				remove(entry, other)
			}
		}
		set(entry, fields[i].Value, fields[i+1])
	}
	return nil
}

// news leaves out the fields that an entry has already, in whatever way they are
// written.
func news(entry *yaml.Node, fields []*yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(fields); i += 2 {
		if old := member(entry, fields[i].Value); old == nil || !same(old, fields[i+1]) {
			out = append(out, fields[i], fields[i+1])
		}
	}
	return out
}

// RemoveCluster removes the entry of a cluster and reports whether there was one.
func (d *Document) RemoveCluster(name string) bool {
	clusters, entry := member(d.root, "clusters"), d.entry(name)
	if entry == nil {
		return false
	}
	clusters.Content = slices.DeleteFunc(clusters.Content, func(n *yaml.Node) bool { return n == entry })
	return true
}

// keepPolicy sees to it that a document with a policy does not lose it together
// with its last rule: what is left would be of the seed's form, and open.
func (d *Document) keepPolicy() {
	if !d.Seed() {
		return
	}
	for _, entry := range items(member(d.root, "clusters")) {
		set(entry, "allow", &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle})
	}
}

// AddRule appends a rule to a cluster's and reports whether it is new. The
// entry must be there.
func (d *Document) AddRule(cluster string, rule Rule) (bool, error) {
	entry := d.entry(cluster)
	if entry == nil {
		return false, fmt.Errorf("there is no cluster %q", cluster)
	}
	node, err := encode(rule)
	if err != nil {
		return false, err
	}
	allow := ensure(entry, "allow", yaml.SequenceNode)
	if slices.ContainsFunc(allow.Content, func(other *yaml.Node) bool { return same(other, node) }) {
		return false, nil
	}
	allow.Content = append(allow.Content, node)
	return true, nil
}

// Audiences are those that a cluster's tokens must have: its own, or the
// defaults. Rules may name others.
func (d *Document) Audiences(cluster string) []string {
	for _, holder := range []*yaml.Node{d.entry(cluster), member(d.root, "defaults")} {
		list := member(holder, "audiences")
		switch {
		case list == nil:
		case list.Kind == yaml.ScalarNode:
			return []string{list.Value}
		default:
			var out []string
			for _, item := range items(list) {
				out = append(out, item.Value)
			}
			return out
		}
	}
	return nil
}

// AddAudience lets tokens for an audience be taken from a cluster, and reports
// whether that is new.
func (d *Document) AddAudience(cluster, audience string) (bool, error) {
	have := d.Audiences(cluster)
	if slices.Contains(have, audience) {
		return false, nil
	}
	entry := d.entry(cluster)
	if entry == nil {
		return false, fmt.Errorf("there is no cluster %q", cluster)
	}
	node, err := encode(append(slices.Clone(have), audience))
	if err == nil {
		set(entry, "audiences", node)
	}
	return true, err
}

func (d *Document) entry(name string) *yaml.Node {
	for _, entry := range items(member(d.root, "clusters")) {
		if n := member(entry, "name"); n != nil && n.Value == name {
			return entry
		}
	}
	return nil
}

// same compares what two nodes mean.
func same(a, b *yaml.Node) bool {
	plain := func(n *yaml.Node) string {
		var v any
		if n.Decode(&v) != nil {
			return ""
		}
		data, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return string(data)
	}
	return plain(a) != "" && plain(a) == plain(b)
}
