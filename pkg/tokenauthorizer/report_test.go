package tokenauthorizer_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	realclock "k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// TestReplicasCountTogetherAndWriteSeldom: the counts of two replicas add up, an
// object is written when there is something new and no more often than every few
// minutes, and one round writes few objects.
func TestReplicasCountTogetherAndWriteSeldom(t *testing.T) {
	t.Parallel()
	plane := controlplane.Lease(t) // Other tests' roles write conditions, and a report that meets one waits for its next turn.
	admin := plane.Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	rights := plane.ClientFor(t, plane.ConfigForAccount(t, names.HubNamespace, names.TokenAuthorizer))
	clock := clocktesting.NewFakeClock(realclock.RealClock{}.Now())
	one, two := tokenauthorizer.NewReporter(rights, clock), tokenauthorizer.NewReporter(rights, clock)
	clusters := make([]string, tokenauthorizer.MaxReports+5)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("counted-%02d-%d", i, clock.Now().UnixNano())
		installation.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusters[i]}}, exchangePolicy(clusters[i]))
	}
	get := func(cluster string) *v1alpha1.TokenExchangePolicy {
		t.Helper()
		p := exchangePolicy(cluster)
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	counts := func(cluster string, allowed, denied int64) {
		t.Helper()
		if d := get(cluster).Status.Decisions; d == nil || d.Allowed != allowed || d.Denied != denied {
			t.Errorf("%s: %+v, want %d and %d", cluster, d, allowed, denied)
		}
	}
	first := clusters[0]
	one.Count(first, nil)
	one.Count(first, nil)
	one.Count(first, denial.New(denial.HubUnavailable, "no decision"))
	one.Flush(t.Context())
	counts(first, 2, 0)
	two.Count(first, denial.New(denial.NotAllowed, "a decision"))
	two.Flush(t.Context())
	counts(first, 2, 0) // It is not due yet.
	clock.Step(tokenauthorizer.ReportEvery)
	two.Flush(t.Context())
	counts(first, 2, 1)

	before := get(first).ResourceVersion
	clock.Step(tokenauthorizer.ReportEvery)
	one.Flush(t.Context())
	two.Flush(t.Context())
	if after := get(first).ResourceVersion; after != before {
		t.Error("it was written though nothing was decided")
	}

	for _, cluster := range clusters {
		one.Count(cluster, nil)
	}
	one.Count("without-an-object", nil)
	reported := func() (n int) {
		for _, cluster := range clusters[1:] {
			if get(cluster).Status.Decisions != nil {
				n++
			}
		}
		return n
	}
	one.Flush(t.Context())
	if n := reported(); n != tokenauthorizer.MaxReports { // The first one had its turn.
		t.Errorf("one round reported %d new objects, want %d", n, tokenauthorizer.MaxReports)
	}
	one.Flush(t.Context())
	if n := reported(); n != len(clusters)-1 {
		t.Errorf("two rounds reported %d of %d", n, len(clusters)-1)
	}
	counts(first, 3, 1)

	// All are always due, and still each has its turn.
	for range 2 {
		clock.Step(tokenauthorizer.ReportEvery)
		for _, cluster := range clusters {
			one.Count(cluster, nil)
		}
		one.Flush(t.Context())
	}
	for _, cluster := range clusters[1:] {
		if d := get(cluster).Status.Decisions; d.Allowed < 2 {
			t.Errorf("%s had no turn: %+v", cluster, d)
		}
	}
}
