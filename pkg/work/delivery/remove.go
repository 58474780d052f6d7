package delivery

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

// Orphan sets that the resources of a work stay when it is deleted. The agent has to act
// on that before the work is deleted: see AwaitOrphaned.
func (h Hub) Orphan(ctx context.Context, work *workv1.ManifestWork) error {
	patch := client.MergeFrom(work.DeepCopy())
	work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	if err := h.Client.Patch(ctx, work, patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("ManifestWork %s on %s: %w", work.Name, work.Namespace, err)
	}
	return nil
}

// AwaitOrphaned waits until the agents have applied the last change of a work, Orphan: by
// that they take the resources out of the ownership by which these would be deleted. A
// manifest that is not applied can still be owned.
func (h Hub) AwaitOrphaned(ctx context.Context, name string, clusters []string, progress Progress) error {
	return h.wait(ctx, name, clusters, progress, func(live *workv1.ManifestWork) apply.Result {
		if !live.DeletionTimestamp.IsZero() {
			return apply.Result{Failed: true, Message: "is being deleted already"}
		}
		w := report.Describe(live)
		return apply.Result{Done: w.Applied == string(metav1.ConditionTrue), Message: w.Reason}
	})
}

// Delete deletes a work as it was read. The agent deletes the resources that are not
// orphaned, and then releases the work.
func (h Hub) Delete(ctx context.Context, work *workv1.ManifestWork) error {
	err := h.Client.Delete(ctx, work.DeepCopy(), client.Preconditions{UID: &work.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("ManifestWork %s on %s: %w", work.Name, work.Namespace, err)
	}
	return nil
}

// DeleteWithoutAgent deletes a work as it was read, and does not wait for the agent: its
// resources stay.
func (h Hub) DeleteWithoutAgent(ctx context.Context, work *workv1.ManifestWork) error {
	if err := h.Delete(ctx, work); err != nil {
		return err
	}
	return h.Release(ctx, client.ObjectKeyFromObject(work))
}

// Release takes the finalizer of the agent from a work that is being deleted. Nothing
// that the agent applied is deleted by that.
func (h Hub) Release(ctx context.Context, key client.ObjectKey) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return h.release(ctx, key) })
}

func (h Hub) release(ctx context.Context, key client.ObjectKey) error {
	live := &workv1.ManifestWork{}
	if err := h.Client.Get(ctx, key, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch := client.MergeFromWithOptions(live.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if live.DeletionTimestamp.IsZero() || !controllerutil.RemoveFinalizer(live, names.FinalizerManifestWork) {
		return nil
	}
	err := h.Client.Patch(ctx, live, patch, client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release ManifestWork %s on %s: %w", key.Name, key.Namespace, err)
	}
	return nil
}

// Away returns the first of the clusters that the hub does not hear from, or "". A deletion on
// it can wait forever. Clusters that cannot be read are left out.
func (h Hub) Away(ctx context.Context, clusters []string) string {
	for _, cluster := range clusters {
		if away, err := AgentIsAway(ctx, h.Client, cluster); err == nil && away {
			return cluster
		}
	}
	return ""
}

// AgentIsAway reports whether the hub does not hear from the agents of a cluster, so that a
// deletion can wait forever.
func AgentIsAway(ctx context.Context, hub client.Reader, cluster string) (bool, error) {
	managed := &clusterv1.ManagedCluster{}
	err := hub.Get(ctx, client.ObjectKey{Name: cluster}, managed)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("ManagedCluster %s: %w", cluster, err)
	}
	return !apimeta.IsStatusConditionTrue(managed.Status.Conditions, clusterv1.ManagedClusterConditionAvailable), nil
}

// AwaitGone waits until works are gone.
func (h Hub) AwaitGone(ctx context.Context, name string, clusters []string, progress Progress) error {
	waiter := &apply.Waiter{Client: h.Client, Clock: h.Clock}
	waiter.Progress = func(object apply.Ref, message string) { progress(object.Namespace, message) }
	targets := make([]apply.Target, len(clusters))
	for i, cluster := range clusters {
		targets[i] = apply.Target{Object: empty(cluster, name), Check: goneOrWhy}
	}
	return waiter.Wait(ctx, targets...)
}

// goneOrWhy is done when a work is gone; until then its message is what the agent reports
// about the deletion, as far as that says more than that it takes place.
func goneOrWhy(obj *unstructured.Unstructured) apply.Result {
	result := apply.Gone()(obj)
	if obj == nil || result.Done {
		return result
	}
	if c, ok := apply.ConditionOf(obj, workv1.WorkDeleting); ok && c["message"] != names.MessageWorkDeleting && c["message"] != nil {
		result.Message = fmt.Sprint(c["message"])
	}
	return result
}
