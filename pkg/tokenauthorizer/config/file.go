package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
)

// maxBytes bounds a file: 1,000 clusters with two keys each are 2 MiB.
const maxBytes = 32 << 20

// document is a file in our own form: the API's types, and sources that a hub
// does not have.
type document struct {
	Defaults v1alpha1.TokenRules `json:"defaults"`
	Deny     []v1alpha1.Denial   `json:"deny"`
	Clusters []entry             `json:"clusters"`
}

type entry struct {
	v1alpha1.TokenExchangePolicySpec `json:",inline"`

	Name   string  `json:"name"`
	Keys   *keys   `json:"keys"`
	Review *asking `json:"review"`
}

type keys struct {
	v1alpha1.Keys `json:",inline"`

	// JWKS may have members that the API does not store.
	JWKS     json.RawMessage `json:"jwks"`
	JWKSFile string          `json:"jwksFile"`
	CAFile   string          `json:"caFile"`
	Auth     struct {
		TokenFile      string `json:"tokenFile"`
		KubeconfigFile string `json:"kubeconfigFile"`
	} `json:"auth"`
}

type asking struct {
	Mode           review.Mode       `json:"mode"`
	TTL            v1alpha1.Duration `json:"ttl"`
	KubeconfigFile string            `json:"kubeconfigFile"`
}

// openDocument is a file in tokensmith's form, which has no policy.
type openDocument struct {
	Clusters []struct {
		Name     string          `json:"name"`
		Issuer   string          `json:"issuer"`
		JWKSURI  string          `json:"jwks_uri"`
		JWKSData json.RawMessage `json:"jwks_data"`
	} `json:"clusters"`
}

// open is the one predicate for tokensmith's form: a cluster has its keys under
// jwks_uri or jwks_data. The form is said, not concluded from what is missing, so
// that nothing opens because a field was removed.
func open(data []byte) bool {
	var probe struct {
		Clusters []map[string]json.RawMessage `json:"clusters"`
	}
	if json.Unmarshal(data, &probe) != nil {
		return false
	}
	return slices.ContainsFunc(probe.Clusters, func(cluster map[string]json.RawMessage) bool {
		_, uri := cluster["jwks_uri"]
		_, set := cluster["jwks_data"]
		return uri || set
	})
}

// InvalidError says what is wrong with a configuration: everything at once.
type InvalidError struct {
	// File is where it was read from, if that is known.
	File string
	// Findings are the errors.
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
	f := &file{opts: opts, out: &Config{}}
	if err := f.parse(data); err != nil {
		f.fail("", "", "%v", err)
	}
	if policy.Failed(f.findings) {
		f.findings = slices.DeleteFunc(f.findings, func(f policy.Finding) bool { return f.Severity != policy.Error })
		return nil, &InvalidError{File: opts.File, Findings: f.findings}
	}
	f.out.Findings = f.findings
	for _, finding := range f.findings {
		if finding.Severity == policy.Warning {
			f.out.Warnings = append(f.out.Warnings, finding.String())
		}
	}
	return f.out, nil
}

// file is one that is being read.
type file struct {
	opts     Options
	out      *Config
	findings []policy.Finding
}

func (f *file) fail(path, fix, format string, args ...any) {
	f.findings = append(f.findings, policy.Finding{Severity: policy.Error, Path: path, Message: fmt.Sprintf(format, args...), Fix: fix})
}

func (f *file) parse(data []byte) error {
	data, err := toJSON(data)
	if err != nil {
		return err
	}
	if open(data) {
		var d openDocument
		if err := f.decode(data, &d); err != nil {
			return err
		}
		f.tokensmith(&d)
	} else {
		var d document
		if err := f.decode(data, &d); err != nil {
			return err
		}
		f.own(&d)
	}
	f.checkClusters()
	return nil
}

// toJSON turns YAML into JSON. A name that is there twice is an error, and so is
// a second document.
func toJSON(data []byte) ([]byte, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the file is larger than %d MiB", maxBytes>>20)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var value, more any
	switch err := decoder.Decode(&value); {
	case errors.Is(err, io.EOF):
		return []byte("{}"), nil
	case err != nil:
		return nil, fmt.Errorf("it is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document in it; keep one")
	}
	if value == nil {
		return []byte("{}"), nil
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, errors.New("it must be an object with clusters in it")
	}
	out, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("it has values that no configuration has: %w", err)
	}
	return out, nil
}

// decode reads JSON strictly: what is not known is an error, each of it.
func (f *file) decode(data []byte, into any) error {
	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return fmt.Errorf("it cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	for _, problem := range unknown {
		fix := ""
		if _, ok := into.(*openDocument); ok {
			fix = "jwks_uri and jwks_data are tokensmith's form, which has no policy: write keys: {jwksURI: ...} or keys: {jwks: ...} to give it one"
		}
		f.fail("", fix, "%v", problem)
	}
	return nil
}

// own takes over a file in our own form.
func (f *file) own(d *document) {
	b := newBuilder(f.opts, d.Defaults, d.Deny)
	defaults := b.begin("", "defaults")
	defaults.tokens(d.Defaults, false)
	f.findings = slices.Concat(f.findings, defaults.findings, policy.CheckDeny("deny", b.deny), policy.LintAudiences("defaults", d.Defaults.Audiences))
	for i := range d.Clusters {
		e := &d.Clusters[i]
		c := b.begin(e.Name, "clusters["+strconv.Itoa(i)+"]")
		c.tokens(e.TokenRules, e.AcceptLegacyTokens)
		c.out.Spec.Bound = e.TargetNamespaces
		c.review(e.Review)
		c.rules(e.Allow, e.TokenRules)
		c.out.Keys.Issuer = e.Issuer
		c.keys(e.Keys)
		f.add(c)
	}
}

