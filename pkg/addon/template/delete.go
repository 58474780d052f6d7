package template

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/source"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// hooked reports whether something has to run before an add-on is deleted.
func hooked(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.Contains(addOn.Finalizers, addonv1beta1.AddonPreDeleteHookFinalizer)
}

// finalizers returns the finalizers that an add-on needs.
func (d deployment) finalizers() []string {
	if d.hook == nil {
		return nil
	}
	return []string{addonv1beta1.AddonPreDeleteHookFinalizer}
}

// finalize sets the finalizers of an add-on to those that are not ours, and more.
func (r *Reconciler) finalize(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, more ...string) error {
	finalizers := slices.DeleteFunc(slices.Clone(addOn.Finalizers), func(f string) bool { return f == addonv1beta1.AddonPreDeleteHookFinalizer })
	return addonpatch.Metadata(ctx, r.Client, Owner, addOn, map[string]any{"finalizers": append(finalizers, more...)})
}

// delete runs what has to run before an add-on is deleted. Its works go with it, and
// what it has in other namespaces once it is gone, so that its agent can use the hub
// until then.
func (r *Reconciler) delete(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster) error {
	if !hooked(addOn) {
		return nil
	}
	if cluster.Name == "" { // No cluster is left that could run it.
		return r.finalize(ctx, addOn)
	}
	hook, err := r.hook(ctx, addOn, cluster)
	if err != nil {
		return err
	}
	if hook == nil {
		return r.waits(ctx, addOn, "The AddOnTemplate that says what to run before the add-on is deleted does not exist in the version that was deployed; "+
			"create it again; "+withoutHook)
	}
	if hook.UID != "" && ended(hook) {
		return r.finalize(ctx, addOn)
	}
	message := fmt.Sprintf("hook manifestWork %s is not completed.", hook.Name)
	if !heard(cluster) {
		message += " The hub does not hear from the cluster, so it runs when the cluster is back; " + withoutHook
	}
	return r.waits(ctx, addOn, message)
}

// hook returns the work that runs before an add-on is deleted, which it makes if it is
// not there; nil if the template is not known.
func (r *Reconciler) hook(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster) (*workv1.ManifestWork, error) {
	live := &workv1.ManifestWork{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: addOn.Namespace, Name: names.AddOnPreDeleteWork(addOn.Name)}, live)
	if !apierrors.IsNotFound(err) {
		return live, err
	}
	from, err := source.Of(ctx, r.Configs, addOn)
	if from == nil || err != nil {
		return nil, err
	}
	d, err := r.render(addOn, cluster, from, nil)
	if err != nil || d.hook == nil {
		return nil, err
	}
	return d.hook, r.create(ctx, d.hook)
}

// withoutHook says how an add-on is deleted whose hook cannot run.
const withoutHook = "to delete the add-on without it, remove the finalizer " + addonv1beta1.AddonPreDeleteHookFinalizer

// waits says what the deletion of an add-on waits for.
func (r *Reconciler) waits(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, message string) error {
	_, err := addonpatch.SetConditions(ctx, r.Client, Owner, addOn, r.Clock.Now(), metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnHookManifestCompleted, Status: metav1.ConditionFalse,
		Reason: names.ReasonHookNotCompleted, Message: message,
	})
	return err
}
