package truststore

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Entry is what to write about a cluster. Empty fields are left as they are.
type Entry struct {
	Name   string
	Issuer string
	Keys   *Keys
	Allow  []Rule
}

// Keys is where a cluster's keys come from: one of the sources.
type Keys struct {
	// OCM is set for keys that the cluster's agent publishes on the hub.
	OCM bool
	// JWKS is a JSON Web Key Set.
	JWKS []byte
	// JWKSFile and JWKSURI lead to one.
	JWKSFile, JWKSURI string
	// Discovery is set for OpenID Connect discovery, at DiscoveryURL or the issuer.
	Discovery    bool
	DiscoveryURL string
	// CA is a PEM bundle, CAFile a file with one.
	CA, CAFile string
	// TokenFile or KubeconfigFile authenticates to JWKSURI or discovery.
	TokenFile, KubeconfigFile string
	// Pins are the only keys to take.
	Pins []string
}

// Rule is an allow rule, in the words of the file.
type Rule struct {
	Namespaces      []string `yaml:"namespaces,omitempty"`
	ServiceAccounts []string `yaml:"serviceAccounts,omitempty"`
	Audiences       []string `yaml:"audiences,omitempty"`
	RequireBoundPod bool     `yaml:"requireBoundPod,omitempty"`
	MapTo           MapTo    `yaml:"mapTo"`
	Target          *Target  `yaml:"target,omitempty"`
}

// MapTo is the ServiceAccount of the hub: Same, or two templates.
type MapTo struct {
	Same            bool
	Namespace, Name string
}

// MarshalYAML implements yaml.Marshaler.
func (m MapTo) MarshalYAML() (any, error) {
	if m.Same {
		return "same", nil
	}
	return struct {
		Namespace string `yaml:"namespace"`
		Name      string `yaml:"name"`
	}{m.Namespace, m.Name}, nil
}

// Target shapes the issued token.
type Target struct {
	Namespaces        []string `yaml:"namespaces,omitempty"`
	Audiences         []string `yaml:"audiences,omitempty"`
	ExpirationSeconds int      `yaml:"expirationSeconds,omitempty"`
}

// fields returns names and values in turn; keys writes the keys.
func (e Entry) fields(keys func(*Keys) ([]*yaml.Node, error)) ([]*yaml.Node, error) {
	out := []*yaml.Node{text("name"), text(e.Name)}
	if e.Issuer != "" {
		out = append(out, text("issuer"), text(e.Issuer))
	}
	if e.Keys != nil {
		nodes, err := keys(e.Keys)
		if err != nil {
			return nil, err
		}
		out = append(out, nodes...)
	}
	if e.Allow != nil {
		allow, err := encode(e.Allow)
		if err != nil {
			return nil, err
		}
		out = append(out, text("allow"), allow)
	}
	return out, nil
}

// seedFields is the form in which a document without a policy has keys.
func (k *Keys) seedFields() ([]*yaml.Node, error) {
	switch {
	case len(k.JWKS) > 0:
		set, err := keySet(k.JWKS)
		return []*yaml.Node{text("jwks_data"), set}, err
	case k.JWKSURI != "" && k.CA+k.CAFile+k.TokenFile+k.KubeconfigFile == "":
		return []*yaml.Node{text("jwks_uri"), text(k.JWKSURI)}, nil
	}
	return nil, errors.New("a document without a policy knows keys by jwks_data and jwks_uri only; give it a policy first")
}

func (k *Keys) fields() ([]*yaml.Node, error) {
	type object = map[string]any
	keys := &yaml.Node{Kind: yaml.MappingNode}
	var err error
	add := func(name string, value any, there bool) {
		if !there || err != nil {
			return
		}
		var node *yaml.Node
		if node, err = encode(value); err == nil {
			set(keys, name, node)
		}
	}
	add("ocm", object{}, k.OCM)
	if len(k.JWKS) > 0 {
		var node *yaml.Node
		if node, err = keySet(k.JWKS); err == nil {
			set(keys, "jwks", node)
		}
	}
	add("jwksFile", k.JWKSFile, k.JWKSFile != "")
	add("jwksURI", k.JWKSURI, k.JWKSURI != "")
	discovery := object{}
	if k.DiscoveryURL != "" {
		discovery["url"] = k.DiscoveryURL
	}
	add("discovery", discovery, k.Discovery || k.DiscoveryURL != "")
	add("ca", k.CA, k.CA != "")
	add("caFile", k.CAFile, k.CAFile != "")
	auth := object{}
	if k.TokenFile != "" {
		auth["tokenFile"] = k.TokenFile
	}
	if k.KubeconfigFile != "" {
		auth["kubeconfigFile"] = k.KubeconfigFile
	}
	add("auth", auth, len(auth) > 0)
	add("pins", k.Pins, len(k.Pins) > 0)
	return []*yaml.Node{text("keys"), keys}, err
}

// keySet turns JSON into YAML that people can read. Its texts stay in quotes: a
// key id may look like a number.
func keySet(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) != 1 {
		return nil, fmt.Errorf("the key set is not valid JSON: %w", err)
	}
	block(doc.Content[0])
	return doc.Content[0], nil
}

func block(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style = 0
	}
	for _, child := range n.Content {
		block(child)
	}
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			n.Content[i].Style = 0
		}
	}
}
