package clusterpatch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// conflictDelay is long enough for the cache to see what was missed.
const conflictDelay = 100 * time.Millisecond

// Conditions brings conditions of a cluster to what is wanted, in one write of
// its status, and reports whether it had to. The time of a transition is now;
// cluster is what the server answered afterwards.
func Conditions(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster,
	now time.Time, want ...metav1.Condition,
) (changed bool, err error) {
	conditions := slices.Clone(cluster.Status.Conditions)
	for _, condition := range want {
		condition.LastTransitionTime = metav1.NewTime(now)
		if apimeta.SetStatusCondition(&conditions, condition) {
			changed = true
		}
	}
	if !changed {
		return false, nil
	}
	patch, err := mergePatch(cluster, "status", map[string]any{"conditions": conditions})
	if err != nil {
		return false, err
	}
	if err := c.Status().Patch(ctx, cluster, patch, owner); err != nil {
		return false, fmt.Errorf("conditions of managed cluster %s: %w", cluster.Name, err)
	}
	return true, nil
}

// DropCondition removes a condition of a cluster that says nothing any more.
func DropCondition(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, kind string) error {
	conditions := slices.Clone(cluster.Status.Conditions)
	if !apimeta.RemoveStatusCondition(&conditions, kind) {
		return nil
	}
	patch, err := mergePatch(cluster, "status", map[string]any{"conditions": conditions})
	if err != nil {
		return err
	}
	if err := c.Status().Patch(ctx, cluster, patch, owner); err != nil {
		return fmt.Errorf("condition %s of managed cluster %s: %w", kind, cluster.Name, err)
	}
	return nil
}

// Finalizers sets the finalizers of a cluster.
func Finalizers(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, want []string) error {
	if slices.Equal(cluster.Finalizers, want) {
		return nil
	}
	patch, err := mergePatch(cluster, "metadata", map[string]any{"finalizers": want})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, cluster, patch, owner); err != nil {
		return fmt.Errorf("finalizers of managed cluster %s: %w", cluster.Name, err)
	}
	return nil
}

// Taints sets the taints of a cluster. None at all leave no list behind, so
// that the cluster looks as it did before it was ever tainted.
func Taints(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, want []clusterv1.Taint) error {
	if len(want) == 0 {
		want = nil
	}
	patch, err := mergePatch(cluster, "spec", map[string]any{"taints": want})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, cluster, patch, owner); err != nil {
		return fmt.Errorf("taints of managed cluster %s: %w", cluster.Name, err)
	}
	return nil
}

// Accept lets a cluster join and notes in annotation, as its value, that it was
// not a person who decided so.
func Accept(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, annotation, value string) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": cluster.ResourceVersion,
			"annotations":     map[string]string{annotation: value},
		},
		"spec": map[string]any{"hubAcceptsClient": true},
	})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, body), owner); err != nil {
		return fmt.Errorf("acceptance of managed cluster %s: %w", cluster.Name, err)
	}
	return nil
}

// DropAnnotation removes an annotation of a cluster.
func DropAnnotation(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, annotation string) error {
	if _, ok := cluster.Annotations[annotation]; !ok {
		return nil
	}
	patch, err := mergePatch(cluster, "metadata", map[string]any{"annotations": map[string]any{annotation: nil}})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, cluster, patch, owner); err != nil {
		return fmt.Errorf("annotation %s of managed cluster %s: %w", annotation, cluster.Name, err)
	}
	return nil
}

// Reconcile gives a cluster to reconcile, unless it is gone, and settles the answer.
func Reconcile(ctx context.Context, c client.Reader, req ctrl.Request,
	reconcile func(context.Context, *clusterv1.ManagedCluster) (ctrl.Result, error),
) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := c.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return Settled(reconcile(ctx, cluster))
}

// Settled turns a conflict into another look soon: that somebody else wrote
// first is part of sharing an object and no error.
func Settled(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return result, err
}

// mergePatch names one list in one section of the cluster and the resource
// version that the list was read at.
func mergePatch(cluster *clusterv1.ManagedCluster, section string, content map[string]any) (client.Patch, error) {
	body := map[string]map[string]any{section: content}
	if body["metadata"] == nil {
		body["metadata"] = map[string]any{}
	}
	body["metadata"]["resourceVersion"] = cluster.ResourceVersion
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.MergePatchType, data), nil
}
