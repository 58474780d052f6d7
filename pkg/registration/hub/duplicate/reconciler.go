package duplicate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.duplicate"

const (
	// indexID is the cache index of accepted clusters by id.
	indexID = "cluster-id"
	// most is how many other names a message lists.
	most = 5
)

// Reconciler reports clusters that joined more than once.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Clock dates conditions.
	Clock clock.PassiveClock
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	index := func(object client.Object) []string {
		if id := idOf(object); id != "" {
			return []string{id}
		}
		return nil
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.ManagedCluster{}, indexID, index); err != nil {
		return err
	}
	changed := builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return idOf(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return idOf(e.ObjectOld) != idOf(e.ObjectNew) },
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.duplicate").
		For(&clusterv1.ManagedCluster{}, changed).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.others), changed).
		Complete(r)
}

// idOf is the id of a cluster that the hub accepts, empty for any other.
func idOf(object client.Object) string {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	if !ok || !cluster.Spec.HubAcceptsClient || cluster.DeletionTimestamp != nil {
		return ""
	}
	return cluster.Annotations[names.AnnotationClusterID]
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return clusterpatch.Reconcile(ctx, r.Client, req, r.reconcile)
}

func (r *Reconciler) reconcile(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	var others []string
	for _, other := range r.others(ctx, cluster) {
		if other.Name != cluster.Name && idOf(cluster) != "" {
			others = append(others, other.Name)
		}
	}
	condition := metav1.Condition{
		Type: names.ConditionClusterIDConflict, Status: metav1.ConditionFalse,
		Reason: names.ReasonJoinedOnce, Message: "The managed cluster is registered under one name",
	}
	if len(others) > 0 {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, names.ReasonJoinedTwice, message(others)
	} else if apimeta.FindStatusCondition(cluster.Status.Conditions, condition.Type) == nil {
		return ctrl.Result{}, nil
	}
	_, err := clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), condition)
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func message(others []string) string {
	slices.Sort(others)
	listed := strings.Join(others[:min(len(others), most)], ", ")
	if more := len(others) - most; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return "The managed cluster is also registered as " + listed + "; a cluster can register with a hub only once: detach all but one of these names"
}

// others returns the accepted clusters with the id of a cluster, itself included.
func (r *Reconciler) others(ctx context.Context, cluster client.Object) []reconcile.Request {
	id := cluster.GetAnnotations()[names.AnnotationClusterID]
	if id == "" {
		return nil
	}
	return watch.Listed(ctx, r.Client, &clusterv1.ManagedClusterList{}, client.MatchingFields{indexID: id})
}
