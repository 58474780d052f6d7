package hub

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Detach removes a cluster from the hub, as the hub's administrator. It does
// not deny the cluster first: deletion takes the agent's permissions as well, but
// for those on its ManifestWorks, which the agent needs to finish them. With
// l.Force, finalizers that wait for the agent are dropped by the hub's
// controllers. Unless it waits, it returns while the hub still cleans up.
func (r Runner) Detach(ctx context.Context, cluster string, l install.Removal) error {
	return r.Step(ctx, "Removing "+cluster+" from the hub", func(ctx context.Context, say install.Say) error {
		live := &clusterv1.ManagedCluster{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: cluster}, live); err != nil {
			return fmt.Errorf("cluster %s: %w", cluster, err)
		}
		if l.Force {
			patch := client.MergeFrom(live.DeepCopy())
			live.Annotations = install.MergeMap(live.Annotations, map[string]string{names.AnnotationForceDetach: "true"})
			if err := r.Client.Patch(ctx, live, patch); err != nil {
				return fmt.Errorf("cluster %s: %w", cluster, err)
			}
		}
		target := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
		if _, err := r.Applier().Delete(ctx, target); err != nil || r.DryRun || !r.Wait {
			return err
		}
		return r.Waiter(say).Wait(ctx, apply.Target{Object: target, Check: goneOrWhy})
	})
}

// goneOrWhy is done when a ManagedCluster or a ClusterManager is gone; its message is
// what is reported about the deletion.
func goneOrWhy(obj *unstructured.Unstructured) apply.Result {
	result := apply.Gone()(obj)
	if obj == nil || result.Done {
		return result
	}
	for _, kind := range []string{clusterv1.ManagedClusterConditionDeleting, names.ConditionRegistrationGranted, operatorv1.ConditionClusterManagerApplied} {
		if c, ok := apply.ConditionOf(obj, kind); ok && c["status"] == string(metav1.ConditionFalse) {
			result.Message = fmt.Sprint(c["message"])
			break
		}
	}
	return result
}
