package install

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ErrForeignController says that the controller was not installed by us, so that it
// is not stopped by us.
var ErrForeignController = errors.New("the Deployment " + names.ImagePullNamespace + "/" + names.ImagePullDeployment + " was not made by this command")

// StopPullSecrets scales the controller to zero and waits until none of its Pods is
// left, so that nothing changes pull secrets any more. The Deployment stays until
// all else is removed: it says how the controller was installed.
func (r *Runner) StopPullSecrets(ctx context.Context) error {
	live, err := r.pullSecretsDeployment(ctx)
	if live == nil || err != nil {
		return err
	}
	if !ownedByUs(live) {
		return ErrForeignController
	}
	return r.Step(ctx, "Stopping the image pull secret controller", func(ctx context.Context, say Say) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
		if err := r.Client.Patch(ctx, live, patch, client.FieldOwner(FieldManager)); err != nil || r.DryRun {
			return client.IgnoreNotFound(err)
		}
		for {
			running, err := r.pullSecretsRunning(ctx)
			if err != nil || running == 0 {
				return err
			}
			say("%d Pods are still running", running)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-r.Clock.After(pollInterval):
			}
		}
	})
}

// pullSecretsRunning counts the controller's Pods, and those that its ReplicaSets
// are still to make.
func (r *Runner) pullSecretsRunning(ctx context.Context) (int, error) {
	own := []client.ListOption{client.InNamespace(names.ImagePullNamespace), client.MatchingLabels{"app": names.ImagePullDeployment}}
	var sets appsv1.ReplicaSetList
	if err := r.Client.List(ctx, &sets, own...); err != nil {
		return 0, fmt.Errorf("the image pull secret controller's ReplicaSets: %w", err)
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, own...); err != nil {
		return 0, fmt.Errorf("the image pull secret controller's Pods: %w", err)
	}
	wanted := 0
	for i := range sets.Items {
		if replicas := sets.Items[i].Spec.Replicas; replicas != nil {
			wanted += int(*replicas)
		}
	}
	return max(wanted, len(pods.Items)), nil
}

// RemovePullSecrets removes what InstallPullSecrets made. The controller must have
// been stopped.
func (r *Runner) RemovePullSecrets(ctx context.Context) error {
	objs, err := r.PullSecretsPlan(ctx)
	if err != nil || len(objs) == 0 {
		return err
	}
	return r.Step(ctx, "Removing the image pull secret controller", func(ctx context.Context, say Say) error {
		_, err := r.applier().DeleteAndWait(ctx, r.waiter(say), objs...)
		return err
	})
}

// PullSecretsPlan lists what exists of what InstallPullSecrets made.
func (r *Runner) PullSecretsPlan(ctx context.Context) ([]client.Object, error) {
	objs, err := r.pullSecretsPermissions(ctx, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := PullSecrets{}.Render()
	if err != nil {
		return nil, err
	}
	found, err := r.existing(ctx, slices.DeleteFunc(rendered, func(obj client.Object) bool {
		return obj.GetObjectKind().GroupVersionKind().Group == rbacv1.GroupName
	}))
	for _, obj := range found {
		if ownedByUs(obj) {
			objs = append(objs, obj)
		}
	}
	return objs, err
}
