package keytrust

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Cluster is the part of a managed cluster that decides about its keys. The zero value
// is a cluster that the hub does not have.
type Cluster struct {
	// Name and UID are the ManagedCluster's.
	Name, UID string
	// Accepted is set while the hub accepts the cluster (spec.hubAcceptsClient).
	Accepted bool
	// Joined is set once the cluster's agent has joined.
	Joined bool
	// Detaching is set while the ManagedCluster is being deleted.
	Detaching bool
}

// ClusterOf returns what matters of a ManagedCluster; nil is one that does not exist.
func ClusterOf(cluster *clusterv1.ManagedCluster) Cluster {
	if cluster == nil {
		return Cluster{}
	}
	return Cluster{
		Name: cluster.Name, UID: string(cluster.UID),
		Accepted:  cluster.Spec.HubAcceptsClient,
		Joined:    apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined),
		Detaching: !cluster.DeletionTimestamp.IsZero(),
	}
}

// Rejection says why something does not count. Its zero value refuses nothing.
type Rejection struct {
	// Reason is one of names.ReasonClusterNotAccepted, ReasonClusterNotJoined,
	// ReasonKeysInvalid, ReasonKeysUnproven and ReasonKeysShared.
	Reason string
	// Message is a sentence for users.
	Message string
}

// Denied returns why no key of c is trusted, from any source: the hub denied the
// cluster, detaches it, or does not have it.
func (c Cluster) Denied() Rejection {
	switch {
	case c.Name == "":
		return Rejection{names.ReasonClusterNotAccepted, "The hub has no managed cluster of this name"}
	case c.Detaching:
		return Rejection{names.ReasonClusterNotAccepted, "The hub is detaching this cluster: its tokens are refused"}
	case !c.Accepted:
		return Rejection{names.ReasonClusterNotAccepted, "The hub does not accept this cluster: its tokens are refused"}
	}
	return Rejection{}
}

// Silent says why nothing that c publishes counts.
func (c Cluster) Silent() Rejection {
	if denied := c.Denied(); denied.Reason != "" {
		return denied
	}
	if !c.Joined {
		return Rejection{names.ReasonClusterNotJoined, "The cluster has not joined yet: the keys that it publishes do not count before"}
	}
	return Rejection{}
}
