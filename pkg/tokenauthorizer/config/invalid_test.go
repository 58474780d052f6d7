package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
)

// TestEveryProblemIsReportedAtOnce also shows what a person sees.
func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := config.Parse([]byte(`clusters:
- name: c1
  issur: x
  keys: {jwks: {keys: []}}
- name: c1
  issuer: i
  keys: {discovery: {}, jwksURI: http://x}
  allow:
  - namespace: [a]
    namespaces: [A]
    mapTo: {namespace: x, name: "{namespace}-{name}"}
denny: []
`), config.Options{File: "clusters.yaml"})
	const want = `clusters.yaml: unknown field "clusters[0].issur"
clusters.yaml: unknown field "clusters[1].allow[0].namespace"
clusters.yaml: unknown field "denny"
clusters.yaml: clusters[0].keys.jwks: the key set cannot be used: the key set has no usable key; paste what the cluster serves: kubectl get --raw /openid/v1/jwks
clusters.yaml: clusters[1].audiences: no audience is named, so a token that was issued for any service would be accepted; name the audience that workloads request their tokens for, such as the address of this hub, here or in the defaults
clusters.yaml: clusters[1].allow[0].namespaces: "A" matches no name; use lower case letters, digits, dashes and dots, with * for any characters
clusters.yaml: clusters[1].allow[0].mapTo: two ServiceAccounts of the cluster can become the same one of the hub (a-b + c and a + b-c); put a dot between the placeholders, as in "{namespace}.{name}", and use {name} once
clusters.yaml: clusters[1].name: clusters[0] is called "c1" too; give each cluster a name of its own`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	keys := keySet(t, "k")
	cluster := func(fields string) string {
		return "defaults: {audiences: [x]}\nclusters:\n- {name: c, issuer: i, keys: {jwksURI: 'https://a'}, " + fields + "}"
	}
	entry := func(name, issuer string) string {
		return fmt.Sprintf("- {name: %s, issuer: %q, jwks_data: %s}\n", name, issuer, keys)
	}
	for _, tc := range []struct{ name, text, want string }{
		{"no cluster", "", "clusters: at least one cluster must be configured"},
		{"a duplicate name", "clusters:\n" + entry("a", "i") + entry("a", "j"), `clusters[1].name: clusters[0] is called "a" too`},
		{"neither URI nor data", "clusters: [{name: a, issuer: i}]", "in tokensmith's form jwks_uri or jwks_data"},
		{"a policy in tokensmith's form", "clusters: [{name: a, issuer: i, jwks_uri: https://a, allow: []}]", `unknown field "clusters[0].allow"; jwks_uri and jwks_data are tokensmith's form, which has no policy`},
		{"both forms", "clusters: [{name: a, issuer: i, jwks_uri: https://a}, {name: b, issuer: i, keys: {discovery: {}}}]", `unknown field "clusters[1].keys"`},
		{"data without a key", "clusters: [{name: a, issuer: i, jwks_data: {keys: []}}]", "the key set has no usable key"},

		{"no name", "clusters: [{issuer: i, jwks_uri: https://a}]", "clusters[0].name: the name is missing"},
		{"a name with a control character", `clusters: [{name: "a\n", issuer: i, jwks_uri: https://a}]`, "cannot name a cluster"},
		{"no issuer", "clusters: [{name: a, jwks_uri: https://a}]", "issuer is required"},
		{"one key for two clusters of one issuer", "clusters:\n" + entry("a", "i") + entry("b", "i"), `the key k is also a key of cluster "a" (`},
		{"two sources", "clusters: [{name: a, issuer: i, jwks_uri: https://a, jwks_data: " + keys + "}]", "exactly one source of keys is possible"},
		{"a private key", `clusters: [{name: a, issuer: i, jwks_data: {keys: [{kty: oct, kid: k, k: c2VjcmV0}]}}]`, "secret key material"},
		{"a key set that is no JSON", "clusters: [{name: a, issuer: i, jwks_data: nonsense}]", "the key set cannot be used"},
		{"a key set that contains itself", "clusters: [{name: a, issuer: i, jwks_data: &x {keys: [*x]}}]", "it is not valid YAML"},
		{"plain HTTP", "clusters: [{name: a, issuer: i, jwks_uri: http://a}]", "must begin with https://"},
		{"a password in the URL", "clusters: [{name: a, issuer: i, jwks_uri: https://u:p@a}]", "must not contain a user"},
		{"discovery at an issuer that is no URL", "clusters: [{name: a, issuer: kubernetes/serviceaccount, keys: {discovery: {}}}]", "must begin with https://"},
		{"a field twice", "clusters: [{name: a, name: b, issuer: i, jwks_uri: https://a}]", "already defined"},
		{"a list for an object", "[]", "it must be an object"},
		{"two documents", "clusters: []\n---\nclusters: []", "more than one document"},
		{"no YAML", "clusters: [", "it is not valid YAML"},
		{"for all clusters", "clusters: [{name: '*', issuer: i, keys: {jwksURI: https://a}}]", "is for clusters that publish their keys on a hub"},
		{"without keys", "clusters: [{name: a}]", "clusters[0].keys: nothing can verify"},
		{"an issuer without end", "clusters: [{name: a, issuer: " + strings.Repeat("i", 3000) + ", jwks_uri: https://a}]", "issuer is longer than"},
		{"no audience", "clusters: [{name: c, issuer: i, keys: {jwksURI: https://a}, allow: [{namespaces: [a], mapTo: {namespace: b, name: c}}]}]", "clusters[0].audiences: no audience is named"},
		{"an empty audience", cluster(`audiences: [""]`), "an empty audience means nothing"},
		{"a CA for nothing", "clusters: [{name: c, issuer: i, keys: {jwksFile: x, caFile: x}}]", "a CA and credentials are for a URI and discovery only"},
		{"two CAs", "clusters: [{name: c, issuer: i, keys: {jwksURI: https://a, ca: x, caFile: y}}]", "a CA is given twice"},
		{"two credentials", "clusters: [{name: c, issuer: i, keys: {jwksURI: https://a, auth: {tokenFile: x, kubeconfigFile: y}}}]", "cannot both authenticate"},
		{"pins for inline keys", "clusters: [{name: c, issuer: i, keys: {jwks: " + keys + ", pins: [x]}}]", "pins are for keys that are fetched"},
		{"a review that is none", cluster("review: {mode: Often}"), `the review mode "Often" is not one of`},
		{"a review without a credential", cluster("review: {mode: Cached}"), "needs a kubeconfig file"},
		{"a duration without a unit", cluster("maxTokenAge: '5'"), `clusters[0].maxTokenAge: "5" must be a duration`},
		{"a number for a duration", cluster("maxTokenAge: 5"), "it cannot be read"},
		{"a skew of an hour", cluster("clockSkew: 1h"), "clusters[0].clockSkew: 1h0m0s is more than 5m0s"},
		{"half a limit", cluster("limits: {identity: {burst: 1}}"), "a limit has perSecond and burst"},
		{"a limit that is no number", cluster("limits: {identity: {perSecond: NaN, burst: 1}}"), "it cannot be read"},
		{"legacy tokens by default", "defaults: {acceptLegacyTokens: true}\nclusters: []", `unknown field "defaults.acceptLegacyTokens"`},
		{"a namespace that the cluster chooses", cluster(`allow: [{mapTo: {namespace: "{namespace}", name: x}}]`), "the cluster can choose the namespace of the hub"},
		{"a target that is never open", cluster("allow: [{namespaces: [a], mapTo: {namespace: kube-system, name: b}}]"), "kube-system/b of the hub is denied"},
		{"an empty denial", "clusters: [{name: a, issuer: i, keys: {jwksURI: https://a}}]\ndeny: [{}]", "deny[0]: the rule denies nothing"},
		{"a text for a truth", cluster("acceptLegacyTokens: 'yes'"), "it cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Parse([]byte(tc.text), config.Options{})
			if got != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestOneIssuerForTwoClusters: kubeadm, kind and k3s all have the same default,
// so this is the common case.
func TestOneIssuerForTwoClusters(t *testing.T) {
	t.Parallel()
	got := parse(t, fmt.Sprintf("clusters:\n- {name: a, issuer: %[1]s, jwks_data: %[2]s}\n- {name: b, issuer: %[1]s, jwks_data: %[3]s}\n",
		issuer, keySet(t, "k"), keySet(t, "k")), config.Options{})
	if len(got.Clusters) != 2 {
		t.Errorf("%+v", got)
	}
}
