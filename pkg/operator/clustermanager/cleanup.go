package clustermanager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/pass"
)

// firstCRDs go one after the other, each gone before the next. The clusters are
// first: their controllers take leave of add-ons and works in the right order,
// need those kinds for it, and could not even start again without them.
// (OCM's operator has the clusters third; then a registration controller that
// restarts in between waits for a kind that does not come back.)
// See docs/reference/wire-contract.md#hub-removal.
func firstCRDs() []string {
	return []string{
		"managedclusters.cluster.open-cluster-management.io",
		"managedclusteraddons.addon.open-cluster-management.io",
		"manifestworks.work.open-cluster-management.io",
		"manifestworkreplicasets.work.open-cluster-management.io",
	}
}

// clean takes the hub away, backwards: the CRDs while their controllers still
// run, then the rest, and the finalizer last. It is called until nothing is left.
func (r *Reconciler) clean(ctx context.Context, s *scope, settings gateSettings) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.cm, names.FinalizerClusterManager) {
		return ctrl.Result{}, nil
	}
	s.Values = r.values(s.cm, settings, 1, nil)
	for _, step := range []func(context.Context, *scope) (string, error){r.cleanCRDs, r.cleanRest} {
		waiting, err := step(ctx, s)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("ClusterManager %s: %w", s.cm.Name, err)
		}
		if waiting != "" {
			because := metav1.Condition{Reason: ReasonDeleting, Message: waiting}
			return ctrl.Result{RequeueAfter: retryInterval}, r.refuse(ctx, s, settings, because)
		}
	}
	return ctrl.Result{}, pass.RemoveFinalizer(ctx, r.client, s.cm, names.FinalizerClusterManager, FieldManager)
}

// cleanCRDs deletes the CRDs, and with them every cluster. It returns what it
// waits for, or "" when they are gone.
func (r *Reconciler) cleanCRDs(ctx context.Context, s *scope) (string, error) {
	crds, err := manifests.RenderHubCRDs(s.Values)
	if err != nil {
		return "", err
	}
	if r.config.SkipRemoveCRDs {
		return "", r.disownCRDs(ctx, crds)
	}
	for _, name := range firstCRDs() {
		waiting, err := r.cleanCRD(ctx, crds, name)
		if err != nil || waiting != "" {
			return waiting, err
		}
	}
	changes, err := r.applier.Delete(ctx, apply.Objects(crds)...)
	if err != nil || len(changes) == 0 {
		return "", err
	}
	return fmt.Sprintf("Waiting for %d CRDs to be gone, %s first", len(changes), changes[0].Object.Name), nil
}

func (r *Reconciler) cleanCRD(ctx context.Context, crds []*unstructured.Unstructured, name string) (string, error) {
	i := slices.IndexFunc(crds, func(crd *unstructured.Unstructured) bool { return crd.GetName() == name })
	if i < 0 {
		return "", nil
	}
	changes, err := r.applier.Delete(ctx, crds[i])
	if err != nil || len(changes) == 0 {
		return "", err
	}
	return r.remaining(ctx, name), nil
}

// remaining says which objects keep a CRD from going.
func (r *Reconciler) remaining(ctx context.Context, name string) string {
	waiting := fmt.Sprintf("Waiting for the CRD %s to be gone", name)
	var crd apiextensionsv1.CustomResourceDefinition
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil || len(crd.Spec.Versions) == 0 {
		return waiting
	}
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion = crd.Spec.Group + "/" + crd.Spec.Versions[len(crd.Spec.Versions)-1].Name
	list.Kind = crd.Spec.Names.ListKind
	if err := r.uncached.List(ctx, list, client.Limit(3)); err != nil || len(list.Items) == 0 {
		return waiting
	}
	var left []string
	for i := range list.Items {
		left = append(left, strings.TrimPrefix(list.Items[i].Namespace+"/"+list.Items[i].Name, "/"))
	}
	return fmt.Sprintf("%s: objects that are left wait for their finalizers, among them %s", waiting, strings.Join(left, ", "))
}

// disownCRDs leaves the CRDs behind without the mark of this version, so that
// any other installation may take them over.
func (r *Reconciler) disownCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, rendered := range crds {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(rendered), &crd); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return err
		}
		patch := client.MergeFrom(crd.DeepCopy())
		delete(crd.Annotations, names.AnnotationVersion)
		delete(crd.Labels, names.LabelCreatedByClusterManager)
		if err := r.client.Patch(ctx, &crd, patch, client.FieldOwner(FieldManager)); err != nil {
			return fmt.Errorf("release CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// cleanRest deletes what is not a CRD: the controllers and their rights, the
// admission policies, and the namespace.
func (r *Reconciler) cleanRest(ctx context.Context, s *scope) (string, error) {
	made, err := r.made(s.cm.Name, append(removable(), &corev1.NamespaceList{})).List(ctx)
	if err != nil {
		return "", err
	}
	slices.Reverse(made) // Delete begins with the last.
	last, err := r.applier.Delete(ctx, made...)
	if err != nil || len(last) == 0 {
		return "", err
	}
	return fmt.Sprintf("Waiting for %s to be gone", last[len(last)-1].Object), nil
}
