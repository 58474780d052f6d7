//go:build linux

package issuers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

const kubernetes = "https://kubernetes.default.svc.cluster.local"

// TestEverybodyDecidesAlike has a hub with clusters of every kind: the rule, the
// listing of issuers and the key store of the token authorizer, which
// exchange explain uses as well, agree about each.
func TestEverybodyDecidesAlike(t *testing.T) {
	t.Parallel()
	admin := controlplane.Lease(t).Client(t)
	installation.Hub(t, admin, manifests.Hub{})
	f := &fleet{admin: admin, keys: map[string]*issuer.Key{}}
	shared := issuer.NewKey(t, "ES256")
	f.add(t, keytrust.Cluster{Name: "good", Accepted: true, Joined: true}, nil)
	f.add(t, keytrust.Cluster{Name: "denied", Joined: true}, nil)
	f.add(t, keytrust.Cluster{Name: "early", Accepted: true}, nil)
	f.add(t, keytrust.Cluster{Name: "unproven", Accepted: true, Joined: true}, func(d map[string]string) { delete(d, names.IssuerKeyProofs) })
	f.add(t, keytrust.Cluster{Name: "broken", Accepted: true, Joined: true}, func(d map[string]string) { d[names.IssuerKeyIssuer] = "" })
	f.keys["one-of-two"], f.keys["two-of-two"] = shared, shared
	f.add(t, keytrust.Cluster{Name: "one-of-two", Accepted: true, Joined: true}, nil)
	f.add(t, keytrust.Cluster{Name: "two-of-two", Accepted: true, Joined: true}, nil)
	f.keys["copies"] = f.keys["good"]
	f.add(t, keytrust.Cluster{Name: "copies", Accepted: true, Joined: true}, func(d map[string]string) { d[names.IssuerKeyProofs] = f.keys["good"].Proof(t, kubernetes, "good", "x") })
	installation.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "stranger", Name: names.IssuerConfigMap},
		Data:       issuer.Published(t, kubernetes, "stranger", "", f.keys["good"]),
	})
	want := map[string]string{
		"good": "", "denied": names.ReasonClusterNotAccepted, "early": names.ReasonClusterNotJoined, "unproven": names.ReasonKeysUnproven,
		"broken": names.ReasonKeysInvalid, "one-of-two": names.ReasonKeysShared, "two-of-two": names.ReasonKeysShared, "copies": names.ReasonKeysUnproven,
	}

	list, err := issuers.Candidates(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	store := jwks.New(jwks.Config{Hub: true})
	if err := store.Configure([]jwks.Cluster{{Name: jwks.Everyone, Source: jwks.Source{Hub: true}}}, nil); err != nil {
		t.Fatal(err)
	}
	publishers := issuers.Publishers(list)
	for _, candidate := range list {
		got[candidate.Cluster.Name] = keytrust.Decide(candidate, publishers).Rejection.Reason
		_ = store.Observe(candidate)
	}
	store.HubSynced()
	if !maps.Equal(got, want) {
		t.Errorf("decided %v, want %v", got, want)
	}
	listed, err := issuers.Published(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range listed {
		reason := want[i.Cluster]
		if i.Trusted != (reason == "") || !i.Trusted && i.Reason != reason {
			t.Errorf("issuer list says of %s: %v, %s: %s", i.Cluster, i.Trusted, i.Reason, i.Message)
		}
	}
	for cluster, reason := range want {
		if counts := f.names(t.Context(), store, cluster) == ""; counts != (reason == "") {
			t.Errorf("the authorizer takes a token of %s: %v; %s", cluster, counts, f.names(t.Context(), store, cluster))
		}
	}
}

// TestConfiguredKeys: keys that are fetched are trusted when the token authorizer has them, and
// no key is of a cluster that the hub denies.
func TestConfiguredKeys(t *testing.T) {
	t.Parallel()
	admin := controlplane.Lease(t).Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	f := &fleet{admin: admin, keys: map[string]*issuer.Key{}}
	fetched := func(cluster string, accepted bool, keys *metav1.Condition) {
		t.Helper()
		f.add(t, keytrust.Cluster{Name: cluster, Accepted: accepted, Joined: true}, nil)
		p := &v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}}
		p.Spec.Issuer, p.Spec.Keys, p.Spec.Audiences = "https://"+cluster, &v1alpha1.Keys{JWKSURI: "https://" + cluster + "/keys"}, []string{"hub"}
		installation.Create(t, admin, p)
		if keys == nil {
			return
		}
		keys.Type, keys.LastTransitionTime = v1alpha1.ConditionKeysLoaded, metav1.Now()
		p.Status.Conditions = []metav1.Condition{*keys}
		if err := admin.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	fetched("loaded", true, &metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKeysLoaded, ObservedGeneration: 1})
	fetched("missing", true, &metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonKeysUnavailable, ObservedGeneration: 1})
	fetched("outdated", true, &metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKeysLoaded})
	fetched("new", true, nil)
	fetched("denied", false, &metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKeysLoaded, ObservedGeneration: 1})
	objects, err := tokenauthorizer.Objects(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	list, err := issuers.Gather(t.Context(), admin, config.FromHub(objects, config.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, i := range list {
		got[i.Cluster] = fmt.Sprintf("%t %s", i.Trusted, i.Reason)
	}
	want := map[string]string{
		"loaded": "true Loaded", "missing": "false KeysUnavailable", "outdated": "false NotLoaded", "new": "false NotLoaded",
		"denied": "false " + names.ReasonClusterNotAccepted,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// fleet is a hub with clusters, each with a key.
type fleet struct {
	admin client.Client
	keys  map[string]*issuer.Key
}

// add makes a cluster that publishes its key, which it has proven but for what
// spoil does.
func (f *fleet) add(t *testing.T, c keytrust.Cluster, spoil func(map[string]string)) {
	t.Helper()
	name := c.Name
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: c.Accepted}}
	installation.Create(t, f.admin, cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if c.Joined {
		cluster.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
		}}
		if err := f.admin.Status().Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	if f.keys[name] == nil {
		f.keys[name] = issuer.NewKey(t, "ES256")
	}
	data := issuer.Published(t, kubernetes, name, string(cluster.UID), f.keys[name])
	if spoil != nil {
		spoil(data)
	}
	installation.Create(t, f.admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: names.IssuerConfigMap}, Data: data})
}

// names returns why a token with a cluster's key is not that cluster's, empty if
// it is.
func (f *fleet) names(ctx context.Context, store *jwks.Store, cluster string) string {
	keys, err := store.Lookup(ctx, kubernetes, f.keys[cluster].ID)
	if refusal, ok := errors.AsType[*denial.Error](err); ok {
		return string(refusal.Reason)
	}
	if !slices.ContainsFunc(keys, func(k jwks.Key) bool { return k.Cluster == cluster }) {
		return fmt.Sprintf("it is of %+v", keys)
	}
	return ""
}
