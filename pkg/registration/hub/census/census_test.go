package census_test

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/census"
)

// cluster returns one with conditions, given as type, status and reason.
func cluster(name string, accepted bool, conditions ...[3]string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.HubAcceptsClient = accepted
	for _, condition := range conditions {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: condition[0], Status: metav1.ConditionStatus(condition[1]), Reason: condition[2],
		})
	}
	return c
}

var (
	accepted  = [3]string{clusterv1.ManagedClusterConditionHubAccepted, "True", ""}
	denied    = [3]string{clusterv1.ManagedClusterConditionHubAccepted, "False", ""}
	joined    = [3]string{clusterv1.ManagedClusterConditionJoined, "True", ""}
	available = [3]string{clusterv1.ManagedClusterConditionAvailable, "True", ""}
	down      = [3]string{clusterv1.ManagedClusterConditionAvailable, "False", ""}
	silent    = [3]string{clusterv1.ManagedClusterConditionAvailable, "Unknown", ""}
	late      = [3]string{names.ConditionLeaseOverdue, "True", names.ReasonLeaseNotRenewed}
	punctual  = [3]string{names.ConditionLeaseOverdue, "False", names.ReasonLeaseRenewed}
	ending    = [3]string{names.ConditionCredentialOverdue, "True", names.ReasonCredentialEnding}
	expired   = [3]string{names.ConditionCredentialOverdue, "True", names.ReasonCredentialExpired}
	renewed   = [3]string{names.ConditionCredentialOverdue, "False", names.ReasonCredentialRenewed}
)

func examples() map[census.State][]*clusterv1.ManagedCluster {
	deleting := cluster("deleting", true, accepted, joined, available, expired)
	deleting.DeletionTimestamp, deleting.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"a/b"}
	return map[census.State][]*clusterv1.ManagedCluster{
		census.Deleting:    {deleting},
		census.Denied:      {cluster("denied", false, denied, joined, silent, expired)},
		census.Pending:     {cluster("pending", false)},
		census.Joining:     {cluster("new", true), cluster("accepted", true, accepted), cluster("joined", true, accepted, joined)},
		census.Expired:     {cluster("expired", true, accepted, joined, silent, expired, late)},
		census.Unknown:     {cluster("silent", true, accepted, joined, silent, ending, late)},
		census.Unavailable: {cluster("down", true, accepted, joined, down, late)},
		census.Overdue:     {cluster("late", true, accepted, joined, available, late), cluster("ending", true, accepted, joined, available, ending, punctual)},
		census.Ready:       {cluster("ready", true, accepted, joined, available), cluster("again", true, accepted, joined, available, punctual, renewed)},
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	all := examples()
	for _, state := range census.States() {
		if len(all[state]) == 0 {
			t.Errorf("no example of %s", state)
		}
		for _, c := range all[state] {
			if got := census.Of(c); got != state {
				t.Errorf("%s: %s, not %s", c.Name, got, state)
			}
		}
	}
}

func TestCollector(t *testing.T) {
	t.Parallel()
	builder := fake.NewClientBuilder().WithScheme(scheme.New())
	for _, clusters := range examples() {
		for _, c := range clusters {
			builder = builder.WithObjects(c)
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(census.Collector{Clusters: builder.Build()})
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "ocm_clusters" {
		t.Fatalf("%v: %v", families, err)
	}
	got := map[string]int{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = int(m.GetGauge().GetValue())
	}
	want := map[string]int{}
	for state, clusters := range examples() {
		want[string(state)] = len(clusters)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