// tokensmith takes over a file in tokensmith's form.
func (f *file) tokensmith(d *openDocument) {
	f.out.Open = true
	b := newBuilder(f.opts, v1alpha1.TokenRules{}, nil)
	for i, e := range d.Clusters {
		c := b.begin(e.Name, "clusters["+strconv.Itoa(i)+"]")
		c.tokens(v1alpha1.TokenRules{}, false)
		c.out.Token.Open, c.out.Token.MaxAge, c.out.Spec.Open = true, 0, true
		c.out.Spec.Allow = []v1alpha1.Rule{policy.OpenRule()}
		c.out.Keys.Issuer, c.out.Keys.Source.URI = e.Issuer, e.JWKSURI
		c.inline("jwks_data", e.JWKSData)
		f.add(c)
	}
}

func (f *file) add(c *building) {
	name := c.out.Keys.Name
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case name == "":
		c.find(policy.Error, "name", "give the cluster a name, the one of its ManagedCluster if it has one", "the name is missing")
	case name == policy.AnyCluster:
		c.find(policy.Error, "name", "give each cluster an entry with its keys", "%q is for clusters that publish their keys on a hub", name)
	case len(name) > 253 || strings.ContainsFunc(name, odd):
		c.find(policy.Error, "name", "use at most 253 printable characters", "%q cannot name a cluster", name)
	default:
		if !policy.Failed(c.findings) {
			c.checkKeys()
		}
	}
	made := c.finish()
	f.findings = append(f.findings, made.Findings...)
	f.out.Clusters = append(f.out.Clusters, made)
}

// keys sets the key source of a file's cluster.
func (c *building) keys(k *keys) {
	if k == nil {
		c.find(policy.Error, "keys", "name jwks, jwksFile, jwksURI or discovery; in tokensmith's form jwks_uri or jwks_data", "nothing can verify the cluster's tokens")
		return
	}
	c.fetched(&k.Keys)
	source := &c.out.Keys.Source
	source.File, source.CAFile = c.path(k.JWKSFile), c.path(k.CAFile)
	source.Auth.TokenFile, source.Auth.KubeconfigFile = c.path(k.Auth.TokenFile), c.path(k.Auth.KubeconfigFile)
	c.inline("keys.jwks", k.JWKS)
}

// path is relative to the file that names it.
func (c *building) path(file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(c.opts.Dir, file)
}

// inline takes over a key set that is an object, or JSON as a text.
func (c *building) inline(field string, data json.RawMessage) {
	if len(data) == 0 || string(data) == "null" {
		return
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		data = json.RawMessage(text)
	}
	set, err := jwk.Parse(data)
	if err != nil {
		c.find(policy.Error, field, "paste what the cluster serves: kubectl get --raw /openid/v1/jwks", "the key set cannot be used: %v", err)
		return
	}
	for _, why := range set.Reasons {
		c.find(policy.Warning, field, "", "a key is ignored: %s", why)
	}
	c.out.Keys.Source.Inline = data
	if len(c.out.Keys.Pins) > 0 {
		c.find(policy.Error, "keys.pins", "leave the other keys out of the key set", "pins are for keys that are fetched")
	}
}

func (c *building) review(r *asking) {
	if r == nil {
		return
	}
	c.out.Review = review.Settings{
		Mode: r.Mode, TTL: c.duration("review.ttl", r.TTL, "", 0), KubeconfigFile: c.path(r.KubeconfigFile),
	}
}

// checkClusters checks the clusters against each other.
func (f *file) checkClusters() {
	if len(f.out.Clusters) == 0 && !policy.Failed(f.findings) {
		f.fail("clusters", "add one with a name, an issuer and keys", "at least one cluster must be configured")
	}
	first := map[string]string{}
	for i := range f.out.Clusters {
		c := &f.out.Clusters[i]
		if other, twice := first[c.Name()]; twice && c.Name() != "" {
			f.fail(c.Spec.Path+".name", "give each cluster a name of its own", "%s is called %q too", other, c.Name())
		}
		first[c.Name()] = c.Spec.Path
	}
	conflicts := jwks.Conflicts(f.out.Keys())
	for i := range f.out.Clusters {
		c := &f.out.Clusters[i]
		shared := conflicts[c.Name()]
		// Each pair once.
		if slices.ContainsFunc(shared, func(s jwks.SharedKeyError) bool { return s.Clusters[0] != c.Name() }) {
			f.findings = append(f.findings, conflict(c, shared))
		}
	}
	if f.out.Open {
		f.opened()
	}
}

// opened is about a file without any policy.
func (f *file) opened() {
	where, clusters := "the file", "its cluster"
	if f.opts.File != "" {
		where = f.opts.File
	}
	if n := len(f.out.Clusters); n > 1 {
		clusters = fmt.Sprintf("its %d clusters", n)
	}
	severity := policy.Warning
	if f.opts.Strict {
		severity = policy.Error
	}
	f.findings = append(f.findings, policy.Finding{
		Severity: severity,
		Message: fmt.Sprintf("%s has no policy: every ServiceAccount of %s becomes the one of the same namespace and name on this hub, for any audience of its token",
			where, clusters),
		Fix: "write keys, audiences and allow rules (docs/guides/workload-tokens.md), or have such files refused with --strict",
	})
}
