package klusterlet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/pass"
)

// clean removes what the phases made, backwards, and then the finalizer.
// It runs until nothing is left, one step after the other: an agent must be gone
// before the rights it would miss are.
func (r *Reconciler) clean(ctx context.Context, k *operatorv1.Klusterlet, others others) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(k, names.FinalizerKlusterlet) {
		return ctrl.Result{}, nil
	}
	values := r.values(k, evaluateGates(k), 0, nil)
	values.AddOnNamespace = false // Other Klusterlets may need it; see removeAddOnNamespace.
	releaseCRDs := func(ctx context.Context, _ *operatorv1.Klusterlet, values manifests.Klusterlet) (string, error) {
		return "", r.releaseCRDs(ctx, values, others)
	}
	for _, step := range []func(context.Context, *operatorv1.Klusterlet, manifests.Klusterlet) (string, error){
		r.removeAgents, r.removeAddOnCredentials, releaseCRDs, r.releaseAppliedWorks, r.removeBase, r.removeAddOnNamespace,
	} {
		waiting, err := step(ctx, k, values)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("remove Klusterlet %s: %w", k.Name, err)
		}
		if waiting != "" {
			return ctrl.Result{RequeueAfter: cleanupRetry}, r.reportDeletion(ctx, k, waiting)
		}
	}
	return ctrl.Result{}, pass.RemoveFinalizer(ctx, r.client, k, names.FinalizerKlusterlet, FieldManager)
}

// removeAgents deletes the Deployments and waits until their pods are gone.
func (r *Reconciler) removeAgents(ctx context.Context, _ *operatorv1.Klusterlet, values manifests.Klusterlet) (string, error) {
	rendered, err := manifests.RenderKlusterletRuntime(values)
	if err != nil {
		return "", err
	}
	if waiting, err := r.remove(ctx, rendered); err != nil || waiting != "" {
		return waiting, err
	}
	var pods corev1.PodList
	err = r.uncached.List(ctx, &pods, client.InNamespace(values.Namespace), client.MatchingLabels{"app": names.AppRegistrationAgent})
	if err != nil || len(pods.Items) == 0 {
		return "", err
	}
	for i := range pods.Items {
		if err := r.removeStuck(ctx, &pods.Items[i]); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Waiting for pod %s/%s to stop", pods.Items[0].Namespace, pods.Items[0].Name), nil
}

// stuckAfter is how long after the end of its grace period a pod still exists
// whose node is taken for dead. A kubelet kills a pod when the period ends.
const stuckAfter = time.Minute

// removeStuck removes a pod that no kubelet will report as stopped. Should its
// node only be out of reach, the agent there loses its rights all the same.
func (r *Reconciler) removeStuck(ctx context.Context, pod *corev1.Pod) error {
	// The timestamp of a deletion is the end of the grace period.
	if pod.DeletionTimestamp.IsZero() || r.config.Clock.Since(pod.DeletionTimestamp.Time) < stuckAfter {
		return nil
	}
	err := r.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove pod %s, whose node does not stop it: %w", pod.Name, err)
	}
	return nil
}

