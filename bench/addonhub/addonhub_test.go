package addonhub_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	binary = "../../bin/kubectl-ocm"
	// perCluster is the number of add-ons of a cluster.
	perCluster = 5
	// perDecision is what upstream's placement controller puts into one object.
	perDecision = 100
	placement   = "all"
	idle        = time.Minute
	managerUser = "system:serviceaccount:" + names.HubNamespace + ":" + names.HubAddOnManagerServiceAccount
)

// now is the clock that a benchmark measures by.
var now clock.RealClock

// result is what one run showed.
type result struct {
	clusters  int
	refreshes int
	peakKiB   int64

	wall, cpu, idleCPU, restartCPU time.Duration
	requests, idle, restart        measure.Requests
}

// BenchmarkAddOnHub installs five add-ons on all clusters by placements, gives
// each an identity as its agent declares it, lets the agents report refreshes
// for a minute and restarts the manager. It runs once, however often Go wants it.
func BenchmarkAddOnHub(b *testing.B) {
	r := once.Result(b, run)
	addOns := float64(r.clusters * perCluster)
	b.ReportMetric(addOns, "addons")
	b.ReportMetric(r.wall.Seconds(), "ready-wall-s")
	b.ReportMetric(r.cpu.Seconds(), "ready-cpu-s")
	b.ReportMetric(float64(r.peakKiB)/1024, "private-MiB")
	b.ReportMetric(float64(r.requests.Writes)/addOns, "writes/addon")
	b.ReportMetric(float64(r.requests.Reads)/addOns, "reads/addon")
	b.ReportMetric(float64(r.idle.Writes), "idle-writes/min")
	b.ReportMetric(r.idleCPU.Seconds(), "idle-cpu-s/min")
	b.ReportMetric(float64(r.refreshes), "idle-refreshes/min")
	b.ReportMetric(float64(r.restart.Writes), "restart-writes")
	b.ReportMetric(r.restartCPU.Seconds(), "restart-cpu-s")
	b.ReportMetric(0, "ns/op")
}

var once fleet.Once[result]

func run(b *testing.B) *result {
	b.Helper()
	r := &result{clusters: fleet.Size(b)}
	h := prepare(b, r.clusters)
	admin, audit := h.admin, h.audit
	kubeconfig := fleet.Kubeconfig(b, h.cp, managerUser)
	manager := measure.Start(b, binary, "addon-manager", kubeconfig)

	before, beforeCPU := audit.Requests(b), manager.CPU(b)
	start := now.Now()
	h.install(b)
	r.wall, r.cpu = now.Since(start), manager.CPU(b)-beforeCPU
	now.Sleep(5 * time.Second) // Writes that come late count as well.
	r.requests = measure.Difference(audit.Requests(b), before)[managerUser]
	mint(b, admin, r.clusters)

	now.Sleep(5 * time.Second)
	before, beforeCPU = audit.Requests(b), manager.CPU(b)
	r.refreshes = refresh(b, admin, r.clusters)
	r.idleCPU = manager.CPU(b) - beforeCPU
	r.idle = measure.Difference(audit.Requests(b), before)[managerUser]
	r.peakKiB = manager.PeakKiB(b)

	manager.Stop(b)
	before = audit.Requests(b)
	manager = measure.Start(b, binary, "addon-manager", kubeconfig)
	now.Sleep(10 * time.Second)
	r.restartCPU = manager.CPU(b)
	r.restart = measure.Difference(audit.Requests(b), before)[managerUser]
	return r
}

// bench is a hub with accepted clusters, all of which a placement has chosen.
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
	installation.Hub(b, h.admin, manifests.Hub{AddOnManager: &manifests.Component{}})
	fleet.Each(b, clusters, func(ctx context.Context, i int) error { return join(ctx, h.admin, fleet.Name(i)) })
	decide(b, h.admin, clusters)
	return h
}

// install installs all add-ons, and returns when each has an identity.
func (h *bench) install(b *testing.B) {
	b.Helper()
	ready := agents(b, h.cp, h.admin, h.clusters)
	publish(b, h.admin)
	ready()
}

func addOnName(i int) string { return fmt.Sprintf("addon%d", i) }

func newAddOn(i int) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Name(i / perCluster), Name: addOnName(i % perCluster)}}
}

// join makes what an accepted cluster has that matters here.
func join(ctx context.Context, admin client.Client, name string) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = true
	if err := admin.Create(ctx, cluster); err != nil {
		return err
	}
	return admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: name}}})
}

// decide chooses all clusters for the placement.
func decide(b *testing.B, admin client.Client, clusters int) {
	b.Helper()
	for first := 0; first < clusters; first += perDecision {
		decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-decision-%d", placement, first/perDecision+1),
			Labels: map[string]string{clusterv1beta1.PlacementLabel: placement},
		}}
		if err := admin.Create(b.Context(), decision); err != nil {
			b.Fatal(err)
		}
		for i := first; i < min(first+perDecision, clusters); i++ {
			decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: fleet.Name(i)})
		}
		if err := admin.Status().Update(b.Context(), decision); err != nil {
			b.Fatal(err)
		}
	}
}

