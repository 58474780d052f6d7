package hub_test

import (
	"context"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	binary  = "../../bin/kubectl-ocm"
	idle    = time.Minute
	hubUser = "system:serviceaccount:" + names.HubNamespace + ":" + names.HubRegistrationServiceAccount
)

// now is the clock that a benchmark measures by.
var now clock.RealClock

// result is what one run showed.
type result struct {
	clusters           int
	wall               time.Duration
	acceptCPU, idleCPU time.Duration
	peakKiB            int64
	acceptWrites       map[string]measure.Requests
	idleWrites         int
	renewals           int
}

// BenchmarkHub accepts all clusters at once and then lets their agents renew
// leases for a minute. However often Go wants to repeat it, it runs once.
func BenchmarkHub(b *testing.B) {
	r := once.Result(b, run)
	perCluster := func(writes int) float64 { return float64(writes) / float64(r.clusters) }
	all := 0
	for user, requests := range r.acceptWrites {
		all += requests.Writes
		b.Logf("accept: %.3f writes per cluster by %s", perCluster(requests.Writes), user)
	}
	b.ReportMetric(float64(r.clusters), "clusters")
	b.ReportMetric(r.wall.Seconds(), "accept-wall-s")
	b.ReportMetric(r.acceptCPU.Seconds(), "accept-cpu-s")
	b.ReportMetric(float64(r.peakKiB)/1024, "private-MiB")
	b.ReportMetric(perCluster(r.acceptWrites[hubUser].Writes), "hub-writes/cluster")
	b.ReportMetric(perCluster(all), "all-writes/cluster")
	b.ReportMetric(float64(r.idleWrites), "idle-writes/min")
	b.ReportMetric(r.idleCPU.Seconds(), "idle-cpu-s/min")
	b.ReportMetric(float64(r.renewals), "idle-renewals/min")
	b.ReportMetric(0, "ns/op")
}

var once fleet.Once[result]

func run(b *testing.B) *result {
	b.Helper()
	r := &result{clusters: fleet.Size(b)}
	h := prepare(b, r.clusters)
	hub := measure.Start(b, binary, "hub", fleet.Kubeconfig(b, h.cp, hubUser))

	before, beforeCPU := h.audit.Requests(b), hub.CPU(b)
	start := now.Now()
	h.accept(b)
	r.wall, r.acceptCPU = now.Since(start), hub.CPU(b)-beforeCPU
	now.Sleep(5 * time.Second) // Writes that come late count as well.
	r.acceptWrites = measure.Difference(h.audit.Requests(b), before)

	h.join(b)
	before, beforeCPU = h.audit.Requests(b), hub.CPU(b)
	r.renewals = h.renewLeases(b)
	r.idleCPU = hub.CPU(b) - beforeCPU
	r.idleWrites = measure.Difference(h.audit.Requests(b), before)[hubUser].Writes
	r.peakKiB = hub.PeakKiB(b)
	return r
}

// bench is a hub with clusters that are not accepted yet.
type bench struct {
	cp       *controlplane.Own
	admin    client.Client
	audit    measure.Audit
	clusters int
}

func prepare(b *testing.B, clusters int) *bench {
	b.Helper()
	ctrl.SetLogger(klog.Background())
	h := &bench{audit: measure.NewAudit(b), clusters: clusters}
	h.cp = controlplane.Start(b, controlplane.WithAPIServerArgs(h.audit.Args()...))
	h.admin = h.cp.Client(b)
	installation.Hub(b, h.admin, manifests.Hub{})
	fleet.Each(b, clusters, func(ctx context.Context, i int) error {
		cluster := named(fleet.Name(i))
		// Accepting many takes longer than the hub waits for a lease by default.
		cluster.Spec.LeaseDurationSeconds = 3600
		return h.admin.Create(ctx, cluster)
	})
	for i := range clusters { // A cluster's rights are those of the agent whose CSR was approved.
		installation.Agent(b, h.admin, fleet.Name(i), "agent")
	}
	return h
}

// accept accepts all clusters, and returns when the hub controller has.
func (h *bench) accept(b *testing.B) {
	b.Helper()
	accepted, all := map[string]bool{}, make(chan struct{})
	defer watchClusters(b, h.cp, func(cluster *clusterv1.ManagedCluster) {
		before := len(accepted)
		if apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
			accepted[cluster.Name] = true
		}
		if before < len(accepted) && len(accepted) == h.clusters {
			close(all)
		}
	})()
	go fleet.Each(b, h.clusters, func(ctx context.Context, i int) error {
		return h.admin.Patch(ctx, named(fleet.Name(i)), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hubAcceptsClient":true}}`)))
	})
	select {
	case <-all:
	case <-now.After(time.Hour):
		b.Fatal("not all clusters are accepted after an hour")
	}
}

// join has all agents report that they have joined, and lets the hub note it.
func (h *bench) join(b *testing.B) {
	b.Helper()
	fleet.Each(b, h.clusters, func(ctx context.Context, i int) error { return report(ctx, h.admin, fleet.Name(i)) })
	now.Sleep(10 * time.Second)
}

func named(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// watchClusters calls changed with every cluster that appears or changes, until stop.
func watchClusters(b *testing.B, cp *controlplane.Own, changed func(*clusterv1.ManagedCluster)) (stop func()) {
	b.Helper()
	objects, err := cache.New(cp.Config(b), cache.Options{Scheme: scheme.New()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = objects.Start(ctx) })
	source, err := objects.GetInformer(ctx, &clusterv1.ManagedCluster{})
	if err != nil {
		b.Fatal(err)
	}
	handle := func(object any) {
		if cluster, ok := object.(*clusterv1.ManagedCluster); ok {
			changed(cluster)
		}
	}
	if _, err := source.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, after any) { handle(after) },
	}); err != nil {
		b.Fatal(err)
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// report is what an agent says once it has joined. The hub may still be at work on the
// cluster.
func report(ctx context.Context, admin client.Client, name string) error {
	cluster := named(name)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		for kind, reason := range map[string]string{
			clusterv1.ManagedClusterConditionJoined:    names.ReasonJoined,
			clusterv1.ManagedClusterConditionAvailable: names.ReasonAvailable,
		} {
			apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason})
		}
		return admin.Status().Update(ctx, cluster)
	})
}

// renewLeases has all agents renew their leases once a minute, evenly, for a minute, and
// returns how many were renewed.
func (h *bench) renewLeases(b *testing.B) int {
	b.Helper()
	var all coordinationv1.LeaseList
	if err := h.admin.List(b.Context(), &all, client.MatchingFields{"metadata.name": names.ManagedClusterLease}); err != nil {
		b.Fatal(err)
	}
	agents := fleet.Agents(b, h.cp)
	start := now.Now()
	fleet.Each(b, len(all.Items), func(ctx context.Context, i int) error {
		now.Sleep(time.Duration(i)*idle/time.Duration(len(all.Items)) - now.Since(start))
		lease := &all.Items[i]
		lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Now()}
		return agents.Update(fleet.AsAgent(ctx, lease.Namespace), lease)
	})
	return len(all.Items)
}
