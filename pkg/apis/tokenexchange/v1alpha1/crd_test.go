package v1alpha1_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// object is a TokenExchangePolicy, or without a namespace the
// TokenExchangeDefaults, with a spec in YAML.
func object(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{Object: map[string]any{}}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	if fields != nil {
		out.Object["spec"] = fields
	}
	out.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("TokenExchangePolicy"))
	if namespace == "" {
		out.SetKind("TokenExchangeDefaults")
	}
	out.SetNamespace(namespace)
	out.SetName(name)
	return out
}

// modulus is that of a new RSA key.
func modulus(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(key.N.Bytes())
}

// TestTheAPIServerRefuses: what policy lint calls an error is never stored, as
// far as one object shows it.
func TestTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	hub, n := installed(t), modulus(t)
	rule := func(fields string) string { return "{audiences: [a], allow: [" + fields + "]}" }
	keys := func(fields string) string { return "{issuer: 'https://i', keys: " + fields + "}" }
	key := "{kty: RSA, kid: one, alg: RS256, use: sig, e: AQAB, 'n': " + n + "}"
	for name, tc := range map[string]struct{ spec, want string }{
		"no spec":                              {"", "spec"},
		"an unknown field":                     {"{alow: []}", "alow"},
		"keys without an issuer":               {"{keys: {discovery: {}}}", "keys need the issuer"},
		"no source of keys":                    {keys("{staleFor: 1h}"), "exactly one of jwks, jwksURI and discovery"},
		"two sources of keys":                  {keys("{discovery: {}, jwksURI: 'https://a'}"), "exactly one of jwks, jwksURI and discovery"},
		"a file":                               {keys("{jwksFile: /var/run/secrets/token}"), "jwksFile"},
		"a credential":                         {keys("{jwksURI: 'https://a', auth: {tokenFile: /var/run/secrets/token}}"), "auth"},
		"a review":                             {"{review: {mode: Always, kubeconfigFile: x}}", "review"},
		"keys over plain HTTP":                 {keys("{jwksURI: 'http://a'}"), "must be an https URL"},
		"a password in a URL":                  {keys("{jwksURI: 'https://u:p@a'}"), "must be an https URL"},
		"discovery over plain HTTP":            {keys("{discovery: {url: 'http://a'}}"), "must be an https URL"},
		"discovery at an issuer without a URL": {"{issuer: kubernetes/serviceaccount, keys: {discovery: {}}}", "needs an issuer that is an https URL"},
		"an issuer with a space":               {"{issuer: 'a b'}", "spec.issuer"},
		"no key":                               {keys("{jwks: {keys: []}}"), "keys"},
		"a symmetric key":                      {keys("{jwks: {keys: [{kty: oct, kid: k}]}}"), "kty"},
		"half a key":                           {keys("{jwks: {keys: [{kty: RSA, kid: k, 'n': " + n + "}]}}"), "n and e"},
		"a weak key":                           {keys("{jwks: {keys: [{kty: RSA, kid: k, e: AQAB, 'n': abc}]}}"), "keys[0].n"},
		"an algorithm of another type":         {keys("{jwks: {keys: [{kty: RSA, kid: k, e: AQAB, alg: ES256, 'n': " + n + "}]}}"), "alg does not fit kty"},
		"a key without an ID":                  {keys("{jwks: {keys: [{kty: RSA, e: AQAB, 'n': " + n + "}]}}"), "kid"},
		"a CA for nothing":                     {keys("{jwks: {keys: [" + key + "]}, ca: '-----BEGIN CERTIFICATE-----'}"), "ca is for jwksURI and discovery"},
		"a CA that is none":                    {keys("{jwksURI: 'https://a', ca: x}"), "certificates in PEM"},
		"pins for inline keys":                 {keys("{jwks: {keys: [" + key + "]}, pins: [one]}"), "pins are for keys that are fetched"},
		"an empty pin":                         {keys("{jwksURI: 'https://a', pins: ['']}"), "pins"},
		"an empty audience":                    {"{audiences: ['']}", "audiences"},
		"a blank audience":                     {"{audiences: [' ']}", "audiences"},
		"a duration without a unit":            {"{maxTokenAge: '5'}", "maxTokenAge"},
		"a negative age":                       {"{maxTokenAge: -1h}", "maxTokenAge"},
		"a skew of an hour":                    {"{clockSkew: 1h}", "5m or less"},
		"half a limit":                         {"{limits: {identity: {burst: 1}}}", "perSecond"},
		"a limit of none":                      {"{limits: {identity: {burst: 0, perSecond: 1}}}", "burst"},
		"no mapping":                           {rule("{namespaces: [a]}"), "mapTo"},
		"half a mapping":                       {rule("{namespaces: [a], mapTo: {namespace: a}}"), "mapTo.name"},
		"an unknown placeholder":               {rule("{mapTo: {namespace: a, name: '{pod}'}}"), "mapTo.name"},
		"a brace without its partner":          {rule("{mapTo: {namespace: a, name: '{name'}}"), "mapTo.name"},
		"a namespace that is none":             {rule("{mapTo: {namespace: 'a.{name}', name: b}}"), "mapTo.namespace"},
		"a namespace with a dash at its end":   {rule("{mapTo: {namespace: 'a-', name: b}}"), "valid namespace"},
		"a name with two dots":                 {rule("{mapTo: {namespace: a, name: 'b..c'}}"), "valid name"},
		"a pattern that matches nothing":       {rule("{namespaces: [A], mapTo: {namespace: a, name: b}}"), "namespaces[0]"},
		"an empty list":                        {rule("{namespaces: [], mapTo: {namespace: a, name: b}}"), "namespaces"},
		"a namespace that a name chooses":      {rule("{namespaces: [a], mapTo: {namespace: '{name}', name: b}}"), "list target.namespaces"},
		"a namespace that the cluster chooses": {rule("{mapTo: {namespace: '{namespace}', name: b}}"), "chooses the namespace of the hub"},
		"the same with a star":                 {rule("{namespaces: ['*'], mapTo: {namespace: '{namespace}', name: b}}"), "chooses the namespace of the hub"},
		"a target with a star":                 {rule("{mapTo: {namespace: '{namespace}', name: b}, target: {namespaces: ['*']}}"), "target.namespaces[0]"},
		"a bound of stars":                     {rule("{mapTo: {namespace: '{namespace}', name: b}, target: {namespaces: ['*-*']}}"), "target.namespaces[0]"},
		"stars for names":                      {rule("{namespaces: ['**'], mapTo: {namespace: '{namespace}', name: b}}"), "namespaces[0]"},
		"two accounts that become one":         {rule("{namespaces: [a], mapTo: {namespace: t, name: '{namespace}-{name}'}}"), "put a dot between"},
		"a name that is used twice":            {rule("{namespaces: [a], mapTo: {namespace: t, name: '{name}.{namespace}.{name}'}}"), "use {name} once"},
		"kube-system":                          {rule("{namespaces: [a], mapTo: {namespace: kube-system, name: b}}"), "no rule may lead to"},
		"kube-system by its name":              {rule("{namespaces: [kube-system], mapTo: {namespace: '{namespace}', name: b}}"), "no rule may lead to"},
		"kube-* by a pattern":                  {rule("{namespaces: ['kube-*'], mapTo: {namespace: '{namespace}', name: b}}"), "no rule may lead to"},
		"the authorizer itself":                {rule("{namespaces: [a], mapTo: {namespace: open-cluster-management-hub, name: token-authorizer}}"), "no rule may lead to"},
		"a life of a minute":                   {rule("{namespaces: [a], mapTo: {namespace: t, name: b}, target: {expirationSeconds: 60}}"), "expirationSeconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, hub, object(t, "cluster1", v1alpha1.Name, tc.spec), tc.want)
		})
	}
	for name, tc := range map[string]struct{ namespace, name, spec, want string }{
		"a second policy":          {"cluster1", "more", "{}", "its name is default"},
		"second defaults":          {"", "more", "{}", "its name is default"},
		"an empty denial":          {"", v1alpha1.Name, "{deny: [{}]}", "name targetNamespaces or targetServiceAccounts"},
		"clusters that become one": {"", v1alpha1.Name, "{allow: [{namespaces: [a], mapTo: {namespace: t, name: '{cluster}-{namespace}'}}]}", "put a dot between"},
		"keys for all":             {"", v1alpha1.Name, "{keys: {discovery: {}}}", "keys"},
		"tokens of Secrets of all": {"", v1alpha1.Name, "{acceptLegacyTokens: true}", "acceptLegacyTokens"},
		"kube-system for all":      {"", v1alpha1.Name, "{allow: [{mapTo: {namespace: kube-system, name: '{cluster}'}}]}", "no rule may lead to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, hub, object(t, tc.namespace, tc.name, tc.spec), tc.want)
		})
	}
}

