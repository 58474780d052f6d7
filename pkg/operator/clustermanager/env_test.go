package clustermanager_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const patience = await.Patience

// hub is a control plane with init's objects on it.
type hub struct {
	*controlplane.ControlPlane

	admin client.WithWatch
}

// newHub installs what init installs; the operator itself is run by the test.
func newHub(t *testing.T) *hub {
	t.Helper()
	cp := controlplane.Lease(t)
	admin, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{ControlPlane: cp, admin: admin}
	h.install(t, operatorv1.ClusterManagerSpec{})
	return h
}

// install does what init does, with a spec.
func (h *hub) install(t *testing.T, spec operatorv1.ClusterManagerSpec) {
	t.Helper()
	rendered, err := manifests.RenderHubOperator(manifests.HubOperator{
		Version: "1.0.0", Spec: spec, Operator: manifests.Pod{Image: "operator:v1"}, Labels: map[string]string{"team": "fleet"},
	})
	if err != nil {
		t.Fatal(err)
	}
	installation.Apply(t, h.admin, "ocm.init", rendered)
}

// operator is a running operator.
type operator struct {
	// writes counts its requests that change something.
	writes *atomic.Int64
	// last tells the last of them.
	last atomic.Pointer[string]
	// lives is the number of writes that it has left; then it is dead: no
	// request of its goes through any more.
	lives *atomic.Int64
	dead  chan struct{}
	// stop ends it as a kill would.
	stop func()
}

// operatorConfig is release 1.0.0.
func operatorConfig() clustermanager.Config {
	return clustermanager.Config{
		Namespace: names.OperatorNamespace, Image: "operator:v1", Version: "1.0.0", Replicas: 1,
		ControlPlane: labels.Everything(), Drivers: drivers.All(), Clock: clock.RealClock{},
	}
}

// run starts an operator with the rights that init gives it. A number of lives
// is the number of writes after which it dies.
func (h *hub) run(t *testing.T, configure func(*clustermanager.Config), lives ...int64) *operator {
	t.Helper()
	connection := h.ConfigForAccount(t, names.OperatorNamespace, names.ClusterManagerOperator)
	op := &operator{writes: &atomic.Int64{}, lives: &atomic.Int64{}, dead: make(chan struct{})}
	op.lives.Store(math.MaxInt64)
	for _, n := range lives {
		op.lives.Store(n)
	}
	connection.Wrap(op.transport)
	connection.QPS = -1
	return h.start(t, op, connection, configure)
}

func (h *hub) start(t *testing.T, op *operator, connection *rest.Config, configure func(*clustermanager.Config)) *operator {
	t.Helper()
	objects, err := clustermanager.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	conf := operatorConfig()
	if configure != nil {
		configure(&conf)
	}
	op.stop = controllers.Start(t, connection, manager.Options{Cache: objects}, func(_ context.Context, mgr manager.Manager) error {
		return clustermanager.Setup(mgr, conf)
	})
	return op
}

// errKilled is what a dead operator's requests end with.
var errKilled = errors.New("killed")

func (o *operator) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		select {
		case <-o.dead:
			return nil, errKilled
		default:
		}
		if req.Method == http.MethodGet || req.URL.Query().Has("dryRun") {
			return next.RoundTrip(req)
		}
		o.writes.Add(1)
		o.last.Store(new(req.Method + " " + req.URL.Path))
		left := o.lives.Add(-1)
		if left < 0 {
			return nil, errKilled
		}
		response, err := next.RoundTrip(req)
		if left == 0 {
			close(o.dead)
		}
		return response, err
	})
}

// lastWrite is the last request of the operator's that changes something.
func (o *operator) lastWrite() string {
	if last := o.last.Load(); last != nil {
		return *last
	}
	return "nothing"
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// eventually waits until done returns "", which otherwise is what is missing.
func eventually(t *testing.T, done func(ctx context.Context) string) {
	t.Helper()
	await.Completion(t, patience, done)
}

func (h *hub) clusterManager(t *testing.T) *operatorv1.ClusterManager {
	t.Helper()
	cm := &operatorv1.ClusterManager{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: names.ClusterManagerName}, cm); err != nil {
		t.Fatal(err)
	}
	return cm
}

// expectCondition waits for a condition that is current.
func (h *hub) expectCondition(t *testing.T, conditionType string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		cm := &operatorv1.ClusterManager{}
		if err := h.admin.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, cm); err != nil {
			return err.Error()
		}
		c := apimeta.FindStatusCondition(cm.Status.Conditions, conditionType)
		switch {
		case c == nil:
			return "no condition " + conditionType
		case c.Status != status, c.Reason != reason, c.ObservedGeneration < cm.Generation:
			return conditionType + " is " + string(c.Status) + " " + c.Reason + ": " + c.Message
		}
		return ""
	})
}

// expectObject waits until an object is as it should be.
func expectObject[T client.Object](t *testing.T, h *hub, key client.ObjectKey, obj T, missing func(T) string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		if err := h.admin.Get(ctx, key, obj); err != nil {
			return err.Error()
		}
		return missing(obj)
	})
}

func deploymentKey() client.ObjectKey {
	return client.ObjectKey{Namespace: names.HubNamespace, Name: names.HubRegistrationDeployment(names.ClusterManagerName)}
}

// makePodsReady does what a kubelet would, until the Deployment is available.
func (h *hub) makePodsReady(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		deploymentKey().Name,
		names.HubAddOnManagerDeployment(names.ClusterManagerName), names.HubAddOnWebhookDeployment(names.ClusterManagerName),
	} {
		h.makeReady(t, client.ObjectKey{Namespace: names.HubNamespace, Name: name})
	}
}

func (h *hub) makeReady(t *testing.T, deployment client.ObjectKey) {
	t.Helper()
	expectObject(t, h, deployment, &appsv1.Deployment{}, func(d *appsv1.Deployment) string {
		var pods corev1.PodList
		if err := h.admin.List(t.Context(), &pods, client.InNamespace(names.HubNamespace)); err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := h.admin.Status().Update(t.Context(), pod); err != nil {
				return err.Error()
			}
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < *d.Spec.Replicas || d.Status.UpdatedReplicas < *d.Spec.Replicas || d.Status.Replicas != d.Status.UpdatedReplicas {
			return "the deployment is not available"
		}
		return ""
	})
}

// quiet is how long the operator must write nothing to be taken for settled. On
// a busy machine its watches may show it what it wrote itself seconds later, and
// until then it looks to it as if that were missing.
const quiet = 3 * time.Second

// expectQuiet waits until the operator has settled.
func expectQuiet(t *testing.T, op *operator) {
	t.Helper()
	now := clock.RealClock{}.Now
	last, since := op.writes.Load(), now()
	eventually(t, func(context.Context) string {
		if current := op.writes.Load(); current != last {
			last, since = current, now()
		}
		if now().Sub(since) < quiet {
			return "the operator is still writing: " + op.lastWrite()
		}
		return ""
	})
}