// removeAddOnCredentials deletes what the agent stored for add-ons, in whatever
// namespaces they are installed.
func (r *Reconciler) removeAddOnCredentials(ctx context.Context, _ *operatorv1.Klusterlet, values manifests.Klusterlet) (string, error) {
	var list corev1.SecretList
	if err := r.uncached.List(ctx, &list, client.MatchingLabels{names.LabelAddOnCredential: values.Namespace}); err != nil {
		return "", err
	}
	for i := range list.Items {
		secret := &list.Items[i]
		if !names.IsAddOnSecret(secret.Annotations[names.AnnotationCredentialAddOn], secret.Name) {
			continue // Others may have the mark; the rest goes with the namespace.
		}
		if err := client.IgnoreNotFound(r.client.Delete(ctx, secret)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// releaseCRDs takes our version off the CRDs, which stay: their objects may be
// somebody's, and another release may take them over. Those that another
// Klusterlet has taken over are left alone.
func (r *Reconciler) releaseCRDs(ctx context.Context, values manifests.Klusterlet, others others) error {
	rendered, err := manifests.RenderKlusterletCRDs(values)
	if err != nil {
		return err
	}
	for _, obj := range rendered {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(obj), &crd); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if others.names[crd.Labels[names.LabelCreatedByKlusterlet]] {
			continue
		}
		patch := client.MergeFromWithOptions(crd.DeepCopy(), client.MergeFromWithOptimisticLock{})
		delete(crd.Annotations, names.AnnotationVersion)
		delete(crd.Labels, names.LabelCreatedByKlusterlet)
		if err := client.IgnoreNotFound(r.client.Patch(ctx, &crd, patch, client.FieldOwner(FieldManager))); err != nil {
			return err
		}
	}
	return nil
}

// releaseAppliedWorks takes the finalizer off the AppliedManifestWorks of this
// Klusterlet's agent, because nobody is left to do it. What the works deployed
// stays.
func (r *Reconciler) releaseAppliedWorks(ctx context.Context, k *operatorv1.Klusterlet, _ manifests.Klusterlet) (string, error) {
	var works workv1.AppliedManifestWorkList
	if err := r.uncached.List(ctx, &works); err != nil {
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", err
	}
	for i := range works.Items {
		work := &works.Items[i]
		if work.Spec.AgentID != string(k.UID) {
			continue
		}
		patch := client.MergeFrom(work.DeepCopy())
		if !controllerutil.RemoveFinalizer(work, names.FinalizerAppliedManifestWork) {
			continue
		}
		if err := client.IgnoreNotFound(r.client.Patch(ctx, work, patch, client.FieldOwner(FieldManager))); err != nil {
			return "", err
		}
	}
	return "", nil
}

// removeBase deletes rights, identities and the agent namespace, and with the
// namespace the credentials in it.
func (r *Reconciler) removeBase(ctx context.Context, _ *operatorv1.Klusterlet, values manifests.Klusterlet) (string, error) {
	rendered, err := manifests.RenderKlusterletBase(values)
	if err != nil {
		return "", err
	}
	return r.remove(ctx, rendered)
}

// removeAddOnNamespace deletes the default add-on namespace when no other
// Klusterlet is left that could have add-ons in it.
func (r *Reconciler) removeAddOnNamespace(ctx context.Context, k *operatorv1.Klusterlet, _ manifests.Klusterlet) (string, error) {
	var list operatorv1.KlusterletList
	if err := r.client.List(ctx, &list); err != nil {
		return "", err
	}
	for i := range list.Items {
		if list.Items[i].Name != k.Name {
			return "", nil
		}
	}
	ns := &unstructured.Unstructured{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	ns.SetName(names.AddOnNamespace)
	return r.remove(ctx, []*unstructured.Unstructured{ns})
}

// remove asks for the deletion of objs and returns what it waits for, or "" when
// all are gone.
func (r *Reconciler) remove(ctx context.Context, objs []*unstructured.Unstructured) (string, error) {
	changes, err := r.applier.Delete(ctx, apply.Objects(objs)...)
	if err != nil || len(changes) == 0 {
		return "", err
	}
	return fmt.Sprintf("Waiting for %s to be gone", changes[len(changes)-1].Object), nil
}

// reportDeletion says in the condition Applied what a deletion waits for.
func (r *Reconciler) reportDeletion(ctx context.Context, k *operatorv1.Klusterlet, waiting string) error {
	s := r.newScope(k)
	s.Status.Set(evaluateGates(k).condition())
	s.Status.Set(addOnCondition(k))
	for _, c := range k.Status.Conditions {
		if c.Type == operatorv1.ConditionKlusterletAvailable || c.Type == operatorv1.ConditionRegistrationDesiredDegraded ||
			c.Type == operatorv1.ConditionWorkDesiredDegraded {
			s.Status.Set(c)
		}
	}
	s.Refuse(liveStatus(k), metav1.Condition{Reason: ReasonDeleting, Message: waiting})
	return r.report(ctx, s)
}
