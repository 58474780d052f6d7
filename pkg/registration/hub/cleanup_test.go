package hub_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/cleanup"
)

// TestCleanup is here because the conditions that package cleanup goes by are those of
// the running hub.
func TestCleanup(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)
	e.bare(t, "waiting")
	for _, name := range []string{"accepted", "left", "back"} {
		e.cluster(t, name, acceptedFromTheStart)
		e.awaitAccepted(t, name)
	}
	for _, name := range []string{"left", "back"} {
		e.deny(t, name)
	}
	e.accept(t, "back")
	e.awaitAccepted(t, "back")

	denied := e.get(t.Context(), t, "left").Status.Conditions
	since := time.Time{}
	for _, c := range denied {
		if c.Type == clusterv1.ManagedClusterConditionHubAccepted {
			since = c.LastTransitionTime.Time
		}
	}
	run := func(after time.Duration, dryRun bool) string {
		t.Helper()
		var out bytes.Buffer
		opts := cleanup.Options{DeniedFor: 24 * time.Hour, DryRun: dryRun}
		if err := cleanup.Run(t.Context(), e.admin, opts, since.Add(after), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, tc := range []struct {
		after  time.Duration
		dryRun bool
		want   string
	}{
		{23 * time.Hour, false, "0 orphaned\n"},
		{25 * time.Hour, true, "managedcluster/left would be deleted: denied for 25h0m0s\n1 orphaned\n"},
		{25 * time.Hour, false, "managedcluster/left deleted: denied for 25h0m0s\n1 orphaned\n"},
	} {
		if diff := cmp.Diff(tc.want, run(tc.after, tc.dryRun)); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", tc.after, diff)
		}
	}
	e.awaitGone(t, e.named("left"))
	for _, name := range []string{"waiting", "accepted", "back"} {
		if err := e.admin.Get(t.Context(), client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}); apierrors.IsNotFound(err) {
			t.Errorf("%s is gone", name)
		}
	}
}
