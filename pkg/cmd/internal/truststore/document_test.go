package truststore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/truststore"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// keySet is a new key set in JSON.
func keySet(t *testing.T, kid string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	type member struct {
		Kty string `json:"kty"`
		Kid string `json:"kid"`
		Crv string `json:"crv"`
		X   string `json:"x"`
		Y   string `json:"y"`
	}
	data, err := json.Marshal(map[string]any{"keys": []member{{
		Kty: "EC", Kid: kid, Crv: "P-256", X: base64.RawURLEncoding.EncodeToString(point[1:33]), Y: base64.RawURLEncoding.EncodeToString(point[33:]),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func document(t *testing.T, text string) *truststore.Document {
	t.Helper()
	d, err := truststore.ParseDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func bytesOf(t *testing.T, d *truststore.Document) string {
	t.Helper()
	data, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const commented = `# Who may reach this hub.
defaults:
  audiences: ['https://hub.example.com'] # its address
clusters:
# The shop.
- name: cluster1
  issuer: https://kubernetes.default.svc.cluster.local
  keys:
    ocm: {}
  allow:
  # The secrets operator.
  - namespaces: [app-*]
    serviceAccounts: [eso]
    mapTo: {namespace: cluster1, name: "{namespace}.{name}"}
`

func TestEditingKeepsTheRest(t *testing.T) {
	t.Parallel()
	d := document(t, commented)
	rule := truststore.Rule{Namespaces: []string{"ci"}, ServiceAccounts: []string{"bot"}, MapTo: truststore.MapTo{Same: true}}
	for i, want := range []bool{true, false} {
		if added, err := d.AddRule("cluster1", rule); err != nil || added != want {
			t.Errorf("time %d: added %v, %v", i, added, err)
		}
	}
	want := commented + `  - namespaces:
    - ci
    serviceAccounts:
    - bot
    mapTo: same
`
	if diff := cmp.Diff(want, bytesOf(t, d)); diff != "" {
		t.Error(diff)
	}
	if _, err := d.AddRule("cluster9", rule); err == nil {
		t.Error("a rule for a cluster that is not there")
	}
	if !d.RemoveCluster("cluster1") || d.RemoveCluster("cluster1") || len(d.Clusters()) != 0 {
		t.Errorf("clusters %v", d.Clusters())
	}
	if text := bytesOf(t, d); !strings.HasPrefix(text, "# Who may reach this hub.") {
		t.Error(text)
	}
}

// TestTheSameRuleIsNotAddedTwice whatever way it is written.
func TestTheSameRuleIsNotAddedTwice(t *testing.T) {
	t.Parallel()
	d := document(t, commented)
	added, err := d.AddRule("cluster1", truststore.Rule{
		Namespaces: []string{"app-*"}, ServiceAccounts: []string{"eso"},
		MapTo: truststore.MapTo{Namespace: "cluster1", Name: "{namespace}.{name}"},
	})
	if err != nil || added || bytesOf(t, d) != commented {
		t.Errorf("added %v, %v\n%s", added, err, bytesOf(t, d))
	}
}

func TestAnEmptyDocument(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "---\n", "{}", "# nothing yet\n", "null"} {
		d := document(t, text)
		if d.Seed() || len(d.Clusters()) != 0 {
			t.Errorf("%q: %v", text, d.Clusters())
		}
		keys := keySet(t, "0123")
		if err := d.SetCluster(truststore.Entry{Name: "c1", Issuer: "https://i", Keys: &truststore.Keys{JWKS: []byte(keys)}}); err != nil {
			t.Fatal(err)
		}
		got, err := d.Config(config.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, bytesOf(t, d))
		}
		if got.Seed || d.Seed() || len(got.Clusters) != 1 || len(got.Clusters[0].Spec.Allow) != 0 {
			t.Errorf("%q: it is open:\n%s", text, bytesOf(t, d))
		}
		sameKeys(t, got.Clusters[0].Keys.Source.Inline, keys)
		if strings.HasPrefix(text, "#") && !strings.HasPrefix(bytesOf(t, d), strings.TrimSpace(text)) {
			t.Errorf("the comment is lost:\n%s", bytesOf(t, d))
		}
	}
}

func sameKeys(t *testing.T, got []byte, want string) {
	t.Helper()
	a, err := jwk.Parse(got)
	b, _ := jwk.Parse([]byte(want))
	if err != nil || len(a.Keys) != len(b.Keys) || a.Keys[0].Thumbprint != b.Keys[0].Thumbprint || a.Keys[0].ID != b.Keys[0].ID {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
}

// TestASeedsDocumentKeepsItsForm: to add a cluster to a file without a policy
// must neither open the cluster more nor close the others.
func TestASeedsDocumentKeepsItsForm(t *testing.T) {
	t.Parallel()
	d := document(t, fmt.Sprintf("clusters:\n- name: a\n  issuer: i\n  jwks_data: %s\n", keySet(t, "k")))
	keys := keySet(t, "k2")
	if err := d.SetCluster(truststore.Entry{Name: "b", Issuer: "j", Keys: &truststore.Keys{JWKS: []byte(keys)}}); err != nil {
		t.Fatal(err)
	}
	if err := d.SetCluster(truststore.Entry{Name: "a", Keys: &truststore.Keys{JWKSURI: "https://a"}}); err != nil {
		t.Fatal(err)
	}
	got, err := d.Config(config.Options{})
	if err != nil || !got.Seed || !d.Seed() || !slices.Equal(d.Clusters(), []string{"a", "b"}) || got.Clusters[0].Keys.Source.URI != "https://a" {
		t.Fatalf("%v\n%s", err, bytesOf(t, d))
	}
	sameKeys(t, got.Clusters[1].Keys.Source.Inline, keys)
	if err := d.SetCluster(truststore.Entry{Name: "c", Keys: &truststore.Keys{OCM: true}}); err == nil {
		t.Error("a source that the form does not know")
	}
}

func TestSetClusterChangesOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	d := document(t, commented)
	if err := d.SetCluster(truststore.Entry{Name: "cluster1", Keys: &truststore.Keys{
		Discovery: true, DiscoveryURL: "https://d", CA: "one\ntwo", KubeconfigFile: "k", Pins: []string{"p"},
	}}); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(commented, "  keys:\n    ocm: {}\n", "")
	want = strings.ReplaceAll(want, "name}\"}\n", `name}"}
  keys:
    discovery:
      url: https://d
    ca: |-
      one
      two
    auth:
      kubeconfigFile: k
    pins:
    - p
`)
	if diff := cmp.Diff(want, bytesOf(t, d)); diff != "" {
		t.Error(diff)
	}
}

func TestAudiences(t *testing.T) {
	t.Parallel()
	d := document(t, commented)
	if got := d.Audiences("cluster1"); !slices.Equal(got, []string{"https://hub.example.com"}) {
		t.Errorf("got %v", got)
	}
	for i, want := range []bool{true, false} {
		if added, err := d.AddAudience("cluster1", "x"); err != nil || added != want {
			t.Errorf("time %d: added %v, %v", i, added, err)
		}
	}
	if got := d.Audiences("cluster1"); !slices.Equal(got, []string{"https://hub.example.com", "x"}) {
		t.Errorf("got %v", got)
	}
}

func TestWhatIsNoDocument(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"[]", "x", "a: ["} {
		if _, err := truststore.ParseDocument([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
