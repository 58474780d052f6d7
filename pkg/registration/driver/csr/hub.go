package csr

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

var _ driver.Hub = Hub{}

// Hub is the csr driver on the hub. The certificate of the hub's signer is its only
// grant, and RBAC defines its permissions, so it is not a driver.Granter.
type Hub struct{}

// Objection implements driver.Hub: this driver has no rule of its own about which
// cluster may be accepted without a person.
func (Hub) Objection(*clusterv1.ManagedCluster) string { return "" }
