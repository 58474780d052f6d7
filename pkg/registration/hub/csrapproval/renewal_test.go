package csrapproval_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/csrapproval"
)

// renewal is a CSR that the agent of cluster c1 made for its own identity.
func renewal(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, _, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	user, groups := names.AgentUser("c1", "a1"), []string{names.ClusterGroup("c1"), names.GroupManagedClusters}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-x", Labels: map[string]string{names.LabelClusterName: "c1"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pemutil.EncodeRequest(der), SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: csr.Usages(),
			Username: user, Groups: groups,
		},
	}
}

// TestWhoMayRenew: the renewal of a requester is approved only when the hub's
// authorizers allow it and the cluster is one that the hub accepts, by its word
// and by what it has made of it, and that stays.
func TestWhoMayRenew(t *testing.T) {
	t.Parallel()
	yes := authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name     string
		review   authorizationv1.SubjectAccessReviewStatus
		change   func(*clusterv1.ManagedCluster)
		agent    string
		approved bool
		again    bool
	}{
		{name: "an accepted agent", review: yes, approved: true},
		{name: "one without the right", again: true},
		{name: "one that another replaced", review: yes, agent: "a2", again: true},
		{name: "one that was never recorded", review: yes, agent: "-", again: true},
		{name: "one that an authorizer denies", review: authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, again: true},
		{name: "a cluster that leaves", review: yes, change: func(c *clusterv1.ManagedCluster) {
			deleted := metav1.NewTime(now)
			c.DeletionTimestamp, c.Finalizers = &deleted, []string{names.FinalizerRegistration}
		}},
		{name: "a denied cluster of which the condition lags", review: yes, change: func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }},
		{name: "a cluster on the way to be accepted", review: yes, change: func(c *clusterv1.ManagedCluster) { c.Status.Conditions = nil }},
		{name: "no cluster", review: yes, change: func(c *clusterv1.ManagedCluster) { c.Name = "c2" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			cluster.Spec.HubAcceptsClient = true
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue}}
			if tc.change != nil {
				tc.change(cluster)
			}
			object := renewal(t)
			role := names.ManagedClusterClusterRole("c1")
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			}
			if tc.agent != "-" {
				binding.Annotations = map[string]string{names.AnnotationAcceptedAgent: cmp.Or(tc.agent, "a1")}
			}
			var reviewed authorizationv1.SubjectAccessReviewSpec
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster, object, binding).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					if review, ok := o.(*authorizationv1.SubjectAccessReview); ok {
						reviewed, review.Status = review.Spec, tc.review
					}
					return nil
				},
			}).Build()
			r := &csrapproval.Reconciler{Client: hub, Events: events.NewFakeRecorder(10)}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: object.Name}})
			if err != nil || (result.RequeueAfter > 0) != tc.again {
				t.Errorf("got %+v, %v", result, err)
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if approved := len(object.Status.Conditions) == 1 && object.Status.Conditions[0].Type == certificatesv1.CertificateApproved; approved != tc.approved {
				t.Errorf("conditions %+v", object.Status.Conditions)
			}
			// Who asks is what the API server says, what for is the cluster's renewal.
			if tc.approved && (reviewed.User != object.Spec.Username || reviewed.ResourceAttributes.Verb != "renew" || reviewed.ResourceAttributes.Name != "c1") {
				t.Errorf("the review was about %+v", reviewed)
			}
		})
	}
}
