package approval

import (
	"context"
	"fmt"
	"maps"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// suspend denies a cluster that is to register in another way: admission rejects such
// a change of an accepted cluster. From here to the next acceptance no agent has
// rights, and bootstrap identities may not update a ManagedCluster, so that only an
// administrator decides what the cluster registers as.
func (a *Approver) suspend(ctx context.Context, f Facts) error {
	return a.update(ctx, f.Cluster, func(cluster *clusterv1.ManagedCluster) { cluster.Spec.HubAcceptsClient = false })
}

// accept sets hubAcceptsClient, and how the cluster registers in the same write.
func (a *Approver) accept(ctx context.Context, f Facts, d Decision) error {
	err := a.update(ctx, f.Cluster, func(cluster *clusterv1.ManagedCluster) {
		cluster.Spec.HubAcceptsClient = *d.Accept
		if *d.Accept {
			delete(cluster.Annotations, names.AnnotationLeft)
			if a.Choice.Discard {
				discard(cluster)
			}
		}
		if d.Change != nil {
			maps.DeleteFunc(cluster.Annotations, func(key, _ string) bool { return a.registers(key) })
			for key, value := range d.Change {
				if a.registers(key) {
					cluster.Annotations[key] = value
				}
			}
		}
	})
	if err != nil && d.Change != nil {
		return &SuspendedError{Cluster: f.Name, Cause: err}
	}
	return err
}

// update changes the cluster that the decision was about. One that was deleted and
// recreated since, or registers in another way by now, is another.
func (a *Approver) update(ctx context.Context, decided *clusterv1.ManagedCluster, change func(*clusterv1.ManagedCluster)) error {
	seen := decided.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := &clusterv1.ManagedCluster{}
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(seen), live); err != nil {
			return err
		}
		if live.UID != seen.UID || !a.same(live, seen) {
			return &finding.Error{Kind: finding.Blocked, Problem: "the cluster changed while this command ran", Try: "run the command again"}
		}
		patch := client.MergeFromWithOptions(live.DeepCopy(), client.MergeFromWithOptimisticLock{})
		if live.Annotations == nil {
			live.Annotations = map[string]string{}
		}
		change(live)
		if err := a.Client.Patch(ctx, live, patch); err != nil {
			return err
		}
		*decided = *live
		return nil
	})
	if err != nil {
		return fmt.Errorf("cluster %s: %w", seen.Name, err)
	}
	return nil
}

// settleRequest approves or denies a request. A decision that another client made in
// between is seen in the next pass.
func (a *Approver) settleRequest(ctx context.Context, req Request, kind certificatesv1.RequestConditionType) error {
	obj := req.Object.DeepCopy()
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue,
		Reason:  a.Name + " Approve",
		Message: fmt.Sprintf("This CSR was approved by %s certificate approve.", a.Name),
	}
	if kind == certificatesv1.CertificateDenied {
		condition.Reason = a.Name + " Deny"
		condition.Message = fmt.Sprintf("This CSR was denied by %s accept.", a.Name)
	}
	obj.Status.Conditions = append(obj.Status.Conditions, condition)
	err := a.Client.SubResource("approval").Update(ctx, obj)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("request %s: %w", req.Name, err)
	}
	return nil
}
