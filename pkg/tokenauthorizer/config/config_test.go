package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

const issuer = "https://kubernetes.default.svc.cluster.local"

// keySet is a new key set in JSON, as an API server serves it.
func keySet(tb testing.TB, kid string) string {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: kid, Use: "sig", Algorithm: "ES256"}}})
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// block is JSON as a YAML block below a field that is indented by two.
func block(tb testing.TB, keys string) string {
	tb.Helper()
	data, err := yaml.JSONToYAML([]byte(keys))
	if err != nil {
		tb.Fatal(err)
	}
	return "\n      " + strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n      ")
}

func parse(t *testing.T, text string, opts config.Options) *config.Config {
	t.Helper()
	got, err := config.Parse([]byte(text), opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return got
}

// TestTokensmithsForm: a file of tokensmith's loads as it is, with jwks_data as YAML
// or as a JSON string, and means what it says.
func TestTokensmithsForm(t *testing.T) {
	t.Parallel()
	one, two := keySet(t, "abc123"), keySet(t, "0123")
	got := parse(t, fmt.Sprintf(`
clusters:
  - name: workload-cluster-1
    issuer: %s
    jwks_data: %s
  - name: workload-cluster-2
    issuer: https://10.96.0.1
    jwks_data: '%s'
  - name: Workload cluster 3
    issuer: https://example.com
    jwks_uri: https://example.com/openid/v1/jwks
`, issuer, block(t, one), two), config.Options{File: "clusters.yaml", Expiration: 20 * time.Minute})
	if !got.Open || len(got.Clusters) != 3 || len(got.Warnings) != 1 {
		t.Fatalf("open %v, %d clusters, warnings %q", got.Open, len(got.Clusters), got.Warnings)
	}
	for _, part := range []string{"clusters.yaml has no policy", "3 clusters", "same namespace and name", "for any audience", "allow rules", "--strict"} {
		if !strings.Contains(got.Warnings[0], part) {
			t.Errorf("the warning does not say %q: %s", part, got.Warnings[0])
		}
	}
	for i, want := range []string{one, two} {
		read, err := jwk.Parse(got.Clusters[i].Keys.Source.Inline)
		written, _ := jwk.Parse([]byte(want))
		if err != nil || len(read.Keys) != 1 || read.Keys[0].Thumbprint != written.Keys[0].Thumbprint || read.Keys[0].ID != written.Keys[0].ID {
			t.Errorf("cluster %d: %+v, %v", i, read, err)
		}
	}
	if uri := got.Clusters[2].Keys.Source.URI; uri != "https://example.com/openid/v1/jwks" {
		t.Errorf("jwks_uri is %q", uri)
	}
	for _, c := range got.Clusters {
		if !c.Token.Open || len(c.Token.Audiences) > 0 || c.Token.MaxAge != 0 {
			t.Errorf("%s: %+v", c.Name(), c.Token)
		}
		grant, err := c.Policy.Decide(subject.Identity{Cluster: c.Name(), Account: subject.Account{Namespace: "app", Name: "sa", UID: "u"}})
		if err != nil || grant.Target.Namespace != "app" || grant.Target.Name != "sa" || grant.Target.Expiration != 20*time.Minute {
			t.Errorf("%s: %+v, %v", c.Name(), grant, err)
		}
	}
}

func TestStrictRefusesTokensmithsForm(t *testing.T) {
	t.Parallel()
	_, err := config.Parse(fmt.Appendf(nil, "clusters: [{name: a, issuer: b, jwks_data: %s}]", keySet(t, "k")), config.Options{Strict: true})
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "no policy") {
		t.Errorf("error %v", err)
	}
}

