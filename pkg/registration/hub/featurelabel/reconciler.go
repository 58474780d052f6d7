package featurelabel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.featurelabel"

// Reconciler sets the feature labels.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Clock is the hub's.
	Clock clock.PassiveClock
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.featurelabel").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(relevant)})).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, watch.ByNamespace()).
		Complete(r)
}

// relevant reports whether a change of a ManagedCluster can change its feature
// labels or the conditions of its add-ons.
func relevant(before, after *clusterv1.ManagedCluster) bool {
	return (unknown(before) == nil) != (unknown(after) == nil) || len(patchFor(before.Labels, features(after.Labels))) > 0
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return clusterpatch.Reconcile(ctx, r.Client, req, r.reconcile)
}

func (r *Reconciler) reconcile(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	var addOns addonv1beta1.ManagedClusterAddOnList
	if err := r.Client.List(ctx, &addOns, client.InNamespace(cluster.Name)); err != nil {
		return ctrl.Result{}, err
	}
	if condition := unknown(cluster); condition != nil {
		for i := range addOns.Items {
			if err := r.setUnknown(ctx, &addOns.Items[i], *condition); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{}, r.label(ctx, cluster, wanted(addOns.Items))
}

// wanted returns the feature labels that a cluster with these add-ons has.
func wanted(addOns []addonv1beta1.ManagedClusterAddOn) map[string]string {
	labels := make(map[string]string, len(addOns))
	for i := range addOns {
		key := names.LabelFeatureAddOnPrefix + addOns[i].Name
		// An add-on whose name is too long for a label key has no label.
		if addOns[i].DeletionTimestamp == nil && len(validation.IsQualifiedName(key)) == 0 {
			labels[key] = feature(&addOns[i])
		}
	}
	return labels
}

// feature is the value of an add-on's label.
// See docs/reference/wire-contract.md#feature-labels.
func feature(addOn *addonv1beta1.ManagedClusterAddOn) string {
	condition := apimeta.FindStatusCondition(addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	switch {
	case condition == nil || condition.Status == metav1.ConditionUnknown:
		return names.FeatureUnreachable
	case condition.Status == metav1.ConditionTrue:
		return names.FeatureAvailable
	}
	return names.FeatureUnhealthy
}

// features returns the feature labels among labels.
func features(labels map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range labels {
		if strings.HasPrefix(key, names.LabelFeatureAddOnPrefix) {
			found[key] = value
		}
	}
	return found
}

// patchFor returns the label patch, with nil for labels to remove, that changes the
// feature labels among labels to want.
func patchFor(labels, want map[string]string) map[string]any {
	patch := map[string]any{}
	for key, value := range want {
		if got, ok := labels[key]; !ok || got != value {
			patch[key] = value
		}
	}
	for key := range features(labels) {
		if _, ok := want[key]; !ok {
			patch[key] = nil
		}
	}
	return patch
}

func (r *Reconciler) label(ctx context.Context, cluster *clusterv1.ManagedCluster, want map[string]string) error {
	patch := patchFor(cluster.Labels, want)
	if len(patch) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": patch, "uid": cluster.UID}})
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, body), Owner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("feature labels of managed cluster %s: %w", cluster.Name, err)
	}
	return nil
}

// unknown returns the availability condition of the cluster if its status is Unknown.
func unknown(cluster *clusterv1.ManagedCluster) *metav1.Condition {
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if condition == nil || condition.Status != metav1.ConditionUnknown {
		return nil
	}
	return condition
}

// setUnknown sets the availability of an add-on to unknown for the reason of its
// cluster.
func (r *Reconciler) setUnknown(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, why metav1.Condition) error {
	kind := addonv1beta1.ManagedClusterAddOnConditionAvailable
	conditions := slices.Clone(addOn.Status.Conditions)
	if !apimeta.SetStatusCondition(&conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionUnknown, Reason: why.Reason, Message: why.Message,
		LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	}) {
		return nil
	}
	err := mergepatch.Write(ctx, r.Client, Owner, addOn, mergepatch.Fields{"status": {"conditions": conditions}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("conditions of add-on %s of cluster %s: %w", addOn.Name, addOn.Namespace, err)
	}
	return nil
}
