package replicaset_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	binary = "../../bin/kubectl-ocm"
	user   = "system:serviceaccount:" + names.HubNamespace + ":" + names.HubRegistrationServiceAccount
	idle   = time.Minute
	// perDecision is what OCM's placement controller puts into one object.
	perDecision = 100
	placement   = "all"
	statuses    = "patch manifestworkreplicasets/status"
)

// now is the clock that the benchmark measures by.
var now clock.RealClock

// phase is what one change of a set cost.
type phase struct {
	wall, cpu          time.Duration
	requests, statuses int
}

type result struct {
	clusters     int
	made, change phase
	idle         int
	idleCPU      time.Duration
	peakKiB      int64
}

var once fleet.Once[result]

// BenchmarkReplicaSet creates a set for all clusters, changes its manifests, and then
// lets a minute pass. Each time the agents of all clusters report that they have applied
// the work. However often Go wants to repeat it, it runs once.
func BenchmarkReplicaSet(b *testing.B) {
	r := once.Result(b, run)
	works := float64(r.clusters)
	b.ReportMetric(works, "works")
	for name, p := range map[string]phase{"create": r.made, "change": r.change} {
		b.ReportMetric(p.wall.Seconds(), name+"-wall-s")
		b.ReportMetric(p.cpu.Seconds(), name+"-cpu-s")
		b.ReportMetric(float64(p.requests)/works, name+"-requests/work")
		b.ReportMetric(float64(p.statuses), name+"-status-writes")
	}
	b.ReportMetric(float64(r.peakKiB)/1024, "private-MiB")
	b.ReportMetric(float64(r.idle), "idle-requests/min")
	b.ReportMetric(r.idleCPU.Seconds(), "idle-cpu-s/min")
	b.ReportMetric(0, "ns/op")
}

// bench is a hub that is measured.
type bench struct {
	admin client.Client
	audit measure.Audit
	hub   *measure.Process
	set   *workv1alpha1.ManifestWorkReplicaSet
	size  int
}

func run(b *testing.B) *result {
	b.Helper()
	ctrl.SetLogger(klog.Background())
	h := &bench{audit: measure.NewAudit(b), size: fleet.Size(b)}
	cp := controlplane.Start(b, controlplane.WithAPIServerArgs(h.audit.Args()...))
	h.admin = cp.Client(b)
	installation.Hub(b, h.admin, manifests.Hub{ReplicaSets: true})
	fleet.Each(b, h.size, func(ctx context.Context, i int) error {
		return h.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet.Name(i)}})
	})
	h.decide(b)
	h.hub = measure.Start(b, binary, "hub", fleet.Kubeconfig(b, cp, user), "--feature-gates=ManifestWorkReplicaSet=true")

	r := &result{clusters: h.size}
	r.made = h.measure(b, func() {
		h.set = set("first")
		if err := h.admin.Create(b.Context(), h.set); err != nil {
			b.Fatal(err)
		}
	})
	r.change = h.measure(b, func() {
		before := client.MergeFrom(h.set.DeepCopy())
		h.set.Spec.ManifestWorkTemplate = set("second").Spec.ManifestWorkTemplate
		if err := h.admin.Patch(b.Context(), h.set, before); err != nil {
			b.Fatal(err)
		}
	})
	requests, cpu := h.requests(b), h.hub.CPU(b)
	now.Sleep(idle)
	r.idleCPU = h.hub.CPU(b) - cpu
	r.idle = h.requests(b) - requests
	r.peakKiB = h.hub.PeakKiB(b)
	return r
}

func (h *bench) requests(b *testing.B) int {
	b.Helper()
	n := h.audit.Requests(b)[user]
	return n.Reads + n.Writes
}

// measure makes a change, and waits until all agents have reported and the set says so.
func (h *bench) measure(b *testing.B, change func()) phase {
	b.Helper()
	requests, written := h.requests(b), h.audit.Kinds(b, user)[statuses]
	cpu, start := h.hub.CPU(b), now.Now()
	change()
	h.agents(b)
	h.await(b)
	p := phase{wall: now.Since(start), cpu: h.hub.CPU(b) - cpu}
	now.Sleep(10 * time.Second) // Requests that come late count as well.
	p.requests, p.statuses = h.requests(b)-requests, h.audit.Kinds(b, user)[statuses]-written
	return p
}

// agents does what the agents of all clusters do: each waits for a change of its work and
// reports that it is applied and available.
func (h *bench) agents(b *testing.B) {
	b.Helper()
	limit := now.Now().Add(10 * time.Minute)
	fleet.Each(b, h.size, func(ctx context.Context, i int) error {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Name(i), Name: h.set.Name}}
		for {
			err := h.admin.Get(ctx, client.ObjectKeyFromObject(work), work)
			applied := apimeta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
			if client.IgnoreNotFound(err) != nil || now.Now().After(limit) {
				return fmt.Errorf("work of %s: %w", work.Namespace, err)
			}
			if err == nil && (applied == nil || applied.ObservedGeneration != work.Generation) {
				break
			}
			now.Sleep(50 * time.Millisecond)
		}
		before := client.MergeFrom(work.DeepCopy())
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			apimeta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Bench", ObservedGeneration: work.Generation,
			})
		}
		return h.admin.Status().Patch(ctx, work, before)
	})
}

// await waits until the set is rolled out.
func (h *bench) await(b *testing.B) {
	b.Helper()
	for limit := now.Now().Add(time.Minute); ; now.Sleep(100 * time.Millisecond) {
		if err := h.admin.Get(b.Context(), client.ObjectKeyFromObject(h.set), h.set); err != nil {
			b.Fatal(err)
		}
		c := apimeta.FindStatusCondition(h.set.Status.Conditions, workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut)
		if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == h.set.Generation {
			return
		}
		if now.Now().After(limit) {
			b.Fatalf("the set is not rolled out: %+v", h.set.Status)
		}
	}
}

// decide chooses all clusters for the placement.
func (h *bench) decide(b *testing.B) {
	b.Helper()
	for first := 0; first < h.size; first += perDecision {
		decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-decision-%d", placement, first/perDecision+1),
			Labels: map[string]string{clusterv1beta1.PlacementLabel: placement},
		}}
		installation.Create(b, h.admin, decision)
		for i := first; i < min(first+perDecision, h.size); i++ {
			decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: fleet.Name(i)})
		}
		if err := h.admin.Status().Update(b.Context(), decision); err != nil {
			b.Fatal(err)
		}
	}
}

// set is a set of one manifest.
func set(manifest string) *workv1alpha1.ManifestWorkReplicaSet {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}
	set.Spec.ManifestWorkTemplate = installation.Work("", manifest).Spec
	set.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{
		Name: placement, RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
	}}
	return set
}
