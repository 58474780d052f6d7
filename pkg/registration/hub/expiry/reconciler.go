package expiry

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.expiry"

// Reconciler reports certificates that are not renewed.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Clock is the hub's.
	Clock clock.PassiveClock
	// IdentityAnnotations are the annotations that identify clusters to registration
	// drivers.
	IdentityAnnotations []string
	// Recorder records events.
	Recorder event.Recorder
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.expiry").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(r.relevant)})).
		Complete(r)
}

// relevant reports whether a change of a ManagedCluster can change its condition.
func (r *Reconciler) relevant(before, after *clusterv1.ManagedCluster) bool {
	was, knew := csr.Reported(before.Status.Conditions)
	is, knows := csr.Reported(after.Status.Conditions)
	return was != is || knew != knows || r.identified(before) != r.identified(after) ||
		apimeta.IsStatusConditionTrue(before.Status.Conditions, names.ConditionCredentialOverdue) !=
			apimeta.IsStatusConditionTrue(after.Status.Conditions, names.ConditionCredentialOverdue)
}

// identified reports whether a registration driver knows the cluster by another identity
// than that of a certificate.
func (r *Reconciler) identified(cluster *clusterv1.ManagedCluster) bool {
	return !names.SameValues(cluster.Annotations, nil, r.IdentityAnnotations)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return clusterpatch.Reconcile(ctx, r.Client, req, r.reconcile)
}

func (r *Reconciler) reconcile(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	if r.identified(cluster) {
		// It has no certificate. What an agent reported of an earlier one stays in its status.
		return ctrl.Result{}, clusterpatch.DropCondition(ctx, r.Client, Owner, cluster, names.ConditionCredentialOverdue)
	}
	certificate, known := csr.Reported(cluster.Status.Conditions)
	if !known {
		// The agent holds none, or could not renew it: what was said before stays true.
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	standing, until := credential.Certificates().Standing(certificate, now)
	result := ctrl.Result{}
	if !until.IsZero() {
		result.RequeueAfter = until.Sub(now)
	}
	if standing == credential.Current && apimeta.FindStatusCondition(cluster.Status.Conditions, names.ConditionCredentialOverdue) == nil {
		return result, nil
	}
	condition := conditionOf(standing, certificate)
	changed, err := clusterpatch.Conditions(ctx, r.Client, Owner, cluster, now, condition)
	if changed && condition.Status == metav1.ConditionTrue {
		r.Recorder.Warning(cluster, condition.Reason, "CheckCredential", condition.Message)
	}
	return result, client.IgnoreNotFound(err)
}

// conditionOf says how a certificate stands.
// See docs/reference/conditions.md.
func conditionOf(standing credential.Standing, certificate credential.Validity) metav1.Condition {
	c := metav1.Condition{Type: names.ConditionCredentialOverdue, Status: metav1.ConditionTrue}
	end := credential.Timestamp(certificate.NotAfter)
	switch standing {
	case credential.Current:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, names.ReasonCredentialRenewed, "The agent has renewed its certificate"
	case credential.Overdue:
		c.Reason = names.ReasonCredentialNotRenewed
		c.Message = fmt.Sprintf("The agent should have renewed its certificate by %s; it expires at %s",
			credential.Timestamp(credential.Certificates().OverdueAt(certificate)), end)
	case credential.Ending:
		c.Reason, c.Message = names.ReasonCredentialEnding, "The agent does not renew its certificate; it expires at "+end
	case credential.Ended:
		c.Reason, c.Message = names.ReasonCredentialExpired, "The certificate of the agent expired at "+end
	}
	return c
}
