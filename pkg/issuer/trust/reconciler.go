package trust

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Owner is the field manager of the condition.
const Owner client.FieldOwner = "ocm.issuer.trust"

// conflictDelay is long enough for the cache to see what was missed.
const conflictDelay = 100 * time.Millisecond

type reconciler struct {
	client  client.Client
	clock   clock.PassiveClock
	metrics *metrics
}

// Reconcile evaluates what one cluster publishes.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	err := r.reconcile(ctx, req.Name)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

func (r *reconciler) reconcile(ctx context.Context, name string) error {
	published, err := r.published(ctx, name)
	if err != nil {
		return err
	}
	cluster := &clusterv1.ManagedCluster{}
	err = r.client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		r.metrics.is(name, "")
		return r.abandon(ctx, published)
	}
	if err != nil {
		return err
	}
	if !cluster.DeletionTimestamp.IsZero() {
		r.metrics.is(name, "")
		return r.remove(ctx, published)
	}
	want, err := r.evaluate(ctx, cluster, published)
	if err != nil {
		return err
	}
	// Untrusted keys are removed first: the condition only reports it.
	if !cluster.Spec.HubAcceptsClient {
		if err := r.remove(ctx, published); err != nil {
			return err
		}
	}
	if want == nil {
		r.metrics.is(name, "")
	} else {
		r.metrics.is(name, want.Reason)
	}
	return r.say(ctx, cluster, want)
}

// published returns the ConfigMap of a cluster, nil for none.
func (r *reconciler) published(ctx context.Context, cluster string) (*corev1.ConfigMap, error) {
	var m corev1.ConfigMap
	err := r.client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: names.IssuerConfigMap}, &m)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &m, nil
}

// abandon deletes what a cluster left that is gone altogether. A ConfigMap of
// that name in a namespace of no cluster is another controller's.
func (r *reconciler) abandon(ctx context.Context, m *corev1.ConfigMap) error {
	if m == nil {
		return nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.client.Get(ctx, client.ObjectKey{Name: m.Namespace}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.Labels[names.LabelClusterName] != m.Namespace {
		return nil
	}
	return r.remove(ctx, m)
}

func (r *reconciler) remove(ctx context.Context, m *corev1.ConfigMap) error {
	if m == nil || !m.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.client.Delete(ctx, m, client.Preconditions{UID: &m.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete what cluster %s published: %w", m.Namespace, err)
	}
	return nil
}

// say gives a cluster the condition, or takes it away. The list of conditions
// has many writers, so the patch names the version that was read.
func (r *reconciler) say(ctx context.Context, cluster *clusterv1.ManagedCluster, want *metav1.Condition) error {
	before := cluster.DeepCopy()
	var changed bool
	if want == nil {
		changed = apimeta.RemoveStatusCondition(&cluster.Status.Conditions, names.ConditionIssuerTrusted)
	} else {
		c := *want
		c.LastTransitionTime = metav1.NewTime(r.clock.Now())
		changed = apimeta.SetStatusCondition(&cluster.Status.Conditions, c)
	}
	if !changed {
		return nil
	}
	err := r.client.Status().Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), Owner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("condition %s of managed cluster %s: %w", names.ConditionIssuerTrusted, cluster.Name, err)
	}
	return nil
}

func condition(object client.Object) *metav1.Condition {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	if !ok {
		return nil
	}
	return apimeta.FindStatusCondition(cluster.Status.Conditions, names.ConditionIssuerTrusted)
}
