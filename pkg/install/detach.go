package install

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func deploymentKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("DeploymentList")
}

// HubConfig returns the connection that the agent has to its hub. What the
// stored kubeconfig names beyond its Secret, such as a credential plugin of
// another program, is refused: it is not for this machine.
func (a Agent) HubConfig() (*rest.Config, error) {
	hub, err := a.Hub.Contained(a.Data)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", names.HubKubeconfigSecret, err)
	}
	return hub.Config()
}

// Resign reports to the hub, with the agent's own credential, that the cluster
// leaves: it sets hubAcceptsClient to false, and the hub revokes everything that it
// granted. The agent may update its own cluster, but not patch it.
// A cluster that is gone has resigned already, and so has an agent that may not
// read its cluster: the hub takes that right from those that left.
func Resign(ctx context.Context, hub client.Client, cluster string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := &clusterv1.ManagedCluster{}
		err := hub.Get(ctx, client.ObjectKey{Name: cluster}, live)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil
		} else if err != nil {
			return err
		}
		if !live.Spec.HubAcceptsClient {
			return nil
		}
		live.Spec.HubAcceptsClient = false
		live.Annotations = mergeMap(live.Annotations, map[string]string{names.AnnotationLeft: "true"})
		return client.IgnoreNotFound(hub.Update(ctx, live))
	})
}

// Detach removes a cluster from the hub, as the hub's administrator. It does
// not deny the cluster first: deletion takes the agent's permissions as well, but
// for those on its ManifestWorks, which the agent needs to finish them. With
// l.Force, finalizers that wait for the agent are dropped by the hub's
// controllers. Unless it waits, it returns while the hub still cleans up.
func (r *Runner) Detach(ctx context.Context, cluster string, l Removal) error {
	return r.Step(ctx, "Removing "+cluster+" from the hub", func(ctx context.Context, say Say) error {
		live := &clusterv1.ManagedCluster{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: cluster}, live); err != nil {
			return fmt.Errorf("cluster %s: %w", cluster, err)
		}
		if l.Force {
			patch := client.MergeFrom(live.DeepCopy())
			live.Annotations = mergeMap(live.Annotations, map[string]string{names.AnnotationForceDetach: "true"})
			if err := r.Client.Patch(ctx, live, patch); err != nil {
				return fmt.Errorf("cluster %s: %w", cluster, err)
			}
		}
		target := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
		if _, err := r.applier().Delete(ctx, target); err != nil || r.DryRun || !r.Wait {
			return err
		}
		return r.waiter(say).Wait(ctx, apply.Target{Object: target, Check: goneOrWhy})
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

// Gone reports whether an error says that an object or its kind does not exist.
func Gone(err error) bool { return apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) }
