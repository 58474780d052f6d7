package clustermanager

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// first returns the name of the ClusterManager that is applied. A cluster is one
// hub, with one namespace and one set of CRDs.
func (r *Reconciler) first(ctx context.Context) (string, error) {
	var list operatorv1.ClusterManagerList
	if err := r.Client.List(ctx, &list); err != nil {
		return "", fmt.Errorf("list ClusterManagers: %w", err)
	}
	all := make([]*operatorv1.ClusterManager, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	if len(all) == 0 {
		return "", nil
	}
	operand.SortByPrecedence(all, names.FinalizerClusterManager)
	return all[0].Name, nil
}

// yield leaves the hub to the ClusterManager called first. A further ClusterManager
// that an earlier release applied is deleted with the objects of its own.
func (r *Reconciler) yield(ctx context.Context, s *scope, first string) error {
	if !s.cm.DeletionTimestamp.IsZero() {
		if err := r.owned(s.cm.Name, removable()).Prune(ctx, nil); err != nil {
			return err
		}
		return r.RemoveFinalizer(ctx, s.cm)
	}
	s.Reject(metav1.Condition{Reason: ReasonAnotherClusterManager, Message: fmt.Sprintf(
		"This cluster is the hub of the ClusterManager %s, and a cluster is one hub only: delete this ClusterManager", first)})
	return s.Report(ctx)
}
