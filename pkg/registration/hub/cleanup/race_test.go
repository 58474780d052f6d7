package cleanup_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/cleanup"
)

// TestAClusterThatIsAcceptedMeanwhileStays: the clean-up deletes what it has
// read, so a cluster that changes before the deletion is left alone.
func TestAClusterThatIsAcceptedMeanwhileStays(t *testing.T) {
	t.Parallel()
	since := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	denied := func(name string) *clusterv1.ManagedCluster {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cluster.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionFalse,
			Reason: names.ReasonHubDenied, LastTransitionTime: metav1.NewTime(since),
		}}
		return cluster
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(denied("back"), denied("left")).
		WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if o.GetName() == "back" { // A person is faster.
					accept := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hubAcceptsClient":true}}`))
					if err := c.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "back"}}, accept); err != nil {
						return err
					}
				}
				return c.Delete(ctx, o, opts...)
			},
		}).Build()
	var out bytes.Buffer
	if err := cleanup.Run(t.Context(), hub, cleanup.Options{DeniedFor: time.Hour}, since.Add(2*time.Hour), &out); err != nil {
		t.Fatal(err)
	}
	var clusters clusterv1.ManagedClusterList
	if err := hub.List(t.Context(), &clusters); err != nil {
		t.Fatal(err)
	}
	if len(clusters.Items) != 1 || clusters.Items[0].Name != "back" || !clusters.Items[0].Spec.HubAcceptsClient {
		t.Errorf("left: %+v", clusters.Items)
	}
	if !strings.Contains(out.String(), "managedcluster/back skipped") || !strings.Contains(out.String(), "1 orphaned") {
		t.Errorf("it says %q", out.String())
	}
}
