package tokeninfra

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonmetrics"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Owner is the field manager of everything this controller writes.
const Owner client.FieldOwner = "ocm.tokeninfra"

// takenDelay is the retry interval of an add-on whose ServiceAccount has another owner.
const takenDelay = time.Minute

// Reconciler keeps the token infrastructure of add-ons.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server, where a stale answer would leave
	// something behind or take something over.
	Live client.Reader
	// Clock dates conditions, and says when a switch of the driver is over.
	Clock clock.PassiveClock
	// Events records events about changes; the condition reports the state.
	Events events.EventRecorder
	// Metrics counts what is ready and what is not.
	Metrics *addonmetrics.Readiness
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	after, err := r.reconcile(ctx, req.NamespacedName)
	if errors.Is(err, errTaken) { // The condition says so; what the other one does is not watched.
		return ctrl.Result{RequeueAfter: takenDelay}, nil
	}
	return mergepatch.Settled(ctrl.Result{RequeueAfter: after}, err)
}

// reconcile returns when to look again if nothing changes, 0 for never.
func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
	addOn := &addonv1beta1.ManagedClusterAddOn{}
	err = r.Client.Get(ctx, key, addOn)
	if apierrors.IsNotFound(err) {
		r.Metrics.Forget(key)
		return 0, r.clear(ctx, key, r.Client)
	} else if err != nil {
		return 0, err
	}
	v, err := r.decide(ctx, addOn)
	if err != nil {
		return 0, err
	}
	switch v.action {
	case build:
		return 0, r.build(ctx, addOn, v.account)
	case remove:
		return 0, r.remove(ctx, addOn, v.condition)
	case retain:
	}
	if v.condition == nil {
		r.Metrics.Observe(key, condition(addOn))
		return v.until, nil
	}
	return v.until, r.report(ctx, addOn, *v.condition)
}

// decide returns the decision for an add-on and the cluster that the cache has.
func (r *Reconciler) decide(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (decision, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: addOn.Namespace}, cluster)
	if apierrors.IsNotFound(err) {
		return decide(addOn, nil, r.Clock.Now()), nil
	}
	return decide(addOn, cluster, r.Clock.Now()), err
}

// build creates missing objects, sets the condition, and then deletes the objects of an
// earlier choice of the agent.
func (r *Reconciler) build(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, account string) error {
	key := client.ObjectKeyFromObject(addOn)
	uid, err := r.ensure(ctx, key, account)
	if err != nil {
		return r.failed(ctx, addOn, err)
	}
	err = r.report(ctx, addOn, ready(names.TokenServiceAccount{Namespace: addOn.Namespace, Name: account, UID: string(uid)}))
	if err != nil {
		return err
	}
	objects, err := made(ctx, r.Client, key)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if _, ok := object.(*metav1.PartialObjectMetadata); ok && object.GetName() != account {
			if err := r.delete(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reconciler) ensure(ctx context.Context, key types.NamespacedName, account string) (types.UID, error) {
	uid, err := r.ensureAccount(ctx, key, account)
	if err != nil {
		return "", err
	}
	if err := r.ensureRole(ctx, key, account); err != nil {
		return "", err
	}
	return uid, r.ensureBinding(ctx, key)
}

// failed says why there is no infrastructure.
func (r *Reconciler) failed(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, err error) error {
	if apierrors.IsConflict(err) {
		return err
	}
	reason := names.ReasonTokenInfrastructureFailed
	if errors.Is(err, errTaken) {
		reason = names.ReasonServiceAccountTaken
	}
	if sayErr := r.report(ctx, addOn, *notReady(reason, "Failed to apply token infrastructure: %v", err)); sayErr != nil {
		return sayErr
	}
	return err
}

// remove takes everything away and then says so, or says nothing any more.
func (r *Reconciler) remove(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, why *metav1.Condition) error {
	before := condition(addOn)
	// The condition is set last and removed last: while it names an identity, the cache
	// may lack objects.
	reader := r.Live
	if before == nil || why != nil && before.Reason == why.Reason {
		reader = r.Client
	}
	if err := r.clear(ctx, client.ObjectKeyFromObject(addOn), reader); err != nil {
		return err
	}
	if why != nil {
		return r.report(ctx, addOn, *why)
	}
	r.Metrics.Forget(client.ObjectKeyFromObject(addOn))
	return addonpatch.RemoveCondition(ctx, r.Client, Owner, addOn, names.ConditionTokenInfrastructureReady)
}

// clear deletes the objects of an add-on that reader has. Objects that appear in the
// cache later trigger a reconciliation.
func (r *Reconciler) clear(ctx context.Context, key types.NamespacedName, reader client.Reader) error {
	objects, err := made(ctx, reader, key)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := r.delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// report sets the condition, and records an event about a change that needs an action
// of a user or explains why an add-on gets a new token.
func (r *Reconciler) report(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, condition metav1.Condition) error {
	before := apimeta.FindStatusCondition(addOn.Status.Conditions, condition.Type)
	r.Metrics.Observe(client.ObjectKeyFromObject(addOn), &condition)
	changed, err := addonpatch.SetConditions(ctx, r.Client, Owner, addOn, r.Clock.Now(), condition)
	if err != nil || !changed {
		return err
	}
	switch {
	case condition.Status != metav1.ConditionTrue && (before == nil || before.Reason != condition.Reason):
		r.event(addOn, corev1.EventTypeWarning, condition)
	case condition.Status == metav1.ConditionTrue && before != nil:
		r.event(addOn, corev1.EventTypeNormal, condition)
	}
	return nil
}

func (r *Reconciler) event(addOn *addonv1beta1.ManagedClusterAddOn, kind string, condition metav1.Condition) {
	const most = 1000 // What the API server takes.
	note := condition.Message
	if len(note) > most {
		note = note[:most]
	}
	regarding := &corev1.ObjectReference{
		APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn",
		Namespace: addOn.Namespace, Name: addOn.Name, UID: addOn.UID,
	}
	r.Events.Eventf(regarding, nil, kind, condition.Reason, "TokenInfrastructure", "%s", note)
}

// expected reports whether an object that appeared is one that its add-on
// should have and has not been waiting for in vain. It reads the cache only.
func (r *Reconciler) expected(ctx context.Context, object client.Object) bool {
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[names.LabelAddOnTokenName]}
	var addOn addonv1beta1.ManagedClusterAddOn
	if r.Client.Get(ctx, key, &addOn) != nil {
		return false
	}
	if failed := condition(&addOn); failed != nil && failed.Status != metav1.ConditionTrue {
		return false
	}
	v, err := r.decide(ctx, &addOn)
	return err == nil && v.action == build && slices.Contains([]string{v.account, names.AddOnTokenRole(key.Name)}, object.GetName())
}
