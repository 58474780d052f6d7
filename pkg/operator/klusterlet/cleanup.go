package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// clean deletes what the phases applied in reverse order, and then the finalizer. It
// is called until nothing is left: an agent must be gone before its RBAC is.
func (r *Reconciler) clean(ctx context.Context, k *operatorv1.Klusterlet, others others) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(k, names.FinalizerKlusterlet) {
		return ctrl.Result{}, nil
	}
	values := r.values(k, evaluateGates(k), 0, nil)
	values.AddOnNamespace = false // Other Klusterlets may need it; see removeAddOnNamespace.
	// Everything that a work agent may have; the settings may have changed since.
	values.Work = &manifests.WorkAgent{Component: manifests.Component{Pod: values.Registration}, Permissions: names.WorkPermissionsAdmin}
	releaseCRDs := func(ctx context.Context, _ *operatorv1.Klusterlet, values manifests.Klusterlet) (string, error) {
		rendered, err := manifests.RenderKlusterletCRDs(values)
		if err != nil {
			return "", err
		}
		return "", operand.Owned{Client: r.Client, FieldManager: FieldManager}.ReleaseCRDs(ctx, rendered, names.LabelCreatedByKlusterlet,
			func(owner string) bool { return others.names[owner] })
	}
	for _, step := range []func(context.Context, *operatorv1.Klusterlet, manifests.Klusterlet) (string, error){
		r.removeAgents, r.removeAddOnCredentials, releaseCRDs, r.releaseAppliedWorks, r.removeBase, r.removeRest, r.removeAddOnNamespace,
	} {
		waiting, err := step(ctx, k, values)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("remove Klusterlet %s: %w", k.Name, err)
		}
		if waiting != "" {
			return ctrl.Result{RequeueAfter: r.Retry}, r.reportDeletion(ctx, k, waiting)
		}
	}
	return ctrl.Result{}, r.RemoveFinalizer(ctx, k)
}

// removeAgents deletes the Deployments and waits until their pods are gone.
func (r *Reconciler) removeAgents(ctx context.Context, _ *operatorv1.Klusterlet, values manifests.Klusterlet) (string, error) {
	rendered, err := deployments(values)
	if err != nil {
		return "", err
	}
	if waiting, err := r.remove(ctx, rendered); err != nil || waiting != "" {
		return waiting, err
	}
	agents, err := labels.Parse(fmt.Sprintf("app in (%s,%s)", names.AppRegistrationAgent, names.AppWorkAgent))
	if err != nil {
		return "", err
	}
	var pods corev1.PodList
	err = r.Uncached.List(ctx, &pods, client.InNamespace(values.Namespace), client.MatchingLabelsSelector{Selector: agents})
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

// deployments returns the Deployments of both agents.
func deployments(values manifests.Klusterlet) ([]*unstructured.Unstructured, error) {
	registration, errRegistration := manifests.RenderKlusterletRuntime(values)
	work, errWork := manifests.RenderKlusterletWork(values)
	objs := slices.DeleteFunc(slices.Concat(registration, work), func(obj *unstructured.Unstructured) bool { return obj.GetKind() != "Deployment" })
	return objs, errors.Join(errRegistration, errWork)
}

// stuckAfter is how long after the end of its grace period a pod is assumed to be
// on a dead node. A kubelet kills a pod when the period ends.
const stuckAfter = time.Minute

// removeStuck deletes a pod that no kubelet will report as stopped. If its node is
// only unreachable, the agent there loses its RBAC all the same.
func (r *Reconciler) removeStuck(ctx context.Context, pod *corev1.Pod) error {
	// The timestamp of a deletion is the end of the grace period.
	if pod.DeletionTimestamp.IsZero() || r.config.Clock.Since(pod.DeletionTimestamp.Time) < stuckAfter {
		return nil
	}
	err := r.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete pod %s, which its node does not stop: %w", pod.Name, err)
	}
	return nil
}

// removeAddOnCredentials deletes the Secrets that the agent stored for add-ons, in
// all namespaces.
func (r *Reconciler) removeAddOnCredentials(ctx context.Context, _ *operatorv1.Klusterlet, values manifests.Klusterlet) (string, error) {
	var list corev1.SecretList
	if err := r.Uncached.List(ctx, &list, client.MatchingLabels{names.LabelAddOnCredential: values.Namespace}); err != nil {
		return "", err
	}
	for i := range list.Items {
		secret := &list.Items[i]
		if !names.IsAddOnSecret(secret.Annotations[names.AnnotationCredentialAddOn], secret.Name) {
			continue // The label may be copied; other Secrets are deleted with the namespace.
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, secret)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// releaseAppliedWorks removes the finalizer from the AppliedManifestWorks of this
// Klusterlet's agent, which no longer runs. What the ManifestWorks deployed stays.
func (r *Reconciler) releaseAppliedWorks(ctx context.Context, k *operatorv1.Klusterlet, _ manifests.Klusterlet) (string, error) {
	var works workv1.AppliedManifestWorkList
	if err := r.Uncached.List(ctx, &works); err != nil {
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
		if err := client.IgnoreNotFound(r.Client.Patch(ctx, work, patch, client.FieldOwner(FieldManager))); err != nil {
			return "", err
		}
	}
	return "", nil
}

// removeBase deletes RBAC, ServiceAccounts and the agent namespace, with the
// credentials in it.
func (r *Reconciler) removeBase(ctx context.Context, _ *operatorv1.Klusterlet, values manifests.Klusterlet) (string, error) {
	base, errBase := manifests.RenderKlusterletBase(values)
	work, errWork := manifests.RenderKlusterletWork(values)
	if err := errors.Join(errBase, errWork); err != nil {
		return "", err
	}
	return r.remove(ctx, slices.Concat(base, work))
}

// removeRest deletes what only earlier settings of the Klusterlet needed.
func (r *Reconciler) removeRest(ctx context.Context, k *operatorv1.Klusterlet, _ manifests.Klusterlet) (string, error) {
	return "", r.owned(k.Name).Prune(ctx, nil)
}

// removeAddOnNamespace deletes the default add-on namespace with the last Klusterlet.
func (r *Reconciler) removeAddOnNamespace(ctx context.Context, k *operatorv1.Klusterlet, _ manifests.Klusterlet) (string, error) {
	var list operatorv1.KlusterletList
	if err := r.Client.List(ctx, &list); err != nil {
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

// remove deletes objs and returns what it waits for, or "" when all are gone.
func (r *Reconciler) remove(ctx context.Context, objs []*unstructured.Unstructured) (string, error) {
	changes, err := r.Applier.Delete(ctx, apply.Objects(objs)...)
	if err != nil || len(changes) == 0 {
		return "", err
	}
	return fmt.Sprintf("Waiting for %s to be gone", changes[len(changes)-1].Object), nil
}

// reportDeletion reports in the condition Applied what a deletion waits for.
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
	s.Reject(metav1.Condition{Reason: ReasonDeleting, Message: waiting})
	return s.Report(ctx)
}
