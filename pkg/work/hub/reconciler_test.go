package hub_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/clocks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/hub"
)

const (
	namespace = "c1"
	patience  = await.Patience
)

// env is a hub with works, and the controller under the rights of the hub
// registration controller, in whose process it runs.
type env struct {
	admin client.Client
	clock *clocks.Moved
}

func start(t *testing.T) *env {
	t.Helper()
	cp := controlplane.Lease(t)
	e := &env{admin: cp.Client(t), clock: clocks.NewMoved(t)}
	installation.Hub(t, e.admin, manifests.Hub{})
	if err := e.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	connection := cp.ConfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount))
	options := manager.Options{Cache: cache.Options{ByObject: hub.CacheObjects()}}
	controllers.Start(t, connection, options, func(_ context.Context, mgr manager.Manager) error {
		return hub.Setup(mgr, hub.Config{Clock: e.clock})
	})
	return e
}

// work creates a work that stays for ttl seconds after it is complete, or for ever.
func (e *env) work(t *testing.T, name string, ttl *int64) *workv1.ManifestWork {
	t.Helper()
	w := installation.Work(namespace, name)
	w.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy:       workv1.DeletePropagationPolicyTypeForeground,
		TTLSecondsAfterFinished: ttl,
	}
	if err := e.admin.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return w
}

// complete sets the condition of a work that its agent has evaluated.
func (e *env) complete(t *testing.T, w *workv1.ManifestWork, status metav1.ConditionStatus, at time.Time) {
	t.Helper()
	before := w.DeepCopy()
	w.Status.Conditions = nil
	apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: workv1.WorkComplete, Status: status, Reason: "ConditionRulesAggregated", LastTransitionTime: metav1.NewTime(at),
	})
	if err := e.admin.Status().Patch(t.Context(), w, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (e *env) awaitGone(t *testing.T, w *workv1.ManifestWork) {
	t.Helper()
	await.Success(t, patience, w.Name+" is deleted", func(ctx context.Context) error {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(w), &workv1.ManifestWork{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
}

// TestFinishedWorksGo: a work goes when its time after completion is over, and no
// other work does.
func TestFinishedWorksGo(t *testing.T) {
	t.Parallel()
	e := start(t)
	now := e.clock.Now()
	hour, none, endless := int64(3600), int64(0), int64(math.MaxInt64)
	lasting, running, failed := e.work(t, "lasting", nil), e.work(t, "running", &none), e.work(t, "failed", &none)
	e.complete(t, lasting, metav1.ConditionTrue, now.Add(-24*time.Hour))
	kept := e.work(t, "kept", &endless)
	e.complete(t, kept, metav1.ConditionTrue, now.Add(-24*time.Hour))
	e.complete(t, failed, metav1.ConditionFalse, now.Add(-24*time.Hour))
	due, later := e.work(t, "due", &hour), e.work(t, "later", &hour)
	e.complete(t, due, metav1.ConditionTrue, now.Add(-time.Hour))
	e.complete(t, later, metav1.ConditionTrue, now)

	e.awaitGone(t, due)
	again := e.work(t, "at-once", &none)
	e.complete(t, again, metav1.ConditionTrue, now)
	e.awaitGone(t, again)
	for _, w := range []*workv1.ManifestWork{lasting, kept, running, failed, later} {
		if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(w), &workv1.ManifestWork{}); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
	}

	// A shorter time counts from the completion.
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deleteOption":{"ttlSecondsAfterFinished":0}}}`))
	if err := e.admin.Patch(t.Context(), later, patch); err != nil {
		t.Fatal(err)
	}
	e.awaitGone(t, later)
}

// TestDeletionWaitsForTheAgent: the finalizer of the work agent keeps a finished
// work until the agent has removed what it applied, and it is deleted once.
func TestDeletionWaitsForTheAgent(t *testing.T) {
	t.Parallel()
	e := start(t)
	none := int64(0)
	w := e.work(t, "held", &none)
	w.Finalizers = []string{names.FinalizerManifestWork}
	if err := e.admin.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	e.complete(t, w, metav1.ConditionTrue, e.clock.Now())
	await.Success(t, patience, "the work is being deleted", func(ctx context.Context) error {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(w), w)
		if err == nil && w.DeletionTimestamp.IsZero() {
			return errors.New("it is not")
		}
		return err
	})
	w.Finalizers = nil
	if err := e.admin.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	e.awaitGone(t, w)
}
