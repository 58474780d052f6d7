package v1alpha1_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestAnOwnerEditsTheRulesOfOneClusterOnly: whoever has the editor role in the
// namespace of cluster1 cannot become what other clusters' workloads may become,
// cannot have other keys trusted, and cannot touch another cluster's rules.
func TestAnOwnerEditsTheRulesOfOneClusterOnly(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	for _, name := range []string{"cluster1", "cluster2"} {
		installation.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	installation.Create(t, admin, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "owner"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "open-cluster-management:token-exchange-policy-editor"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "owner"}},
	})
	as := rest.CopyConfig(cp.Config(t))
	as.Impersonate = rest.ImpersonationConfig{UserName: "owner", Groups: []string{"system:authenticated"}}
	owner := cp.ClientFor(t, as)

	far := "{allow: [{namespaces: [app], mapTo: {namespace: cluster2-apps, name: admin}}]}"
	await.Condition(t, time.Minute, "the policy is in force", func(ctx context.Context) (bool, error) {
		err := owner.Create(ctx, object(t, "cluster1", v1alpha1.Name, far), client.DryRunAll)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may lead rules to the namespace cluster1"), nil
	})
	forbidden := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	home := "{audiences: [a], allow: [{namespaces: [app], mapTo: {namespace: cluster1, name: app.web}}, {mapTo: {namespace: '{cluster}', name: '{namespace}.{name}'}}]}"
	forbidden("another cluster's rules", owner.Create(t.Context(), object(t, "cluster2", v1alpha1.Name, home)))
	forbidden("the defaults", owner.Create(t.Context(), object(t, "", v1alpha1.Name, "{}")))
	forbidden("keys", owner.Create(t.Context(), object(t, "cluster1", v1alpha1.Name, "{issuer: 'https://i', keys: {discovery: {}}}")))
	forbidden("an issuer", owner.Create(t.Context(), object(t, "cluster1", v1alpha1.Name, "{issuer: 'https://i'}")))
	forbidden("a bound of one's own", owner.Create(t.Context(), object(t, "cluster1", v1alpha1.Name, "{targetNamespaces: [cluster2-apps]}")))
	forbidden("limits", owner.Create(t.Context(), object(t, "cluster1", v1alpha1.Name, "{limits: {cluster: {perSecond: 1, burst: 1}}}")))
	forbidden("Secrets' tokens", owner.Create(t.Context(), object(t, "cluster1", v1alpha1.Name, "{acceptLegacyTokens: true}")))
	if err := owner.Create(t.Context(), object(t, "cluster1", v1alpha1.Name, home)); err != nil {
		t.Fatal(err)
	}

	t.Log("An administrator's rule may stay, and may not be changed.")
	write := func(c client.Client, spec string) error {
		o := object(t, "cluster1", v1alpha1.Name, spec)
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(o.GroupVersionKind())
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), current); err != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion(current.GetResourceVersion())
		return c.Update(t.Context(), o)
	}
	given := "{namespaces: [app], mapTo: {namespace: shared, name: reader}}"
	if err := write(admin, "{issuer: 'https://i', allow: ["+given+"]}"); err != nil {
		t.Fatal(err)
	}
	if err := write(owner, "{issuer: 'https://i', allow: [{namespaces: [b], mapTo: {namespace: cluster1, name: x}}, "+given+"]}"); err != nil {
		t.Error(err)
	}
	forbidden("a wider rule", write(owner, "{issuer: 'https://i', allow: [{mapTo: {namespace: shared, name: reader}}]}"))
	forbidden("without the issuer", write(owner, "{allow: ["+given+"]}"))
	forbidden("its deletion", owner.Delete(t.Context(), object(t, "cluster1", v1alpha1.Name, "{}")))

	t.Log("While that rule leads elsewhere, nothing that it counts on is loosened.")
	strict := "issuer: 'https://i', audiences: [a], maxTokenAge: 10m, clockSkew: 1s, requireBoundPod: true, allow: [" + given + "]"
	if err := write(admin, "{"+strict+"}"); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"more audiences": {"audiences: [a]", "audiences: [a, b]"}, "any audience": {"audiences: [a], ", ""},
		"older tokens": {"maxTokenAge: 10m", "maxTokenAge: 0s"}, "other clocks": {"clockSkew: 1s", "clockSkew: 5m"},
		"tokens without a Pod": {"requireBoundPod: true", "requireBoundPod: false"}, "the default of Pods": {"requireBoundPod: true, ", ""},
	} {
		forbidden(what, write(owner, "{"+strings.Replace(strict, change[0], change[1], 1)+"}"))
	}
	if err := write(owner, "{"+strings.Replace(strict, given, given+", {mapTo: {namespace: cluster1, name: other}}", 1)+"}"); err != nil {
		t.Error(err)
	}
	if err := write(admin, "{audiences: [a], allow: []}"); err != nil {
		t.Fatal(err)
	}
	if err := write(owner, "{audiences: [b], maxTokenAge: 2h, allow: []}"); err != nil {
		t.Errorf("of rules that lead nowhere else: %v", err)
	}

	t.Log("Within a bound that an administrator sets the rules are the owner's.")
	if err := write(admin, "{targetNamespaces: [cluster1-*]}"); err != nil {
		t.Fatal(err)
	}
	if err := write(owner, "{targetNamespaces: [cluster1-*], allow: [{namespaces: [app], mapTo: {namespace: cluster1-apps, name: x}}]}"); err != nil {
		t.Error(err)
	}
	forbidden("other audiences of what the bound allows", write(owner, "{targetNamespaces: [cluster1-*], audiences: [b]}"))
	if err := write(owner, "{targetNamespaces: [cluster1-*]}"); err != nil {
		t.Errorf("without rules: %v", err)
	}
	forbidden("other audiences before the rules come back", write(owner, "{targetNamespaces: [cluster1-*], maxTokenAge: 0s}"))
	forbidden("a wider bound", write(owner, "{targetNamespaces: [cluster1-*, cluster2-*]}"))
	forbidden("no bound", write(owner, "{}"))
}
