package clusterpatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
)

// Conditions sets conditions of a cluster in one write of its status, and reports
// whether a write was needed. The transition time is now; afterwards cluster is the
// object that the API server returned.
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
	err = send(ctx, c, owner, cluster, mergepatch.Fields{"status": {"conditions": conditions}}, "conditions")
	return err == nil, err
}

// DropCondition removes a condition of a cluster.
func DropCondition(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, kind string) error {
	conditions := slices.Clone(cluster.Status.Conditions)
	if !apimeta.RemoveStatusCondition(&conditions, kind) {
		return nil
	}
	return send(ctx, c, owner, cluster, mergepatch.Fields{"status": {"conditions": conditions}}, "condition "+kind)
}

// AddFinalizers adds the finalizers that a cluster lacks.
func AddFinalizers(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, finalizers ...string) error {
	want := slices.Clone(cluster.Finalizers)
	for _, finalizer := range finalizers {
		if !slices.Contains(want, finalizer) {
			want = append(want, finalizer)
		}
	}
	return setFinalizers(ctx, c, owner, cluster, want)
}

// RemoveFinalizer removes a finalizer of a cluster. A cluster that is gone has none.
func RemoveFinalizer(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, finalizer string) error {
	want := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == finalizer })
	return client.IgnoreNotFound(setFinalizers(ctx, c, owner, cluster, want))
}

func setFinalizers(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, want []string) error {
	if slices.Equal(cluster.Finalizers, want) {
		return nil
	}
	return send(ctx, c, owner, cluster, mergepatch.Fields{"metadata": {"finalizers": want}}, "finalizers")
}

// Taints sets the taints of a cluster. An empty list is removed, as if the cluster
// had never had a taint.
func Taints(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, want []clusterv1.Taint) error {
	if len(want) == 0 {
		want = nil
	}
	return send(ctx, c, owner, cluster, mergepatch.Fields{"spec": {"taints": want}}, "taints")
}

// Accept accepts a cluster and records in an annotation that the hub, not an
// administrator, accepted it.
func Accept(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, annotation, value string) error {
	return send(ctx, c, owner, cluster, mergepatch.Fields{
		"metadata": {"annotations": map[string]string{annotation: value}},
		"spec":     {"hubAcceptsClient": true},
	}, "acceptance")
}

// DropAnnotation removes an annotation of a cluster.
func DropAnnotation(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, annotation string) error {
	if _, ok := cluster.Annotations[annotation]; !ok {
		return nil
	}
	return send(ctx, c, owner, cluster, mergepatch.Fields{"metadata": {"annotations": map[string]any{annotation: nil}}}, "annotation "+annotation)
}

// Reconcile calls reconcile with the requested cluster, unless it is gone, and
// handles conflicts as mergepatch.Settled does.
func Reconcile(ctx context.Context, c client.Reader, req ctrl.Request,
	reconcile func(context.Context, *clusterv1.ManagedCluster) (ctrl.Result, error),
) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := c.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return mergepatch.Settled(reconcile(ctx, cluster))
}

// send writes fields of a cluster, and says in its errors what they are.
func send(ctx context.Context, c client.Client, owner client.FieldOwner, cluster *clusterv1.ManagedCluster, fields mergepatch.Fields, what string) error {
	if err := mergepatch.Write(ctx, c, owner, cluster, fields); err != nil {
		return fmt.Errorf("%s of managed cluster %s: %w", what, cluster.Name, err)
	}
	return nil
}