// publish makes the add-ons known, which installs them.
func publish(b *testing.B, admin client.Client) {
	b.Helper()
	for i := range perCluster {
		cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addOnName(i)}}
		cma.Spec.InstallStrategy = addonv1beta1.InstallStrategy{
			Type:       addonv1beta1.AddonInstallStrategyPlacements,
			Placements: []addonv1beta1.PlacementStrategy{{PlacementRef: addonv1beta1.PlacementRef{Namespace: "default", Name: placement}}},
		}
		cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Type = "All"
		if err := admin.Create(b.Context(), cma); err != nil {
			b.Fatal(err)
		}
	}
}

// agents does what the hub sides and the agents of all add-ons do: it writes a
// registration with the driver and then the subject, and waits for the
// identity. The function it returns waits until all have theirs.
func agents(b *testing.B, cp *controlplane.Own, admin client.Client, clusters int) (ready func()) {
	b.Helper()
	seen := make(chan *addonv1beta1.ManagedClusterAddOn, fleet.Parallel)
	b.Cleanup(informer(b, cp, func(object any) {
		if addOn, ok := object.(*addonv1beta1.ManagedClusterAddOn); ok {
			select {
			case seen <- addOn:
			case <-b.Context().Done():
			}
		}
	}))
	work := make(chan *addonv1beta1.ManagedClusterAddOn, clusters*perCluster)
	for range fleet.Parallel {
		go func() {
			for addOn := range work {
				if err := declare(b.Context(), admin, addOn); err != nil && b.Context().Err() == nil {
					b.Errorf("%s/%s: %v", addOn.Namespace, addOn.Name, err)
				}
			}
		}()
	}
	return func() {
		defer close(work)
		done, declared := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
		for limit := now.After(2 * time.Hour); len(done) < clusters*perCluster; {
			select {
			case addOn := <-seen:
				key := client.ObjectKeyFromObject(addOn)
				if !declared[key] {
					declared[key] = true
					work <- addOn
				}
				if apimeta.IsStatusConditionTrue(addOn.Status.Conditions, names.ConditionTokenInfrastructureReady) {
					done[key] = true
				}
			case <-limit:
				b.Fatalf("%d of %d identities are ready", len(done), clusters*perCluster)
			}
		}
		go func() { // What comes later is of no interest.
			for range seen {
				continue
			}
		}()
	}
}

// informer calls changed with every add-on that appears or changes, until stop.
func informer(b *testing.B, cp *controlplane.Own, changed func(any)) (stop func()) {
	b.Helper()
	objects, err := cache.New(cp.Config(b), cache.Options{Scheme: scheme.New()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = objects.Start(ctx) })
	source, err := objects.GetInformer(ctx, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := source.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, after any) { changed(after) },
	}); err != nil {
		b.Fatal(err)
	}
	return func() {
		cancel()
		running.Wait()
	}
}

func declare(ctx context.Context, admin client.Client, addOn *addonv1beta1.ManagedClusterAddOn) error {
	subject := names.ServiceAccountUser(addOn.Namespace, names.AddOnServiceAccount(addOn.Namespace, addOn.Name))
	for _, registration := range []string{
		`{"type":"kubeClient","kubeClient":{"driver":"token"}}`,
		fmt.Sprintf(`{"type":"kubeClient","kubeClient":{"driver":"token","subject":{"user":%q}}}`, subject),
	} {
		target := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: addOn.Namespace, Name: addOn.Name}}
		body := []byte(`{"status":{"registrations":[` + registration + `]}}`)
		if err := admin.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, body)); err != nil {
			return err
		}
	}
	return nil
}

// mint shows that the identities are there, for one add-on of every cluster.
func mint(b *testing.B, admin client.Client, clusters int) {
	b.Helper()
	fleet.Each(b, clusters, func(ctx context.Context, i int) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: fleet.Name(i), Name: names.AddOnServiceAccount(fleet.Name(i), addOnName(i%perCluster)),
		}}
		return admin.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
	})
}

// refresh reports a refreshed token of every add-on, evenly within a minute, as
// agents do once in the life of a token, and returns how many it reported.
func refresh(b *testing.B, admin client.Client, clusters int) int {
	b.Helper()
	all := clusters * perCluster
	ticker := now.NewTicker(idle / time.Duration(all))
	defer ticker.Stop()
	end := now.After(idle)
	for refreshed := 0; ; refreshed++ {
		select {
		case <-end:
			return refreshed
		case <-ticker.C():
			addOn := newAddOn(refreshed % all)
			if err := admin.Get(b.Context(), client.ObjectKeyFromObject(addOn), addOn); err != nil {
				b.Fatal(err)
			}
			for _, kind := range []string{names.ConditionTokenRefreshed, names.ConditionAddOnTokenRefreshed} {
				apimeta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
					Type: kind, Status: metav1.ConditionTrue, Reason: names.ReasonAddOnTokenRefreshed,
					Message: "Addon token refreshed, expires at " + now.Now().Format(time.RFC3339Nano),
				})
			}
			if err := admin.Status().Update(b.Context(), addOn); err != nil {
				b.Fatal(err)
			}
		}
	}
}
