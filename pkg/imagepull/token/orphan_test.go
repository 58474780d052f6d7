package token_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestOrphans: the pull secret of a ServiceAccount that is gone is deleted, and no
// Secret of which that is not certain.
func TestOrphans(t *testing.T) {
	t.Parallel()
	gone := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: "app-pull-1", UID: "s1",
				Labels:          map[string]string{names.LabelManagedBy: names.ManagedByImagePull},
				Annotations:     map[string]string{names.AnnotationPullSecretAccount: "app"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: "app", UID: "a1"}},
			},
			Type: corev1.SecretTypeDockerConfigJson,
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*corev1.Secret)
		// cached and live are the UIDs of the ServiceAccount; empty means none.
		cached, live types.UID
		deleted      bool
	}{
		{name: "without its ServiceAccount it is deleted", deleted: true},
		{name: "with a recreated ServiceAccount it is deleted", cached: "a2", live: "a2", deleted: true},
		{name: "a cache that is behind deletes nothing", live: "a1"},
		{name: "without our label it is not ours", change: func(s *corev1.Secret) { s.Labels = nil }},
		{name: "without the annotation it is not ours", change: func(s *corev1.Secret) { s.Annotations = nil }},
		{name: "without the owner it is not ours", change: func(s *corev1.Secret) { s.OwnerReferences = nil }},
		{name: "of another type it is not ours", change: func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			secret := gone()
			if tc.change != nil {
				tc.change(secret)
			}
			cached := cluster(tc.cached, secret)
			r := &token.Reconciler{
				Client: cached, Live: cluster(tc.live), Form: owner.Generic(), Metrics: token.NewMetrics(prometheus.NewRegistry()), Hosts: noHosts{},
				Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
			}
			key := client.ObjectKeyFromObject(secret)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			err := cached.Get(t.Context(), key, &corev1.Secret{})
			if client.IgnoreNotFound(err) != nil || (err != nil) != tc.deleted {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// cluster is one with a ServiceAccount, unless its UID is empty.
func cluster(account types.UID, objects ...client.Object) client.Client {
	if account != "" {
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "app", UID: account}})
	}
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
}

type noHosts struct{}

// List implements token.Hosts.
func (noHosts) List() []content.Host { return nil }
