package status_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
)

// facts is a managed cluster.
type facts struct {
	probe  status.Probe
	nodes  []corev1.Node
	claims []clusterv1.ManagedClusterClaim
}

func (f *facts) Health(context.Context) status.Probe          { return f.probe }
func (f *facts) Version(context.Context) string               { return "v1.36.3" }
func (f *facts) Nodes(context.Context) ([]corev1.Node, error) { return f.nodes, nil }
func (f *facts) Claims(context.Context) ([]clusterv1.ManagedClusterClaim, error) {
	return f.claims, nil
}

type fixture struct {
	facts      *facts
	clock      *testingclock.FakePassiveClock
	hub        client.Client
	patches    int
	reconciler *status.Reconciler
	condition  *metav1.Condition
}

func newFixture(t *testing.T, conditions ...metav1.Condition) *fixture {
	t.Helper()
	f := &fixture{
		facts: &facts{probe: status.Probe{Code: 200}},
		clock: testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	for _, c := range conditions {
		apimeta.SetStatusCondition(&cluster.Status.Conditions, c)
	}
	f.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster).WithStatusSubresource(cluster).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				f.patches++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	f.reconciler = &status.Reconciler{
		Client: f.hub, Clock: f.clock, Sources: f.facts, Period: time.Minute,
		Credential: func() *metav1.Condition { return f.condition },
	}
	return f
}

func accepted() metav1.Condition {
	return metav1.Condition{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue, Reason: names.ReasonHubAccepted}
}

func (f *fixture) reconcile(t *testing.T) (clusterv1.ManagedClusterStatus, ctrl.Result) {
	t.Helper()
	result, err := f.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	if err != nil {
		t.Fatal(err)
	}
	var cluster clusterv1.ManagedCluster
	if err := f.hub.Get(t.Context(), client.ObjectKey{Name: "c1"}, &cluster); err != nil {
		t.Fatal(err)
	}
	return cluster.Status, result
}

func TestSaysNothingUnlessAcceptedAndInTime(t *testing.T) {
	t.Parallel()
	for name, conditions := range map[string][]metav1.Condition{
		"not accepted": nil,
		"denied":       {{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionFalse, Reason: names.ReasonHubDenied}},
		"clock":        {accepted(), {Type: clusterv1.ManagedClusterConditionClockSynced, Status: metav1.ConditionFalse, Reason: names.ReasonClockOutOfSync}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, conditions...)
			if _, result := f.reconcile(t); f.patches != 0 || result.RequeueAfter != 0 {
				t.Errorf("%d patches, again after %v", f.patches, result.RequeueAfter)
			}
		})
	}
}

func TestOnePatchThenSilence(t *testing.T) {
	t.Parallel()
	f := newFixture(t, accepted())
	f.facts.claims = []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}}
	f.facts.nodes = []corev1.Node{{Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}, Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	f.condition = &metav1.Condition{Type: names.ConditionCertificateRotated, Status: metav1.ConditionTrue, Reason: names.ReasonCertificateUpdated, Message: "m"}
	got, result := f.reconcile(t)
	for _, typ := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable, names.ConditionCertificateRotated} {
		if !apimeta.IsStatusConditionTrue(got.Conditions, typ) {
			t.Errorf("%s is not True", typ)
		}
	}
	if f.patches != 1 || result.RequeueAfter != time.Minute || got.Version.Kubernetes != "v1.36.3" {
		t.Errorf("%d patches, again after %v, version %q", f.patches, result.RequeueAfter, got.Version.Kubernetes)
	}
	for range 3 {
		f.clock.SetTime(f.clock.Now().Add(time.Minute))
		if again, _ := f.reconcile(t); f.patches != 1 {
			t.Fatalf("nothing changed and it wrote (-before +after)\n%s", cmp.Diff(got, again))
		}
	}
	f.facts.nodes = append(f.facts.nodes, f.facts.nodes[0])
	f.facts.nodes[1].Spec.Unschedulable = true
	got, _ = f.reconcile(t)
	capacity, allocatable := got.Capacity[clusterv1.ResourceCPU], got.Allocatable[clusterv1.ResourceCPU]
	if capacity.String() != "3" || allocatable.String() != "1" || f.patches != 2 {
		t.Errorf("capacity %v, allocatable %v, %d patches", capacity.String(), allocatable.String(), f.patches)
	}
}

func TestForeignCapacityStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t, accepted())
	var cluster clusterv1.ManagedCluster
	if err := f.hub.Get(t.Context(), client.ObjectKey{Name: "c1"}, &cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Status.Capacity = clusterv1.ResourceList{"sockets": resource.MustParse("2")}
	if err := f.hub.Status().Update(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
	f.facts.nodes = []corev1.Node{{Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	got, _ := f.reconcile(t)
	if sockets := got.Capacity["sockets"]; sockets.Value() != 2 || len(got.Capacity) != 2 {
		t.Errorf("capacity %v", got.Capacity)
	}
}

func TestOutageHasAGrace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, accepted())
	available := func() metav1.ConditionStatus {
		got, _ := f.reconcile(t)
		if c := apimeta.FindStatusCondition(got.Conditions, clusterv1.ManagedClusterConditionAvailable); c != nil {
			return c.Status
		}
		return ""
	}
	if got := available(); got != metav1.ConditionTrue {
		t.Fatalf("available %q", got)
	}
	f.facts.probe = status.Probe{Code: 500, Err: errors.New("etcd is gone")}
	for range 4 {
		if got := available(); got != metav1.ConditionTrue {
			t.Fatalf("within the grace it is %q", got)
		}
		_, result := f.reconcile(t)
		f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
		if result.RequeueAfter != 5*time.Second {
			t.Fatalf("it looks again after %v", result.RequeueAfter)
		}
	}
	got, _ := f.reconcile(t)
	c := apimeta.FindStatusCondition(got.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if c.Status != metav1.ConditionFalse || c.Reason != names.ReasonAPIServerUnavailable || c.Message != "The kube-apiserver is not ok, status code: 500, etcd is gone" {
		t.Errorf("after the grace: %+v", c)
	}
	f.facts.probe = status.Probe{Code: 200}
	if got := available(); got != metav1.ConditionTrue {
		t.Errorf("after the outage it is %q", got)
	}
}

func TestLabelsAreNoReasonToLook(t *testing.T) {
	t.Parallel()
	before := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", ResourceVersion: "1"}}
	labelled := before.DeepCopy()
	labelled.ResourceVersion, labelled.Labels = "2", map[string]string{"feature.open-cluster-management.io/addon-a": "available"}
	accept := before.DeepCopy()
	accept.Status.Conditions = []metav1.Condition{accepted()}
	for name, tc := range map[string]struct {
		after *clusterv1.ManagedCluster
		want  bool
	}{"a label": {after: labelled}, "acceptance": {after: accept, want: true}} {
		if got := status.ChangesStatus(before, tc.after); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
