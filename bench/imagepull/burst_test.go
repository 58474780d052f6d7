package imagepull_test

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// accounts are spread over namespaces.
	accounts   = 10_000
	namespaces = 100
	// maxKiB is the budget for the private memory of the controller.
	maxKiB = 200 * 1000 * 1000 / 1024
	// limit is far more than it takes.
	limit = 20 * time.Minute
	user  = "system:serviceaccount:" + names.ImagePullNamespace + ":" + names.ImagePullServiceAccount
)

// now is the clock that a benchmark measures by.
var now clock.RealClock

// result is what one run showed.
type result struct {
	wall, cpu, idleCPU, restartCPU time.Duration

	burst, idle, restart map[string]int
	// peakKiB is the largest private memory of the controller, idleKiB that at rest.
	peakKiB, idleKiB int64
}

var once fleet.Once[result]

// BenchmarkImagePull creates 10,000 ServiceAccounts that are opted in as fast as
// the API server takes them, waits until all list a pull secret, lets the
// controller rest for a minute and restarts it. It runs once, however often Go
// wants it. It fails when the controller makes a request more than it needs, or
// takes more memory than it may.
func BenchmarkImagePull(b *testing.B) {
	r := once.Result(b, run)
	b.ReportMetric(accounts, "accounts")
	b.ReportMetric(r.wall.Seconds(), "burst-wall-s")
	b.ReportMetric(r.cpu.Seconds(), "burst-cpu-s")
	for kind, count := range map[string]int{
		"token-requests": r.burst["create serviceaccounts/token"], "secret-writes": r.burst["create secrets"] + r.burst["patch secrets"],
		"account-writes": r.burst["patch serviceaccounts"],
	} {
		b.ReportMetric(float64(count)/accounts, kind+"/account")
	}
	b.ReportMetric(float64(r.peakKiB)/1024, "private-MiB")
	b.ReportMetric(float64(r.idleKiB)/1024, "idle-private-MiB")
	b.ReportMetric(float64(total(r.idle)), "rest-requests/min")
	b.ReportMetric(r.idleCPU.Seconds(), "rest-cpu-s/min")
	b.ReportMetric(r.restartCPU.Seconds(), "restart-cpu-s")
	b.ReportMetric(0, "ns/op")
	r.check(b)
}

// check fails for what is over the budget.
func (r *result) check(b *testing.B) {
	b.Helper()
	want := map[string]int{"create secrets": accounts, "create serviceaccounts/token": accounts, "patch secrets": accounts, "patch serviceaccounts": accounts}
	if got := changes(r.burst); !maps.Equal(got, want) {
		b.Errorf("requests %v, want %v", got, want)
	}
	if len(changes(r.idle)) != 0 || len(changes(r.restart)) != 0 {
		b.Errorf("at rest %v, after a restart %v, want no change", r.idle, r.restart)
	}
	if r.peakKiB > maxKiB {
		b.Errorf("%d KiB of private memory, want at most %d", r.peakKiB, maxKiB)
	}
}

// changes are requests that change something.
func changes(requests map[string]int) map[string]int {
	left := maps.Clone(requests)
	maps.DeleteFunc(left, func(kind string, _ int) bool {
		var verb string
		_, _ = fmt.Sscan(kind, &verb)
		return verb == "get" || verb == "list" || verb == "watch"
	})
	return left
}

func total(requests map[string]int) (sum int) {
	for _, count := range requests {
		sum += count
	}
	return sum
}

func since(after, before map[string]int) map[string]int {
	diff := map[string]int{}
	for kind, count := range after {
		if count != before[kind] {
			diff[kind] = count - before[kind]
		}
	}
	return diff
}

func run(b *testing.B) *result {
	b.Helper()
	ctrl.SetLogger(klog.Background())
	audit := measure.NewAudit(b)
	cp := controlplane.Start(b, controlplane.WithAPIServerArgs(audit.Args()...))
	admin := cp.Client(b)
	prepare(b, admin)
	kubeconfig := fleet.Kubeconfig(b, cp, user)
	process := start(b, kubeconfig)
	r := &result{}

	before, beforeCPU := audit.Kinds(b, user), process.CPU(b)
	began := now.Now()
	done := attached(b, cp)
	go fleet.Each(b, accounts, func(ctx context.Context, i int) error { return admin.Create(ctx, account(i)) })
	select {
	case <-done:
	case <-now.After(limit):
		b.Fatalf("not done after %s", limit)
	}
	r.wall, r.cpu = now.Since(began), process.CPU(b)-beforeCPU
	now.Sleep(5 * time.Second) // Writes that come late count as well.
	r.burst = since(audit.Kinds(b, user), before)

	now.Sleep(time.Minute) // It has settled then.
	before, beforeCPU = audit.Kinds(b, user), process.CPU(b)
	now.Sleep(time.Minute)
	r.idleCPU = process.CPU(b) - beforeCPU
	r.idle = since(audit.Kinds(b, user), before)
	r.idleKiB, r.peakKiB = process.PrivateKiB(b), process.PeakKiB(b)

	process.Stop(b)
	before = audit.Kinds(b, user)
	process = start(b, kubeconfig)
	now.Sleep(10 * time.Second)
	r.restartCPU = process.CPU(b)
	r.restart = since(audit.Kinds(b, user), before)
	return r
}

func start(b *testing.B, kubeconfig string) *measure.Process {
	b.Helper()
	return measure.Start(b, binary, "imagepull", kubeconfig, "--leader-election-namespace="+names.ImagePullNamespace,
		"--registry=registry.example.com", "--audience=registry.example.com")
}

// prepare makes the namespaces, and gives the controller its permissions.
func prepare(b *testing.B, admin client.Client) {
	b.Helper()
	installation.ImagePull(b, admin, manifests.ImagePull{}, names.ImagePullServiceAccount)
	for i := range namespaces {
		installation.Create(b, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(i)}})
	}
}

func namespace(i int) string { return fmt.Sprintf("ns%02d", i%namespaces) }

// account is a ServiceAccount that is opted in.
func account(i int) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace(i), Name: fmt.Sprintf("app%04d", i), Annotations: map[string]string{names.AnnotationPullSecret: "true"},
	}}
}

// attached is closed when all ServiceAccounts list a pull secret.
func attached(b *testing.B, cp *controlplane.Own) <-chan struct{} {
	b.Helper()
	objects, err := cache.New(cp.Config(b), cache.Options{Scheme: scheme.New()})
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = objects.Start(b.Context()) }()
	source, err := objects.GetInformer(b.Context(), &corev1.ServiceAccount{})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	var listed atomic.Int64
	if _, err := source.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		if entries(after) == 1 && entries(before) == 0 && listed.Add(1) == accounts {
			close(done)
		}
	}}); err != nil {
		b.Fatal(err)
	}
	return done
}

// entries is how many pull secrets a ServiceAccount lists.
func entries(object any) int {
	if account, ok := object.(*corev1.ServiceAccount); ok {
		return len(account.ImagePullSecrets)
	}
	return 0
}
