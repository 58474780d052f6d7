package install

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// OperatorPod is the operator's own pods. They are placed and sized like the
// components.
func OperatorPod(image string, replicas int32, resources *operatorv1.ResourceRequirement, placement operatorv1.NodePlacement) manifests.Pod {
	return manifests.Pod{
		Image: image, Replicas: replicas, Resources: manifests.Resources(resources),
		NodeSelector: placement.NodeSelector, Tolerations: placement.Tolerations,
	}
}

// Without drops the objects of a kind.
func Without(objs []client.Object, kind string) []client.Object {
	return slices.DeleteFunc(objs, func(obj client.Object) bool { return obj.GetObjectKind().GroupVersionKind().Kind == kind })
}

// Annotate adds annotations to the objects of a kind.
func Annotate(objs []client.Object, kind string, annotations map[string]string) {
	for _, obj := range objs {
		if obj.GetObjectKind().GroupVersionKind().Kind == kind && len(annotations) > 0 {
			obj.SetAnnotations(MergeMap(obj.GetAnnotations(), annotations))
		}
	}
}

// FirstSet returns the first value that is not empty.
func FirstSet(values ...[]byte) []byte {
	for _, v := range values {
		if len(v) > 0 {
			return v
		}
	}
	return nil
}

// Existing reads those of the objects that exist.
func (r *Runner) Existing(ctx context.Context, objs []client.Object) ([]client.Object, error) {
	var found []client.Object
	for _, obj := range objs {
		live, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		switch err := r.Client.Get(ctx, client.ObjectKeyFromObject(obj), live); {
		case err == nil:
			found = append(found, live)
		case !lookup.Gone(err):
			return nil, fmt.Errorf("%s: %w", obj.GetName(), err)
		}
	}
	return found, nil
}

// Describe names an object as kubectl does.
func (r *Runner) Describe(obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, r.Client.Scheme())
	if err != nil {
		return obj.GetName()
	}
	return apply.Ref{Kind: gvk, Namespace: obj.GetNamespace(), Name: obj.GetName()}.String()
}

// Shared reports whether another Deployment than operator lives in the
// operators' namespace.
func (r *Runner) Shared(ctx context.Context, operator string) (bool, error) {
	deployments := &metav1.PartialObjectMetadataList{}
	deployments.SetGroupVersionKind(deploymentKind())
	if err := r.Client.List(ctx, deployments, client.InNamespace(names.OperatorNamespace)); err != nil {
		return false, fmt.Errorf("deployments: %w", err)
	}
	return slices.ContainsFunc(deployments.Items, func(d metav1.PartialObjectMetadata) bool { return d.Name != operator }), nil
}

// OperatorFlags returns the flags of a live operator that are not always set, none if there
// is no operator.
func (r *Runner) OperatorFlags(ctx context.Context, operator string) ([]string, error) {
	key := client.ObjectKey{Namespace: names.OperatorNamespace, Name: operator}
	d, err := lookup.Get(ctx, r.Client, key, &appsv1.Deployment{})
	if err != nil || d == nil {
		return nil, err
	}
	copies := slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.Contains(c.Args, manifests.ArgSyncLabels) || slices.Contains(c.Args, manifests.ArgSyncLabels+"=true")
	})
	if !copies {
		return nil, nil
	}
	return []string{manifests.ArgSyncLabels}, nil
}

// OperatorFlags returns the flags of the operator that are not always set: what is wanted,
// else what is live.
func (w Workload) OperatorFlags(live []string) []string {
	switch {
	case w.SyncLabels == nil:
		return live
	case *w.SyncLabels:
		return []string{manifests.ArgSyncLabels}
	}
	return nil
}

func deploymentKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("DeploymentList")
}

// Owned reports whether init, join or pull-secrets install applied a live object.
func Owned(obj client.Object) bool { return apply.AppliedBy(obj, FieldManager) }

// DeploymentReady is a target that is reached when a Deployment is ready.
func DeploymentReady(namespace, name string) apply.Target {
	return apply.Target{
		Object: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		Check:  apply.DeploymentReady(),
	}
}

// MergeMap returns live with the entries of wanted; nil if both are empty.
func MergeMap(live, wanted map[string]string) map[string]string {
	if len(live)+len(wanted) == 0 {
		return nil
	}
	merged := maps.Clone(live)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, wanted)
	return merged
}
