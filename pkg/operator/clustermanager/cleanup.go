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
)

// firstCRDs returns the CRDs that the operator deletes one after the other, waiting for
// each. The clusters are first: their controllers delete add-ons and ManifestWorks in
// order, need those kinds for it, and could not restart without them. (OCM's operator
// deletes the clusters third; a registration controller that restarts in between then
// waits for a kind that never returns.)
// See docs/reference/wire-contract.md#hub-removal.
func firstCRDs() []string {
	return []string{
		"managedclusters.cluster.open-cluster-management.io",
		"managedclusteraddons.addon.open-cluster-management.io",
		"manifestworks.work.open-cluster-management.io",
		"manifestworkreplicasets.work.open-cluster-management.io",
	}
}

// clean deletes the hub in reverse order: the CRDs while their controllers still
// run, then the other objects, and the finalizer last. It is called until nothing is
// left.
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
			return ctrl.Result{RequeueAfter: r.Retry}, r.reject(ctx, s, settings, because)
		}
	}
	return ctrl.Result{}, r.RemoveFinalizer(ctx, s.cm)
}

// cleanCRDs deletes the CRDs, and with them every cluster. It returns what it
// waits for, or "" when they are gone.
func (r *Reconciler) cleanCRDs(ctx context.Context, s *scope) (string, error) {
	crds, err := manifests.RenderHubCRDs(s.Values)
	if err != nil {
		return "", err
	}
	if r.config.SkipRemoveCRDs {
		return "", r.owned(s.cm.Name, nil).ReleaseCRDs(ctx, crds, names.LabelCreatedByClusterManager, func(string) bool { return false })
	}
	for _, name := range firstCRDs() {
		waiting, err := r.cleanCRD(ctx, crds, name)
		if err != nil || waiting != "" {
			return waiting, err
		}
	}
	changes, err := r.Applier.Delete(ctx, apply.Objects(crds)...)
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
	changes, err := r.Applier.Delete(ctx, crds[i])
	if err != nil || len(changes) == 0 {
		return "", err
	}
	return r.remaining(ctx, name), nil
}

// remaining returns a message with the objects that block the deletion of a CRD.
func (r *Reconciler) remaining(ctx context.Context, name string) string {
	waiting := fmt.Sprintf("Waiting for the CRD %s to be gone", name)
	var crd apiextensionsv1.CustomResourceDefinition
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil || len(crd.Spec.Versions) == 0 {
		return waiting
	}
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion = crd.Spec.Group + "/" + crd.Spec.Versions[len(crd.Spec.Versions)-1].Name
	list.Kind = crd.Spec.Names.ListKind
	if err := r.Uncached.List(ctx, list, client.Limit(3)); err != nil || len(list.Items) == 0 {
		return waiting
	}
	var left []string
	for i := range list.Items {
		left = append(left, strings.TrimPrefix(list.Items[i].Namespace+"/"+list.Items[i].Name, "/"))
	}
	return fmt.Sprintf("%s: remaining objects wait for their finalizers, among them %s", waiting, strings.Join(left, ", "))
}

// cleanRest deletes the other objects: the controllers with their RBAC, the
// admission policies, and the namespace.
func (r *Reconciler) cleanRest(ctx context.Context, s *scope) (string, error) {
	objs, err := r.owned(s.cm.Name, append(removable(), &corev1.NamespaceList{})).List(ctx)
	if err != nil {
		return "", err
	}
	slices.Reverse(objs) // Delete begins with the last.
	last, err := r.Applier.Delete(ctx, objs...)
	if err != nil || len(last) == 0 {
		return "", err
	}
	return fmt.Sprintf("Waiting for %s to be gone", last[len(last)-1].Object), nil
}
