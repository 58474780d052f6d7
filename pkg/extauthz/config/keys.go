package config

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// readKeys reads where a cluster's keys come from: "keys" of our own form.
func (c *clusterReader) readKeys(n node) {
	keys := &c.out.Keys
	n.object(fields{
		"ocm":      func(n node) { c.source(n, "ocm"); n.object(nil); keys.Source.Hub = true },
		"jwks":     func(n node) { c.source(n, "jwks"); keys.Source.Inline = c.keySet(n) },
		"jwksFile": func(n node) { c.source(n, "jwksFile"); c.file(n, &keys.Source.File) },
		"jwksURI":  func(n node) { c.source(n, "jwksURI"); c.uri(n, &keys.Source.URI) },
		"discovery": func(n node) {
			c.source(n, "discovery")
			keys.Source.Discovery = &jwks.Discovery{}
			n.object(fields{"url": func(n node) { c.uri(n, &keys.Source.Discovery.URL) }})
		},
		"ca": func(n node) {
			var pem string
			n.text(&pem)
			keys.Source.CA = []byte(pem)
		},
		"caFile": func(n node) { c.file(n, &keys.Source.CAFile) },
		"auth": func(n node) {
			n.object(fields{
				"tokenFile":      func(n node) { c.file(n, &keys.Source.Auth.TokenFile) },
				"kubeconfigFile": func(n node) { c.file(n, &keys.Source.Auth.KubeconfigFile) },
			})
		},
		"pins":     func(n node) { n.texts(&keys.Pins) },
		"staleFor": func(n node) { n.duration(&keys.StaleFor) },
	})
}

// source notes a source; a second one is an error.
func (c *clusterReader) source(n node, name string) {
	if c.sources = append(c.sources, name); len(c.sources) > 1 {
		n.fail("keep one of them", "keys come from one source, and %s is one already", c.sources[0])
	}
}

// keySet reads a key set that is an object, or JSON as a text. Every value
// below is taken as it is written: a key id may look like a number.
func (c *clusterReader) keySet(n node) []byte {
	var data []byte
	if n.y.Kind == yaml.ScalarNode && !n.null() {
		data = []byte(n.y.Value)
	} else if value, ok := plain(n.y, &n.r.nodes, maxKeySetDepth); ok {
		data, _ = json.Marshal(value) //nolint:errchkjson // maps, slices and strings
	}
	set, err := jwk.Parse(data)
	if err != nil {
		n.fail("paste what the cluster serves: kubectl get --raw /openid/v1/jwks", "the key set cannot be used: %v", err)
		return nil
	}
	for _, why := range set.Reasons {
		n.warn("", "a key is ignored: %s", why)
	}
	c.set = set
	return data
}

// maxKeySetDepth is deeper than any key set.
const maxKeySetDepth = 8

// plain turns YAML into what encoding/json takes.
func plain(y *yaml.Node, budget *int, depth int) (any, bool) {
	*budget--
	switch {
	case *budget <= 0 || depth == 0:
		return nil, false
	case y.Kind == yaml.ScalarNode && y.Tag == "!!null":
		return nil, true
	case y.Kind == yaml.ScalarNode:
		return y.Value, true
	case y.Kind == yaml.AliasNode:
		return plain(y.Alias, budget, depth-1)
	}
	values := make([]any, 0, len(y.Content))
	for _, child := range y.Content {
		value, ok := plain(child, budget, depth-1)
		if !ok {
			return nil, false
		}
		values = append(values, value)
	}
	if y.Kind == yaml.MappingNode {
		return object(values)
	}
	return values, true
}

// object makes an object of names and values in turn. A name that is there
// twice would mean two things.
func object(members []any) (map[string]any, bool) {
	out := map[string]any{}
	for i := 0; i+1 < len(members); i += 2 {
		name, ok := members[i].(string)
		if _, twice := out[name]; twice || !ok {
			return nil, false
		}
		out[name] = members[i+1]
	}
	return out, true
}

// checkKeys checks the source once all of it was read.
func (c *clusterReader) checkKeys(n node) {
	if len(c.sources) == 0 {
		c.defaultSource(n)
	}
	c.checkConnection(n)
	keys := &c.out.Keys
	if d := keys.Source.Discovery; d != nil && d.URL == "" && keys.Source.Auth.KubeconfigFile == "" && keys.Issuer != "" {
		checkURL(n, keys.Issuer)
	}
	if keys.Issuer == "" && !keys.Source.Hub {
		n.r.fail(n.path+".issuer", "copy it from: kubectl get --raw /.well-known/openid-configuration", `the cluster's "iss" is missing`)
	}
}

// checkConnection checks how a server of keys is trusted and logged in to.
func (c *clusterReader) checkConnection(n node) {
	source := &c.out.Keys.Source
	path := n.path + ".keys"
	hasCA := len(source.CA) > 0 || source.CAFile != ""
	if len(source.CA) > 0 && source.CAFile != "" {
		n.r.fail(path+".caFile", "keep one of the two", "ca and caFile exclude each other")
	}
	if source.Auth.TokenFile != "" && source.Auth.KubeconfigFile != "" {
		n.r.fail(path+".auth", "keep one of the two", "tokenFile and kubeconfigFile exclude each other")
	}
	if fetched := source.URI != "" || source.Discovery != nil; !fetched && (hasCA || source.Auth != (jwks.Auth{})) {
		n.r.fail(path, "remove ca and auth", "only jwksURI and discovery connect to a server")
	}
}

// defaultSource is for an entry that names none: the hub's, where a policy or
// the name shows that this is meant.
func (c *clusterReader) defaultSource(n node) {
	if c.seed && !c.opts.Hub {
		n.fail("add jwks_data with the answer of kubectl get --raw /openid/v1/jwks, or jwks_uri",
			"there is neither jwks_uri nor jwks_data, so nothing can verify the cluster's tokens")
		return
	}
	c.out.Keys.Source.Hub = true
}

// uri reads an https URL.
func (c *clusterReader) uri(n node, into *string) {
	n.text(into)
	checkURL(n, *into)
}

func checkURL(n node, raw string) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		n.fail("use an https URL: whoever can change the answer can make tokens", "keys are fetched over https only, not from %q", raw)
	}
}

// checkPins finds pins that an inline set cannot fulfil.
func (c *clusterReader) checkPins(n node) {
	pins := c.out.Keys.Pins
	if slices.Contains(pins, "") {
		n.r.fail(n.path+".keys.pins", "name keys by kid or thumbprint", "an empty pin names no key")
	}
	if len(pins) == 0 || len(c.set.Keys) == 0 {
		return
	}
	pinned := func(k jwk.Key) bool { return slices.Contains(pins, k.ID) || slices.Contains(pins, k.Thumbprint) }
	if !slices.ContainsFunc(c.set.Keys, pinned) {
		n.r.fail(n.path+".keys.pins", "correct the pins", "no key of the set is pinned (%s), so no token would be taken", strings.Join(pins, ", "))
	}
}
