package klusterlet

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// agent is the state of the Deployment of an agent.
type agent struct {
	name      string
	namespace string
	// wanted and ready count its pods.
	wanted, ready int32
	// current says that the Deployment controller has seen the last change.
	current bool
	// err is why the Deployment could not be read.
	err error
}

// agentState reads the Deployment called name.
func (r *Reconciler) agentState(ctx context.Context, namespace, name string, wanted int32) agent {
	a := agent{name: name, namespace: namespace, wanted: wanted}
	var deployment appsv1.Deployment
	a.err = r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &deployment)
	a.ready = deployment.Status.AvailableReplicas
	a.current = deployment.Status.ObservedGeneration >= deployment.Generation
	return a
}

// evaluateAgents sets the conditions of the agents' Deployments. clusteradm waits for
// both Degraded conditions to be False.
// See docs/reference/wire-contract.md#klusterlet-conditions.
func (r *Reconciler) evaluateAgents(ctx context.Context, s *scope) {
	registration := r.agentState(ctx, s.Values.Namespace, names.RegistrationAgentDeployment(s.klusterlet.Name), s.Values.Registration.Replicas)
	s.Status.Set(registration.degraded(operatorv1.ConditionRegistrationDesiredDegraded))
	if s.Values.Work == nil || s.Values.Work.Pod.Replicas == 0 {
		s.Status.Set(metav1.Condition{
			Type: operatorv1.ConditionWorkDesiredDegraded, Status: metav1.ConditionFalse,
			Reason: operatorv1.ReasonKlusterletDeploymentsFunctional, Message: workMessage(s.klusterlet),
		})
		s.Status.Set(available(registration))
		return
	}
	work := r.agentState(ctx, s.Values.Namespace, names.WorkAgentDeployment(s.klusterlet.Name), s.Values.Work.Pod.Replicas)
	s.Status.Set(work.degraded(operatorv1.ConditionWorkDesiredDegraded))
	s.Status.Set(available(registration, work))
}

// available is the condition Available: every agent has a pod.
func available(agents ...agent) metav1.Condition {
	c := metav1.Condition{Type: operatorv1.ConditionKlusterletAvailable, Status: metav1.ConditionFalse}
	var ready []string
	for _, a := range agents {
		switch {
		case a.err != nil:
			c.Reason, c.Message = operatorv1.ReasonKlusterletGetDeploymentFailed, a.unread()
			return c
		case a.ready == 0:
			c.Reason = operatorv1.ReasonKlusterletNoAvailablePods
			c.Message = fmt.Sprintf("no pod of %s is available: run kubectl -n %s get pods", a.name, a.namespace)
			return c
		}
		ready = append(ready, a.name)
	}
	c.Status, c.Reason = metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable
	c.Message = "deployments are ready: " + strings.Join(ready, ",")
	return c
}

// degraded is the condition of an agent: True while it has fewer pods than it should.
func (a agent) degraded(kind string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: operatorv1.ReasonKlusterletUnavailablePods}
	switch {
	case a.err != nil:
		c.Reason, c.Message = operatorv1.ReasonKlusterletGetDeploymentFailed, a.unread()
	case a.ready > 0 && a.ready >= a.wanted && a.current:
		c.Status, c.Reason = metav1.ConditionFalse, operatorv1.ReasonKlusterletDeploymentsFunctional
		c.Message = fmt.Sprintf("deployments replicas are desired: %d", a.wanted)
	default:
		c.Message = fmt.Sprintf("%d of %d pods of %s are available", a.ready, a.wanted, a.name)
	}
	return c
}

func (a agent) unread() string { return fmt.Sprintf("deployment %s: %v", a.name, a.err) }