func TestAFileWithPolicy(t *testing.T) {
	t.Parallel()
	got := parse(t, `
defaults:
  audiences: [https://hub.example.com]
  clockSkew: 20s
clusters:
- name: cluster1
  issuer: `+issuer+`
  keys:
    jwksURI: https://c1.example.com/keys
    caFile: ca.pem
    auth: {tokenFile: /etc/token}
    pins: [a, b]
    staleFor: 2h
  maxTokenAge: 30m
  acceptLegacyTokens: true
  review: {mode: Cached, ttl: 30s, kubeconfigFile: c1.kubeconfig}
  limits: {cluster: {perSecond: 2, burst: 7}}
  allow:
  - namespaces: [app-*]
    serviceAccounts: [eso-sa]
    audiences: [https://other.example.com]
    requireBoundPod: true
    mapTo: {namespace: cluster1, name: "{namespace}.{name}"}
    target: {audiences: [x], expirationSeconds: 600, namespaces: [cluster1]}
  - {namespaces: [team], serviceAccounts: [a], mapTo: {namespace: "{namespace}", name: "{name}"}}
- name: cluster2
  issuer: https://c2.example.com
  keys: {discovery: {}}
  audiences: [https://hub2.example.com]
  targetNamespaces: [edge-*]
  allow:
  - {namespaces: [app], serviceAccounts: [a], mapTo: {namespace: edge-1, name: "{name}"}}
deny:
- targetNamespaces: [team-*]
`, config.Options{File: "clusters.yaml", Dir: "/etc/extauthz", Self: policy.Account{Namespace: "h", Name: "sa"}})
	if got.Open || len(got.Clusters) != 2 || len(got.Warnings) != 0 {
		t.Fatalf("open %v, %d clusters, warnings %q", got.Open, len(got.Clusters), got.Warnings)
	}
	c := got.Clusters[0]
	keys := c.Keys
	if keys.Name != "cluster1" || keys.Issuer != issuer || keys.Source.URI != "https://c1.example.com/keys" || keys.Source.CAFile != "/etc/extauthz/ca.pem" ||
		keys.Source.Auth.TokenFile != "/etc/token" || len(keys.Pins) != 2 || keys.StaleFor != 2*time.Hour {
		t.Errorf("keys %+v", keys)
	}
	if token := c.Token; token.MaxAge != 30*time.Minute || token.Skew != 20*time.Second || !token.Legacy || token.Open || token.RequirePod ||
		!slices.Equal(token.Audiences, []string{"https://hub.example.com", "https://other.example.com"}) {
		t.Errorf("token rules %+v", token)
	}
	if r := c.Review; r.Mode != review.Cached || r.TTL != 30*time.Second || r.KubeconfigFile != "/etc/extauthz/c1.kubeconfig" || len(r.Audiences) != 2 {
		t.Errorf("review %+v", r)
	}
	if c.Limits.Cluster.PerSecond != 2 || c.Limits.Cluster.Burst != 7 {
		t.Errorf("limits %+v", c.Limits)
	}
	allow := c.Spec.Allow
	if len(allow) != 2 || !allow[0].RequireBoundPod || allow[0].Target.ExpirationSeconds != 600 || allow[1].MapTo != policy.Same() ||
		!slices.Equal(allow[1].Audiences, []string{"https://hub.example.com"}) || allow[1].Target != nil {
		t.Errorf("rules %+v", allow)
	}
	if _, ok := got.Cluster("c99"); ok {
		t.Error("a file has an entry for a cluster that it does not name")
	}
	if two, _ := got.Cluster("cluster2"); two.Token.MaxAge != time.Hour || !slices.Equal(two.Token.Audiences, []string{"https://hub2.example.com"}) || two.Spec.Bound[0] != "edge-*" {
		t.Errorf("%+v", two)
	}
	if own, _ := got.Cluster("cluster1"); own.Name() != "cluster1" || own.Spec.Self.Name != "sa" || len(own.Spec.Deny) != 1 {
		t.Errorf("%+v", own)
	}
	settings := got.Exchange(3)
	if !slices.Equal(settings.Namespaces, []string{"cluster1", "edge-1", "team"}) || settings.Clusters["cluster1"].Limits.Cluster.Burst != 7 || settings.Clusters["cluster2"].Generation != 3 {
		t.Errorf("%+v", settings)
	}
	if len(got.Specs()) != 2 || len(got.Keys()) != 2 {
		t.Error("a cluster is lost")
	}
}

func TestKeySources(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]jwks.Source{
		`jwksFile: keys.json`:                        {File: "keys.json"},
		`discovery: {}`:                              {Discovery: &jwks.Discovery{}},
		`discovery: {url: "https://d.x/a"}`:          {Discovery: &jwks.Discovery{URL: "https://d.x/a"}},
		`{jwksURI: "https://a/b", ca: "PEM"}`:        {URI: "https://a/b", CA: []byte("PEM")},
		`{discovery: {}, auth: {kubeconfigFile: k}}`: {Discovery: &jwks.Discovery{}, Auth: jwks.Auth{KubeconfigFile: "k"}},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if !strings.HasPrefix(text, "{") {
				text = "{" + text + "}"
			}
			got := parse(t, "clusters: [{name: c, issuer: https://i, keys: "+text+"}]", config.Options{}).Clusters[0].Keys.Source
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestLoad: an error says which file it is in.
func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	if _, err := config.Load(path, config.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(path, []byte("clusters: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(path, config.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("error %v", err)
	}
}

// FuzzParse: whatever is in a file, it gives a usable configuration or errors.
func FuzzParse(f *testing.F) {
	f.Add("clusters: [{name: a, issuer: b, jwks_data: " + keySet(f, "k") + "}]")
	f.Add("defaults: {audiences: [x]}\nclusters:\n- {name: c, issuer: i, keys: {jwksURI: https://a}, allow: [{namespaces: [a], mapTo: {namespace: b, name: c}}]}")
	f.Add("a: &a [*a]\nclusters: *a")
	f.Add("clusters: [{name: c, keys: {jwks: &k {keys: [*k]}}}]")
	f.Add("? [a]\n: b\n<<: {clusters: []}\n--- 1\n...")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := config.Parse([]byte(text), config.Options{})
		switch {
		case err == nil:
			if err := jwks.New(jwks.Config{}).Configure(withoutFiles(got.Keys()), nil); err != nil {
				t.Errorf("the key store does not take it: %v", err)
			}
			for _, c := range got.Clusters {
				if c.Policy == nil || c.Name() == "" || len(c.Token.Audiences) == 0 && !got.Open && len(c.Spec.Allow) > 0 {
					t.Errorf("%+v", c)
				}
			}
		case got != nil || !policy.Failed(findings(err)):
			t.Errorf("%v with %+v", err, got)
		}
	})
}

// withoutFiles leaves out what would be read from this machine.
func withoutFiles(clusters []jwks.Cluster) []jwks.Cluster {
	return slices.DeleteFunc(clusters, func(c jwks.Cluster) bool { return c.Source.File != "" })
}

func findings(err error) []policy.Finding {
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return invalid.Findings
	}
	return nil
}
