package klusterlet

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// evaluateAgents sets the conditions of the agents' Deployments.
func (r *Reconciler) evaluateAgents(ctx context.Context, s *scope) {
	name := names.RegistrationAgentDeployment(s.klusterlet.Name)
	s.Status.Set(metav1.Condition{
		// clusteradm waits for this condition to be False.
		// See docs/reference/wire-contract.md#klusterlet-conditions.
		Type: operatorv1.ConditionWorkDesiredDegraded, Status: metav1.ConditionFalse,
		Reason: operatorv1.ReasonKlusterletDeploymentsFunctional, Message: "this version deploys no work agent",
	})
	available := metav1.Condition{Type: operatorv1.ConditionKlusterletAvailable, Status: metav1.ConditionFalse}
	degraded := metav1.Condition{Type: operatorv1.ConditionRegistrationDesiredDegraded, Status: metav1.ConditionTrue}
	var deployment appsv1.Deployment
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Values.Namespace, Name: name}, &deployment)
	switch ready, wanted := deployment.Status.AvailableReplicas, s.Values.Registration.Replicas; {
	case err != nil:
		available.Reason, available.Message = operatorv1.ReasonKlusterletGetDeploymentFailed, fmt.Sprintf("deployment %s: %v", name, err)
		degraded.Reason, degraded.Message = available.Reason, available.Message
	case ready == 0:
		available.Reason = operatorv1.ReasonKlusterletNoAvailablePods
		available.Message = fmt.Sprintf("no pod of %s is available: run kubectl -n %s get pods", name, s.Values.Namespace)
		degraded.Reason = operatorv1.ReasonKlusterletUnavailablePods
		degraded.Message = fmt.Sprintf("0 of %d pods of %s are available", wanted, name)
	default:
		available.Status, available.Reason = metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable
		available.Message = "deployments are ready: " + name
		degraded.Reason = operatorv1.ReasonKlusterletUnavailablePods
		degraded.Message = fmt.Sprintf("%d of %d pods of %s are available", ready, wanted, name)
		if ready >= wanted && deployment.Status.ObservedGeneration >= deployment.Generation {
			degraded.Status, degraded.Reason = metav1.ConditionFalse, operatorv1.ReasonKlusterletDeploymentsFunctional
			degraded.Message = fmt.Sprintf("deployments replicas are desired: %d", wanted)
		}
	}
	s.Status.Set(available)
	s.Status.Set(degraded)
}
