package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/subject"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// maxBytes bounds a file: 1,000 clusters with two keys each are 2 MiB.
const maxBytes = 32 << 20

// InvalidError says what is wrong with a configuration: everything at once.
type InvalidError struct {
	// File is where it was read from, if that is known.
	File string
	// Findings are the errors, in the order of the file.
	Findings []policy.Finding
}

// Error is one line per finding.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
		if e.File != "" {
			lines[i] = e.File + ": " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// Load reads a file.
func Load(path string, opts Options) (*Config, error) {
	opts.File, opts.Dir = path, filepath.Dir(path)
	data, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	return Parse(data, opts)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	return data, errors.Join(err, f.Close())
}

// Parse reads a configuration. An error about its contents is *InvalidError.
func Parse(data []byte, opts Options) (*Config, error) {
	opts.Expiration = cmp.Or(opts.Expiration, policy.DefaultExpiration)
	p := &parser{opts: opts, reader: &reader{lines: map[string]int{}, nodes: maxNodes}}
	p.parse(data)
	slices.SortStableFunc(p.findings, func(a, b policy.Finding) int { return cmp.Compare(a.Line, b.Line) })
	if policy.Failed(p.findings) {
		p.findings = slices.DeleteFunc(p.findings, func(f policy.Finding) bool { return f.Severity != policy.Error })
		return nil, &InvalidError{File: opts.File, Findings: p.findings}
	}
	p.out.Findings = p.findings
	for _, f := range p.findings {
		if f.Severity == policy.Warning {
			p.out.Warnings = append(p.out.Warnings, f.String())
		}
	}
	return p.out, nil
}

type parser struct {
	*reader
	opts     Options
	out      *Config
	defaults tokens
	deny     []policy.Deny
	// sets are the inline key sets, one per cluster.
	sets []jwk.Set
}

func (p *parser) parse(data []byte) {
	p.out = &Config{at: p.reader}
	root, ok := p.root(data)
	if !ok {
		return
	}
	p.defaults = tokens{maxAge: subject.DefaultMaxAge, skew: subject.DefaultSkew}
	known := fields{
		"defaults": func(n node) { n.object(p.defaults.fields()) },
		"deny":     p.readDeny,
		"clusters": func(node) {}, // Once the others are known.
	}
	root.object(known)
	p.add(policy.LintAudiences("defaults", p.defaults.audiences))
	p.out.Seed = p.seedShaped(root.y)
	clusters, ok := root.member("clusters")
	if ok {
		clusters.list(p.readCluster)
	}
	p.checkClusters()
}

// root returns the one document of the data.
func (p *parser) root(data []byte) (node, bool) {
	top := node{r: p.reader, y: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}}
	if len(data) > maxBytes {
		p.fail("", "split it, or let the clusters publish their keys", "the file is larger than %d MiB", maxBytes>>20)
		return top, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return top, true // An empty file.
	}
	if err != nil {
		p.fail("", "", "it is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return top, false
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		p.fail("", "keep one document", "there is more than one document in it")
		return top, false
	}
	return top.at("", doc.Content[0]), true
}

// member returns a member of an object.
func (n node) member(name string) (node, bool) {
	for i := 0; n.y.Kind == yaml.MappingNode && i+1 < len(n.y.Content); i += 2 {
		if n.y.Content[i].Value == name {
			return n.at(name, n.y.Content[i+1]), true
		}
	}
	return node{}, false
}

// seedShaped reports whether the file says nothing that seed 002's form does
// not know, so that it has no policy.
func (p *parser) seedShaped(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode || len(root.Content) != 2 || root.Content[0].Value != "clusters" {
		return false
	}
	for _, cluster := range root.Content[1].Content {
		keyed := false
		for j := 0; j+1 < len(cluster.Content); j += 2 {
			switch cluster.Content[j].Value {
			case "jwks_uri", "jwks_data":
				keyed = true
			case "name", "issuer":
			default:
				return false
			}
		}
		// On a hub, an entry without keys is one for published ones. It has
		// nothing of the seed's and must not be as open.
		if cluster.Kind != yaml.MappingNode || p.opts.Hub && !keyed {
			return false
		}
	}
	return len(root.Content[1].Content) > 0
}

func (p *parser) readDeny(n node) {
	n.list(func(_ int, child node) {
		var d policy.Deny
		child.object(fields{
			"targetNamespaces":      func(n node) { n.texts(&d.TargetNamespaces) },
			"targetServiceAccounts": func(n node) { n.texts(&d.TargetServiceAccounts) },
		})
		p.deny = append(p.deny, d)
	})
	p.add(policy.CheckDeny("deny", p.deny))
}

// add takes findings over, with their lines.
func (p *parser) add(findings []policy.Finding) {
	for _, f := range findings {
		f.Line = p.line(f.Path)
		p.findings = append(p.findings, f)
	}
}

func (p *parser) readCluster(_ int, n node) {
	c := clusterReader{opts: p.opts, defaults: p.defaults, seed: p.out.Seed}
	before := len(p.findings)
	c.out.Spec.Deny = p.deny
	c.read(n)
	if !policy.Failed(p.findings[before:]) {
		c.out.Policy, _ = policy.Compile(c.out.Spec)
		p.add(policy.LintOne(c.out.Spec))
	}
	p.sets = append(p.sets, c.set)
	p.out.Clusters = append(p.out.Clusters, c.out)
}
