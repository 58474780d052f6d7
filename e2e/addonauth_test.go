package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestAddOnAuth is the walk of docs/guides/addons.md: an add-on author gets an identity
// on the hub that nobody approves, sees it, gives it permissions, replaces it
// and cleans up.
func TestAddOnAuth(t *testing.T) {
	t.Parallel()
	const cluster, name = "cluster2", "e2e-walk"
	hub := fleet.client(t, "hub")
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	if err := hub.Create(t.Context(), addOn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), addOn) })
	base := client.MergeFrom(addOn.DeepCopy())
	addOn.Status.Registrations = []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient}}
	if err := hub.Status().Patch(t.Context(), addOn, base); err != nil {
		t.Fatal(err)
	}
	status := []string{"addon-auth", "status", "--context", "hub", "--cluster", cluster, "--addon", name, "-o", "json"}
	eventually(t, "the add-on gets a token", func(context.Context) error {
		var list struct {
			Items []struct{ State, Driver, User, Expires, Refreshed, Reason string }
		}
		if err := json.Unmarshal([]byte(fleet.must(t, status...)), &list); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].State != "Ready" || list.Items[0].Refreshed == "" || list.Items[0].Expires == "" {
			return fmt.Errorf("status %+v", list.Items)
		}
		return nil
	})

	// It may do what was bound to it, in its cluster's namespace only.
	me := newClient(t, tokenConfig(t, cluster, name))
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	if err := me.Create(t.Context(), mine.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Fatalf("without permissions: %v", err)
	}
	manifest := fleet.must(t, "addon-auth", "rbac", "--context", "hub", "--addon", name, "--cluster", cluster,
		"--rule", "create:configmaps", "--rule", "get,delete:configmaps:"+name)
	for _, obj := range parse(t, manifest[strings.Index(manifest, "---\n"):]) {
		if err := hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), obj) })
	}
	eventually(t, "the permissions hold", func(ctx context.Context) error { return client.IgnoreAlreadyExists(me.Create(ctx, mine.DeepCopy())) })
	t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), mine) })
	if err := me.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}); !apierrors.IsForbidden(err) {
		t.Errorf("another ConfigMap: %v", err)
	}
	if err := me.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name}}); !apierrors.IsForbidden(err) {
		t.Errorf("another cluster's namespace: %v", err)
	}

	// A new token, at once, that works as the old one did.
	before := tokenConfig(t, cluster, name).BearerToken
	fleet.must(t, "addon-auth", "rotate", "--context", "hub", "--addon", name, "--cluster", cluster, "--wait")
	after := tokenConfig(t, cluster, name)
	if after.BearerToken == before {
		t.Error("the token is the old one")
	}
	if err := newClient(t, after).Get(t.Context(), client.ObjectKeyFromObject(mine), &corev1.ConfigMap{}); err != nil {
		t.Errorf("with the new token: %v", err)
	}
	orphans(t, hub, cluster, name)
}

// orphans makes what an add-on's agent of another release left behind, and
// removes it, and nothing else.
func orphans(t *testing.T, hub client.Client, cluster, name string) {
	t.Helper()
	labels := map[string]string{names.LabelAddOnTokenName: name, names.LabelTokenInfrastructure: "true"}
	other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name + "-somebody", Labels: labels}}
	if err := hub.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), other) })
	fleet.must(t, "addon-auth", "gc", "--context", "hub", "--cluster", cluster, "--addon", name, "--yes")
	var accounts corev1.ServiceAccountList
	if err := hub.List(t.Context(), &accounts, client.InNamespace(cluster), client.MatchingLabels{names.LabelAddOnTokenName: name}); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for i := range accounts.Items {
		found[accounts.Items[i].Name] = true
	}
	if !found[other.Name] || !found[names.AddOnServiceAccount(cluster, name)] {
		t.Errorf("gc left %v", found)
	}
	var addOn addonv1beta1.ManagedClusterAddOn
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: name}, &addOn); err != nil {
		t.Fatal(err)
	}
	if err := hub.Delete(t.Context(), &addOn); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left of the add-on", func(ctx context.Context) error {
		var account corev1.ServiceAccount
		err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: names.AddOnServiceAccount(cluster, name)}, &account)
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("its ServiceAccount is there"), err)
		}
		err = fleet.client(t, cluster).Get(ctx, client.ObjectKey{Namespace: names.AddOnNamespace, Name: names.AddOnHubKubeconfigSecret(name)}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("its Secret is there"), err)
		}
		return nil
	})
}

// tokenConfig is the connection to the hub that an add-on with a token has.
func tokenConfig(t *testing.T, cluster, addOn string) *rest.Config {
	t.Helper()
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: names.AddOnNamespace, Name: names.AddOnHubKubeconfigSecret(addOn)}
	if err := fleet.client(t, cluster).Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	hub := fleet.config(t, "hub")
	return &rest.Config{
		Host: hub.Host, QPS: -1, BearerToken: string(secret.Data[names.KeyToken]),
		TLSClientConfig: rest.TLSClientConfig{CAData: hub.CAData},
	}
}
