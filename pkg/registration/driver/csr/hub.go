package csr

import (
	"context"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

var _ driver.Hub = Hub{}

// Hub is the hub's side of the csr driver. The certificate that the hub's own
// signer issues is all that it grants, and RBAC decides what the certificate is
// worth, so it is no driver.Granter.
type Hub struct{}

// Admits implements driver.Hub: this driver has no rule of its own about which
// cluster may be accepted without a person.
func (Hub) Admits(context.Context, *clusterv1.ManagedCluster) (driver.Admission, error) {
	return driver.Admission{Admitted: true}, nil
}
