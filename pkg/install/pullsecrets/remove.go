package pullsecrets

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

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ErrForeignController says that the controller was not installed by us, so that it
// is not stopped by us.
var ErrForeignController = errors.New("the Deployment " + names.ImagePullNamespace + "/" + names.ImagePullDeployment + " was not made by this command")

// Stop scales the controller to zero and waits until none of its Pods is
// left, so that nothing changes pull secrets any more. The Deployment stays until
// all else is removed: it says how the controller was installed.
func (r Runner) Stop(ctx context.Context) error {
	live, err := r.deployment(ctx)
	if live == nil || err != nil {
		return err
	}
	if !install.Owned(live) {
		return ErrForeignController
	}
	return r.Step(ctx, "Stopping the image pull secret controller", func(ctx context.Context, say install.Say) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
		if err := r.Client.Patch(ctx, live, patch, client.FieldOwner(install.FieldManager)); err != nil || r.DryRun {
			return client.IgnoreNotFound(err)
		}
		for {
			running, err := r.running(ctx)
			if err != nil || running == 0 {
				return err
			}
			say("%d Pods are still running", running)
			if !pause.For(ctx, r.Clock, install.PollInterval) {
				return context.Cause(ctx)
			}
		}
	})
}

// running counts the controller's Pods, and those that its ReplicaSets
// are still to make.
func (r Runner) running(ctx context.Context) (int, error) {
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

// Remove removes what Install made. The controller must have
// been stopped.
func (r Runner) Remove(ctx context.Context) error {
	objs, err := r.Plan(ctx)
	if err != nil || len(objs) == 0 {
		return err
	}
	return r.Step(ctx, "Removing the image pull secret controller", func(ctx context.Context, say install.Say) error {
		_, err := r.Applier().DeleteAndWait(ctx, r.Waiter(say), objs...)
		return err
	})
}

// Plan lists what exists of what Install made.
func (r Runner) Plan(ctx context.Context) ([]client.Object, error) {
	objs, err := r.permissions(ctx, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := Values{}.Render()
	if err != nil {
		return nil, err
	}
	found, err := r.Existing(ctx, slices.DeleteFunc(rendered, func(obj client.Object) bool {
		return obj.GetObjectKind().GroupVersionKind().Group == rbacv1.GroupName
	}))
	for _, obj := range found {
		if install.Owned(obj) {
			objs = append(objs, obj)
		}
	}
	return objs, err
}
