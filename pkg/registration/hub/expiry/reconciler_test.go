package expiry_test

import (
	"fmt"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/expiry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
)

// report is what an agent says of a certificate.
func report(cluster *clusterv1.ManagedCluster, from time.Time, life time.Duration) {
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: names.ConditionCertificateRotated, Status: metav1.ConditionTrue, Reason: names.ReasonCertificateUpdated,
		Message: fmt.Sprintf(names.MessageCertificateRotated, credential.Timestamp(from), credential.Timestamp(from.Add(life))),
	})
}

// TestCredentialOverdue follows a certificate that nobody renews to its end, and the next
// one. The tests with real agents are in e2e.
func TestCredentialOverdue(t *testing.T) {
	t.Parallel()
	const life = 100 * time.Hour
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	report(cluster, start, life)
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster).WithStatusSubresource(cluster).Build()
	clock := clocktesting.NewFakePassiveClock(start)
	r := &expiry.Reconciler{IdentityAnnotations: []string{drivertest.FakeAnnotation}, Client: c, Clock: clock, Recorder: event.Recorder{Events: events.NewFakeRecorder(100)}}
	look := func(after time.Duration, reason string, again time.Duration) string {
		t.Helper()
		clock.SetTime(start.Add(after))
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			t.Fatal(err)
		}
		var got metav1.Condition
		if found := apimeta.FindStatusCondition(cluster.Status.Conditions, names.ConditionCredentialOverdue); found != nil {
			got = *found
		}
		if got.Reason != reason || result.RequeueAfter != again {
			t.Errorf("after %s: %q, looks again after %s; not %q after %s", after, got.Reason, result.RequeueAfter, reason, again)
		}
		return cluster.ResourceVersion
	}
	before := look(0, "", 80*time.Hour+time.Minute)
	if after := look(80*time.Hour, "", time.Minute); after != before {
		t.Error("a certificate that is renewed in time costs a write")
	}
	overdue := look(80*time.Hour+time.Minute, names.ReasonCredentialNotRenewed, 10*time.Hour-time.Minute)
	if again := look(85*time.Hour, names.ReasonCredentialNotRenewed, 5*time.Hour); again != overdue {
		t.Error("a second look at one state costs a write")
	}
	look(90*time.Hour, names.ReasonCredentialEnding, 10*time.Hour)
	look(100*time.Hour, names.ReasonCredentialExpired, 0)
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: names.ConditionCertificateRotated, Status: metav1.ConditionFalse, Reason: names.ReasonCertificateFailed, Message: "no",
	})
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	look(101*time.Hour, names.ReasonCredentialExpired, 0)
	cluster.Annotations = map[string]string{drivertest.FakeAnnotation: "arn:aws:eks:eu-west-1:111111111111:cluster/c1"}
	if err := c.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	look(101*time.Hour, "", 0) // It registers with an IAM role now.
	cluster.Annotations = nil
	if err := c.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	look(101*time.Hour, "", 0)
	report(cluster, start.Add(101*time.Hour), life)
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	look(101*time.Hour, "", 80*time.Hour+time.Minute)
	look(190*time.Hour, names.ReasonCredentialNotRenewed, time.Hour)
	report(cluster, start.Add(190*time.Hour), life)
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	look(190*time.Hour, names.ReasonCredentialRenewed, 80*time.Hour+time.Minute)
}
