package aws

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/grant"
)

// recordedRoles returns the IAM roles that the hub recorded, by the names of their clusters.
func recordedRoles(ctx context.Context, reader client.Reader) (map[string]awsarn.Role, error) {
	grants, err := grant.Recorded(ctx, reader, names.HubNamespace, identity.AuthType)
	if err != nil {
		return nil, err
	}
	roles := map[string]awsarn.Role{}
	for _, known := range grants {
		if roles[known.Cluster], err = awsirsa.GrantedRole(known); err != nil {
			return nil, err
		}
	}
	return roles, nil
}
