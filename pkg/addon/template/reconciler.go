package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonmetrics"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/render"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/source"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Owner is the field manager of everything this package writes.
const Owner client.FieldOwner = "ocm.addontemplate"

// Reconciler deploys the add-ons that are made from AddOnTemplates.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads what the cache does not hold, or not yet.
	Live client.Reader
	// Configs reads AddOnDeploymentConfigs and AddOnTemplates, which the client would
	// not read from the cache.
	Configs client.Reader
	// Clock dates conditions.
	Clock clock.PassiveClock
	// Metrics has the add-ons that are deployed.
	Metrics *addonmetrics.Readiness

	// superseded are the RoleBindings of OCM that no add-on needs any more, or that never
	// were, by key.
	superseded sync.Map
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	after, err := r.reconcile(ctx, req.NamespacedName)
	return mergepatch.Settled(ctrl.Result{RequeueAfter: after}, err)
}

// reconcile returns when to look again if nothing changes, 0 for never.
func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
	addOn, cluster := &addonv1beta1.ManagedClusterAddOn{}, &clusterv1.ManagedCluster{}
	if err := r.Client.Get(ctx, key, addOn); apierrors.IsNotFound(err) {
		r.Metrics.Forget(key)
		return 0, r.unbind(ctx, key, nil)
	} else if err != nil {
		return 0, err
	}
	if ours, err := r.concerns(ctx, addOn); err != nil || !ours {
		r.Metrics.Forget(key)
		return 0, err
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: key.Namespace}, cluster); client.IgnoreNotFound(err) != nil {
		return 0, err
	}
	switch {
	case addOn.DeletionTimestamp != nil:
		return 0, r.delete(ctx, addOn, cluster)
	case cluster.DeletionTimestamp != nil || !cluster.Spec.HubAcceptsClient:
		return 0, nil // What it has goes with the cluster, if that does not exist either.
	}
	return r.deploy(ctx, addOn, cluster)
}

// concerns reports whether an add-on is made from a template. An add-on that is deleted
// with its ClusterManagementAddOn still has to run its hook.
func (r *Reconciler) concerns(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (bool, error) {
	var cma addonv1beta1.ClusterManagementAddOn
	if err := r.Client.Get(ctx, client.ObjectKey{Name: addOn.Name}, &cma); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	return addonconfig.Managed(&cma) && addonconfig.Templated(&cma) || addOn.DeletionTimestamp != nil && hooked(addOn), nil
}

// deploy updates an add-on to its template, and returns when to reconcile it again.
func (r *Reconciler) deploy(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster) (after time.Duration, err error) {
	p := &pass{addOn: addOn, cluster: cluster, status: addOn.Status.DeepCopy()}
	for _, phase := range []func(context.Context, *pass) error{r.read, r.plan, r.register, r.applyWorks, r.evaluate, r.measure} {
		err := phase(ctx, p)
		if errors.Is(err, errDone) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
	if err := errors.Join(append(p.retry, r.report(ctx, p))...); err != nil {
		return 0, err
	}
	return p.after, nil
}

// render makes the works of an add-on that has those which are live.
func (r *Reconciler) render(addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster, from *source.Source,
	live []*workv1.ManifestWork,
) (deployment, error) {
	registries, err := registriesOf(cluster)
	if err != nil {
		return deployment{}, err
	}
	objects, err := render.Objects(from.Template, render.Values{
		AddOn: addOn.Name, Cluster: addOn.Namespace, Namespace: from.Namespace(), Config: from.Config, Registries: registries,
	})
	if err != nil {
		return deployment{}, err
	}
	return deploy(addOn, from.Template, objects, live)
}

// registrationApplied reports whether an add-on can register and has its permissions.
func registrationApplied(registers bool, err error) metav1.Condition {
	condition := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnRegistrationApplied, Status: metav1.ConditionTrue,
		Reason: addonv1beta1.RegistrationAppliedSetPermissionApplied, Message: names.MessageRegistrationApplied,
	}
	switch {
	case !registers:
		condition.Reason = addonv1beta1.RegistrationAppliedNilRegistration
	case errors.Is(err, errPending):
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, names.ReasonPermissionConfigPending, errPending.Error()
	case err != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1beta1.RegistrationAppliedSetPermissionFailed
		condition.Message = fmt.Sprintf(names.MessagePermissionFailed, err)
	}
	return condition
}

// apply makes and repairs the works of an add-on, and deletes those that are too many.
func (r *Reconciler) apply(ctx context.Context, live, want []*workv1.ManifestWork) error {
	var errs []error
	for _, work := range want {
		i := slices.IndexFunc(live, func(w *workv1.ManifestWork) bool { return w.Name == work.Name })
		switch {
		case i < 0:
			errs = append(errs, r.create(ctx, work))
		case !loses(live[i], want, live):
			errs = append(errs, r.repair(ctx, live[i], work))
		}
	}
	for _, work := range live {
		unwanted := !slices.ContainsFunc(want, func(w *workv1.ManifestWork) bool { return w.Name == work.Name })
		if unwanted && !loses(work, want, live) {
			errs = append(errs, r.remove(ctx, work))
		}
	}
	return errors.Join(errs...)
}

// works returns the works in the cache that deploy an add-on.
func (r *Reconciler) works(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) ([]*workv1.ManifestWork, error) {
	works, err := addonwork.List(ctx, r.Client, client.ObjectKeyFromObject(addOn))
	return slices.DeleteFunc(works, func(w *workv1.ManifestWork) bool {
		return w.Namespace != addOn.Namespace || !strings.HasPrefix(w.Name, prefix(addOn.Name))
	}), err
}

// create makes a work. One that exists is in the cache soon.
func (r *Reconciler) create(ctx context.Context, work *workv1.ManifestWork) error {
	err := r.Client.Create(ctx, work.DeepCopy(), Owner)
	if apierrors.IsAlreadyExists(err) {
		return r.foreign(ctx, work)
	}
	return err
}

// foreign returns an error about an object that exists and is not the add-on's, nil if it
// is, or is gone.
func (r *Reconciler) foreign(ctx context.Context, want client.Object) error {
	live := &metav1.PartialObjectMetadata{}
	kind, err := r.Client.GroupVersionKindFor(want)
	if err != nil {
		return err
	}
	live.SetGroupVersionKind(kind)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !hasLabels(live, want.GetLabels()) {
		return fmt.Errorf("%s %s exists and lacks the labels of the add-on; delete it", kind.Kind, client.ObjectKeyFromObject(want))
	}
	return nil
}

// repair changes a work that is not as wanted.
func (r *Reconciler) repair(ctx context.Context, live, want *workv1.ManifestWork) error {
	if live.DeletionTimestamp != nil || current(live, want) {
		return nil
	}
	patch, err := repair(live, want)
	if err != nil {
		return err
	}
	target := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}}
	return client.IgnoreNotFound(r.Client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), Owner))
}

func heard(cluster *clusterv1.ManagedCluster) bool {
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return condition == nil || condition.Status != metav1.ConditionUnknown
}

func (r *Reconciler) set(status *addonv1beta1.ManagedClusterAddOnStatus, condition metav1.Condition) {
	condition.LastTransitionTime = metav1.NewTime(r.Clock.Now())
	apimeta.SetStatusCondition(&status.Conditions, condition)
}
