package clustermanager

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Reasons of the condition Applied that are ours.
const (
	// ReasonModeNotSupported is about spec.deployOption.mode.
	ReasonModeNotSupported = "InstallModeNotSupported"
	// ReasonDriverNotSupported is about spec.registrationConfiguration.registrationDrivers.
	ReasonDriverNotSupported = "RegistrationDriverNotSupported"
	// ReasonGateNotSupported is about a feature gate that is known but not there yet.
	ReasonGateNotSupported = "FeatureGateNotSupported"
	// ReasonDeleting says what a deletion waits for.
	ReasonDeleting = "ClusterManagerDeleting"
	// ReasonHubResourceApplyFailed is about namespaces, rights and secrets.
	ReasonHubResourceApplyFailed = "HubResourceApplyFailed"
	// ReasonPlacementNotDeployed says that there is no placement controller to judge.
	ReasonPlacementNotDeployed = "PlacementNotDeployed"
)

// judgeDeployments says how the hub's pods are (contract D.8).
func (r *Reconciler) judgeDeployments(ctx context.Context, s *scope) {
	name := names.HubRegistrationDeployment(s.cm.Name)
	progressing := metav1.Condition{
		Type: operatorv1.ConditionProgressing, Status: metav1.ConditionTrue,
		Reason: operatorv1.ReasonDeploymentRolling, Message: fmt.Sprintf("Deployments %s is still rolling", name),
	}
	degraded := metav1.Condition{
		Type: operatorv1.ConditionHubRegistrationDegraded, Status: metav1.ConditionTrue,
		Reason: operatorv1.ReasonUnavailableRegistrationPod,
	}
	var deployment appsv1.Deployment
	err := r.client.Get(ctx, client.ObjectKey{Namespace: names.HubNamespace, Name: name}, &deployment)
	switch wanted, available := replicasOf(&deployment), deployment.Status.AvailableReplicas; {
	case err != nil:
		degraded.Reason = operatorv1.ReasonGetRegistrationDeploymentFailed
		degraded.Message = fmt.Sprintf("The deployment %s/%s is not there yet", names.HubNamespace, name)
		if client.IgnoreNotFound(err) != nil {
			degraded.Message = fmt.Sprintf("The deployment %s/%s: %v", names.HubNamespace, name, err)
		}
	case available < wanted:
		degraded.Message = fmt.Sprintf("%d of %d pods of the deployment %s/%s are available: look at kubectl -n %s get pods",
			available, wanted, names.HubNamespace, name, names.HubNamespace)
	default:
		degraded.Status, degraded.Reason = metav1.ConditionFalse, operatorv1.ReasonRegistrationFunctional
		degraded.Message = "Registration is managing credentials"
	}
	if err == nil && rolledOut(&deployment) {
		progressing.Status, progressing.Reason = metav1.ConditionFalse, operatorv1.ReasonUpToDate
		progressing.Message = "Components of cluster manager are up to date"
	}
	s.Status.Set(progressing)
	s.Status.Set(degraded)
	s.Status.Set(metav1.Condition{
		Type: operatorv1.ConditionHubPlacementDegraded, Status: metav1.ConditionFalse,
		Reason: ReasonPlacementNotDeployed, Message: "This version deploys no placement controller",
	})
}

// rolledOut reports whether every pod runs the current template and is available.
func rolledOut(d *appsv1.Deployment) bool {
	wanted := replicasOf(d)
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= wanted &&
		d.Status.Replicas == d.Status.UpdatedReplicas && d.Status.AvailableReplicas >= wanted
}

func replicasOf(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}
