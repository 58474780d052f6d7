package work_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	binary  = "../../bin/kubectl-ocm"
	cluster = "cluster1"
	// user is the agent on both API servers.
	user    = "work-agent"
	idle    = time.Minute
	perWork = 5
)

// now is the clock that the benchmark measures by.
var now clock.RealClock

var once fleet.Once[result]

// result is what one run showed.
type result struct {
	works        int
	wall         time.Duration
	cpu, idleCPU time.Duration
	peakKiB      int64
	hub, managed measure.Requests
	idle         int
	changes      changes
}

// BenchmarkWork creates all works at once, waits until all are Available, then for a
// minute in which nothing happens, and then changes each work, one after another. However
// often Go wants to repeat it, it runs once.
func BenchmarkWork(b *testing.B) {
	r := once.Result(b, run)
	objects := float64(r.works * perWork)
	total := r.hub.Reads + r.hub.Writes + r.managed.Reads + r.managed.Writes
	b.ReportMetric(float64(r.works), "works")
	b.ReportMetric(r.wall.Seconds(), "wall-s")
	b.ReportMetric(r.cpu.Seconds(), "cpu-s")
	b.ReportMetric(float64(r.peakKiB)/1024, "private-MiB")
	b.ReportMetric(float64(total)/objects, "requests/manifest")
	b.ReportMetric(float64(r.idle), "idle-requests/min")
	b.ReportMetric(r.idleCPU.Seconds(), "idle-cpu-s/min")
	b.ReportMetric(milliseconds(r.changes.median), "changed-p50-ms")
	b.ReportMetric(milliseconds(r.changes.p99), "changed-p99-ms")
	b.ReportMetric(float64(r.changes.requests)/float64(r.works), "requests/change")
	b.ReportMetric(0, "ns/op")
	if r.changes.p99 >= mostChange {
		b.Errorf("a changed work is Applied after %s at the 99th percentile, not in under %s", r.changes.p99, mostChange)
	}
}

func run(b *testing.B) *result {
	b.Helper()
	r := &result{works: fleet.Size(b)}
	hubAudit, managedAudit := measure.NewAudit(b), measure.NewAudit(b)
	hub := controlplane.Start(b, controlplane.WithAPIServerArgs(hubAudit.Args()...))
	managed := controlplane.Start(b, controlplane.WithAPIServerArgs(managedAudit.Args()...))
	admin := prepare(b, hub, managed)
	agent := measure.Start(b, binary, "work", kubeconfig(b, managed, "managed"),
		"--spoke-cluster-name="+cluster, "--agent-id=bench", "--workload-source-config="+kubeconfig(b, hub, "hub"))

	requests := func() (h, m measure.Requests) { return hubAudit.Requests(b)[user], managedAudit.Requests(b)[user] }
	hubBefore, managedBefore := requests()
	cpu, start := agent.CPU(b), now.Now()
	fleet.Each(b, r.works, func(ctx context.Context, i int) error { return admin.Create(ctx, work(i)) })
	awaitAvailable(b, admin, r.works)
	r.wall, r.cpu = now.Since(start), agent.CPU(b)-cpu
	now.Sleep(10 * time.Second) // Requests that come late count as well.
	hubAfter, managedAfter := requests()
	r.hub, r.managed = difference(hubAfter, hubBefore), difference(managedAfter, managedBefore)

	cpu = agent.CPU(b)
	now.Sleep(idle)
	r.idleCPU = agent.CPU(b) - cpu
	hubIdle, managedIdle := requests()
	for _, d := range []measure.Requests{difference(hubIdle, hubAfter), difference(managedIdle, managedAfter)} {
		r.idle += d.Reads + d.Writes
	}
	for kind, n := range managedAudit.Kinds(b, user) {
		b.Logf("managed cluster: %d x %s", n, kind)
	}
	r.changes = changeAll(b, hub, r.works)
	hubChanged, managedChanged := requests()
	for _, d := range []measure.Requests{difference(hubChanged, hubIdle), difference(managedChanged, managedIdle)} {
		r.changes.requests += d.Reads + d.Writes
	}
	r.peakKiB = agent.PeakKiB(b)
	return r
}

func difference(after, before measure.Requests) measure.Requests {
	return measure.Requests{Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}
}

// prepare installs the CRDs, and the namespaces that the works need.
func prepare(b *testing.B, hub, managed *controlplane.Own) client.Client {
	b.Helper()
	admin := hub.Client(b)
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace})
	for _, o := range crds {
		unstructured.RemoveNestedField(o.Object, "spec", "conversion") // No webhook runs here.
	}
	installation.Some(b, admin, crds, err, installation.CRD)
	crds, err = manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: cluster, Namespace: names.AgentNamespace})
	installation.Some(b, managed.Client(b), crds, err, installation.CRD)
	installation.Create(b, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	for _, namespace := range []string{"apps", names.HubNamespace} {
		installation.Create(b, managed.Client(b), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	return admin
}

func kubeconfig(b *testing.B, plane *controlplane.Own, name string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), name)
	if err := os.WriteFile(path, plane.KubeconfigFor(b, user, "system:masters"), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// work returns a ManifestWork of five manifests.
func work(i int) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: fmt.Sprintf("work%04d", i)}}
	for j := range perWork {
		manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"apps","name":"%s-%d"},"data":{"key":"value"}}`, w.Name, j)
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}})
	}
	return w
}

func awaitAvailable(b *testing.B, admin client.Client, works int) {
	b.Helper()
	for limit := now.Now().Add(10 * time.Minute); ; now.Sleep(500 * time.Millisecond) {
		var list workv1.ManifestWorkList
		if err := admin.List(b.Context(), &list, client.InNamespace(cluster)); err != nil {
			b.Fatal(err)
		}
		available := 0
		for i := range list.Items {
			if apimeta.IsStatusConditionTrue(list.Items[i].Status.Conditions, workv1.WorkAvailable) {
				available++
			}
		}
		if available == works {
			return
		}
		if now.Now().After(limit) {
			b.Fatalf("%d of %d works are available", available, works)
		}
	}
}