func refuses(t *testing.T, hub client.Client, o *unstructured.Unstructured, want string) {
	t.Helper()
	err := hub.Create(t.Context(), o, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestTheAPIServerTakes: no rule of the schema is stricter than is meant.
func TestTheAPIServerTakes(t *testing.T) {
	t.Parallel()
	hub := installed(t)
	keys := "{keys: [{kty: RSA, kid: one, alg: RS256, use: sig, e: AQAB, 'n': " + modulus(t) + "}]}"
	rule := "{namespaces: [app], serviceAccounts: [web], mapTo: {namespace: apps, name: web}}"
	for name, tc := range map[string]struct{ namespace, spec string }{
		"nothing":                   {"cluster1", "{}"},
		"inline keys":               {"cluster1", "{issuer: kubernetes/serviceaccount, keys: {jwks: " + keys + "}}"},
		"discovery":                 {"cluster1", "{issuer: 'https://i', keys: {discovery: {}, pins: [a], staleFor: 90m}}"},
		"discovery somewhere":       {"cluster1", "{issuer: i, keys: {discovery: {url: 'https://i/x'}, ca: '-----BEGIN CERTIFICATE-----'}}"},
		"a URL":                     {"cluster1", "{issuer: i, keys: {jwksURI: 'https://i:8443/openid/v1/jwks'}}"},
		"as many rules as may be":   {"cluster1", "{allow: [" + strings.Repeat(rule+", ", 63) + rule + "]}"},
		"a target by two templates": {"cluster1", "{allow: [{mapTo: {namespace: '{cluster}', name: '{namespace}.{name}'}}]}"},
		"all that a policy may say": {"cluster1", `{audiences: [a], maxTokenAge: 0s, clockSkew: 1m30s, requireBoundPod: true, acceptLegacyTokens: true,
			limits: {cluster: {perSecond: 1, burst: 2}, identity: {perSecond: 1, burst: 2}}, targetNamespaces: [a, 'b-*'],
			allow: [{namespaces: [app-*], serviceAccounts: [web, a.b], audiences: [b], requireBoundPod: true,
			mapTo: {namespace: '{cluster}-{namespace}', name: '{namespace}.{name}'}, target: {namespaces: [c1-*], audiences: [x], expirationSeconds: 600}}]}`},
		"defaults": {"", `{audiences: [a], requireBoundPod: true, deny: [{targetNamespaces: [x]}, {targetServiceAccounts: [default]}],
			allow: [{namespaces: [app], mapTo: {namespace: '{cluster}', name: '{namespace}.{name}'}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := hub.Create(t.Context(), object(t, tc.namespace, v1alpha1.Name, tc.spec), client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

// installed is a hub with the CRDs, asked as kubectl asks: an unknown field is an
// error.
func installed(t *testing.T) client.Client {
	t.Helper()
	admin := controlplane.Lease(t).Client(t)
	objs, err := manifests.RenderHubCRDs(manifests.Hub{Namespace: "open-cluster-management-hub"})
	var ours []*unstructured.Unstructured
	for _, o := range objs {
		if strings.HasSuffix(o.GetName(), "."+v1alpha1.GroupName) {
			ours = append(ours, o)
		}
	}
	installation.Some(t, admin, ours, err, installation.CRD)
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}}); err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(admin, metav1.FieldValidationStrict)
}

// TestStolenAuthorizerCredential: a file of the token authorizer, such as its own
// credential, cannot be named in an object, whoever writes it and however.
func TestStolenAuthorizerCredential(t *testing.T) {
	t.Parallel()
	hub := client.WithFieldValidation(installed(t), metav1.FieldValidationIgnore)
	o := object(t, "cluster1", v1alpha1.Name, `{issuer: 'https://i', review: {mode: Always, kubeconfigFile: /k}, keys: {jwksURI: 'https://attacker.example.com',
		caFile: /ca, auth: {tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token, kubeconfigFile: /k}}}`)
	if err := hub.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(o.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"issuer": "https://i", "keys": map[string]any{"jwksURI": "https://attacker.example.com"}}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}
