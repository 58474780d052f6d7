package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
)

// TestEveryProblemIsToldAtOnce also shows what a person sees.
func TestEveryProblemIsToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := config.Parse([]byte(`clusters:
- name: c1
  issur: x
  jwks_data: {keys: []}
- name: c1
  keys: {ocm: {}, jwksURI: http://x}
  allow:
  - namespace: [a]
    mapTo: sam
    target: {expirationSeconds: 10s}
denny: []
`), config.Options{File: "clusters.yaml"})
	const want = `clusters.yaml: line 2: clusters[0].issuer: the cluster's "iss" is missing; copy it from: kubectl get --raw /.well-known/openid-configuration
clusters.yaml: line 3: clusters[0].issur: there is no such field; did you mean issuer?
clusters.yaml: line 4: clusters[0].jwks_data: the key set cannot be used: the key set has no usable key; paste what the cluster serves: kubectl get --raw /openid/v1/jwks
clusters.yaml: line 5: clusters[1].audiences: no audience is named, so a token that was made for anybody would be taken; name the audience that workloads ask their tokens for, such as the address of this hub, here or in defaults
clusters.yaml: line 5: clusters[1].name: clusters[0] is called "c1" too; give each cluster a name of its own
clusters.yaml: line 6: clusters[1].keys.jwksURI: keys come from one source, and ocm is one already; keep one of them
clusters.yaml: line 6: clusters[1].keys.jwksURI: keys are fetched over https only, not from "http://x"; use an https URL: whoever can change the answer can make tokens
clusters.yaml: line 8: clusters[1].allow[0].namespace: there is no such field; did you mean namespaces?
clusters.yaml: line 9: clusters[1].allow[0].mapTo: "sam" is no mapping; write mapTo: same, or mapTo: {namespace: ..., name: ...}
clusters.yaml: line 10: clusters[1].allow[0].target.expirationSeconds: "10s" must be a whole number, 0 or more
clusters.yaml: line 11: denny: there is no such field; did you mean deny?`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	keys := keySet(t, "k")
	cluster := func(fields string) string {
		return "defaults: {audiences: [x]}\nclusters:\n- {name: c, issuer: i, keys: {ocm: {}}, " + fields + "}"
	}
	seed := func(name, issuer string) string {
		return fmt.Sprintf("- {name: %s, issuer: %q, jwks_data: %s}\n", name, issuer, keys)
	}
	for _, tc := range []struct{ name, text, want string }{
		// Seed 002, "Configuration Structures", its four rules.
		{"no cluster", "", "clusters: at least one cluster must be configured"},
		{"a duplicate name", "clusters:\n" + seed("a", "i") + seed("a", "j"), `line 3: clusters[1].name: clusters[0] is called "a" too`},
		{"neither URI nor data", "clusters: [{name: a, issuer: i}]", "there is neither jwks_uri nor jwks_data"},
		{"data without a key", "clusters: [{name: a, issuer: i, jwks_data: {keys: []}}]", "the key set has no usable key"},

		{"no name", "clusters: [{issuer: i, jwks_uri: https://a}]", "clusters[0].name: the name is missing"},
		{"a name with a control character", `clusters: [{name: "a\n", issuer: i, jwks_uri: https://a}]`, "cannot name a cluster"},
		{"no issuer", "clusters: [{name: a, jwks_uri: https://a}]", `clusters[0].issuer: the cluster's "iss" is missing`},
		{"one key for two clusters of one issuer", "clusters:\n" + seed("a", "i") + seed("b", "i"), `clusters "a" and "b" have the same key k (thumbprint `},
		{"two sources", "clusters: [{name: a, issuer: i, jwks_uri: https://a, jwks_data: " + keys + "}]", "keys come from one source, and jwks_uri is one already"},
		{"a private key", `clusters: [{name: a, issuer: i, jwks_data: {keys: [{kty: oct, kid: k, k: c2VjcmV0}]}}]`, "secret key material"},
		{"a key set that is no JSON", "clusters: [{name: a, issuer: i, jwks_data: nonsense}]", "the key set cannot be used"},
		{"a key set that contains itself", "clusters: [{name: a, issuer: i, jwks_data: &x {keys: [*x]}}]", "the key set cannot be used"},
		{"plain HTTP", "clusters: [{name: a, issuer: i, jwks_uri: http://a}]", `keys are fetched over https only, not from "http://a"`},
		{"a password in the URL", "clusters: [{name: a, issuer: i, jwks_uri: https://u:p@a}]", "keys are fetched over https only"},
		{"discovery at an issuer that is no URL", "clusters: [{name: a, issuer: kubernetes/serviceaccount, keys: {discovery: {}}}]", "keys are fetched over https only"},
		{"a field twice", "clusters: [{name: a, name: b, issuer: i, jwks_uri: https://a}]", "clusters[0].name: the field is there twice"},
		{"a merge", "clusters: [{<<: {name: a}, issuer: i, jwks_uri: https://a}]", "clusters[0].<<: there is no such field"},
		{"a list for an object", "[]", "it must be an object"},
		{"two documents", "clusters: []\n---\nclusters: []", "more than one document"},
		{"no YAML", "clusters: [", "it is not valid YAML"},
		{"for all clusters with keys", "clusters: [{name: '*', issuer: i, jwks_uri: https://a}]", `the entry "*" is for clusters that publish their own`},
		{"for all clusters with pins", "clusters: [{name: '*', keys: {ocm: {}, pins: [a]}, allow: []}]", `the entry "*" is for clusters that publish their own`},
		{"for all clusters with a review", "clusters: [{name: '*', review: {mode: Always, kubeconfigFile: k}}]", `the entry "*" can have no review`},
		{"an issuer without end", "clusters: [{name: a, issuer: " + strings.Repeat("i", 3000) + ", jwks_uri: https://a}]", "issuer is longer than"},
		{"no audience", "clusters: [{name: c, keys: {ocm: {}}, allow: [{namespaces: [a], mapTo: same}]}]", "clusters[0].audiences: no audience is named"},
		{"an empty audience", cluster(`audiences: [""]`), "an empty audience means nothing"},
		{"a CA for nothing", "clusters: [{name: c, keys: {ocm: {}, caFile: x}}]", "only jwksURI and discovery connect to a server"},
		{"two CAs", "clusters: [{name: c, issuer: i, keys: {jwksURI: https://a, ca: x, caFile: y}}]", "ca and caFile exclude each other"},
		{"two credentials", "clusters: [{name: c, issuer: i, keys: {jwksURI: https://a, auth: {tokenFile: x, kubeconfigFile: y}}}]", "tokenFile and kubeconfigFile exclude each other"},
		{"pins that fit no key", "clusters: [{name: c, issuer: i, keys: {jwks: " + keys + ", pins: [x]}}]", "no key of the set is pinned (x)"},
		{"a review that is none", cluster("review: Often"), `the review mode "Often" is not one of`},
		{"a review without a credential", cluster("review: Cached"), "needs a kubeconfig file"},
		{"a duration without a unit", cluster("maxTokenAge: 5"), `clusters[0].maxTokenAge: "5" must be a duration`},
		{"a skew of an hour", cluster("clockSkew: 1h"), "clusters[0].clockSkew: 1h0m0s is more than 5m0s"},
		{"half a limit", cluster("limits: {identity: {burst: 1}}"), "a limit has perSecond and burst"},
		{"a limit that is no number", cluster("limits: {identity: {perSecond: NaN, burst: 1}}"), `"NaN" must be a number greater than 0`},
		{"legacy tokens by default", "defaults: {acceptLegacyTokens: true}\nclusters: []", "defaults.acceptLegacyTokens: there is no such field"},
		{"same without a list", cluster("allow: [{mapTo: same}]"), "clusters[0].allow[0].namespaces: mapTo: same needs a list of namespaces"},
		{"a target that is never open", cluster("allow: [{namespaces: [a], mapTo: {namespace: kube-system, name: b}}]"), "kube-system/b of the hub is denied"},
		{"an empty denial", "clusters: [{name: a, issuer: i, jwks_uri: https://a}]\ndeny: [{}]", "deny[0]: the rule denies nothing"},
		{"a number for a truth", cluster("acceptLegacyTokens: yes"), `"yes" must be true or false`},
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
// so this is the common case (tokens.md, fact 5).
func TestOneIssuerForTwoClusters(t *testing.T) {
	t.Parallel()
	got := parse(t, fmt.Sprintf("clusters:\n- {name: a, issuer: %[1]s, jwks_data: %[2]s}\n- {name: b, issuer: %[1]s, jwks_data: %[3]s}\n",
		issuer, keySet(t, "k"), keySet(t, "k")), config.Options{})
	if len(got.Clusters) != 2 {
		t.Errorf("%+v", got)
	}
}
