package census

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// State is the state of a cluster on the hub, in a word.
type State string

// The states of a cluster. Of several that hold, a cluster has the first.
const (
	Deleting State = "Deleting"
	Denied   State = "Denied"
	// Pending clusters wait to be accepted.
	Pending State = "Pending"
	// Joining clusters are accepted, and their agent has not reported yet.
	Joining State = "Joining"
	// Expired clusters have an agent whose certificate has expired.
	Expired State = "Expired"
	// Unknown clusters have an agent that is silent.
	Unknown State = "Unknown"
	// Unavailable clusters have an API server that does not answer its agent.
	Unavailable State = "Unavailable"
	// Overdue clusters have an agent that is late: with its lease or its certificate.
	Overdue State = "Overdue"
	Ready   State = "Ready"
)

// States returns all states, in the order in which Of checks them.
func States() []State {
	return []State{Deleting, Denied, Pending, Joining, Expired, Unknown, Unavailable, Overdue, Ready}
}

// Of returns the state of a cluster.
func Of(cluster *clusterv1.ManagedCluster) State {
	conditions := cluster.Status.Conditions
	find := func(kind string) metav1.Condition {
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil {
			return *c
		}
		return metav1.Condition{}
	}
	available := find(clusterv1.ManagedClusterConditionAvailable).Status
	credential := find(names.ConditionCredentialOverdue)
	switch {
	case !cluster.DeletionTimestamp.IsZero():
		return Deleting
	case !cluster.Spec.HubAcceptsClient && find(clusterv1.ManagedClusterConditionHubAccepted).Type != "":
		return Denied
	case !cluster.Spec.HubAcceptsClient:
		return Pending
	case find(clusterv1.ManagedClusterConditionJoined).Status != metav1.ConditionTrue, available == "":
		return Joining
	case credential.Status == metav1.ConditionTrue && credential.Reason == names.ReasonCredentialExpired:
		return Expired
	case available == metav1.ConditionUnknown:
		return Unknown
	case available == metav1.ConditionFalse:
		return Unavailable
	case credential.Status == metav1.ConditionTrue, find(names.ConditionLeaseOverdue).Status == metav1.ConditionTrue:
		return Overdue
	}
	return Ready
}
