package provision

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// PolicyName is the name of the inline policy of a role.
const PolicyName = "open-cluster-management"

// Description is a role as JSON. Its schema is stable: members are only added.
type Description struct {
	Name    string `json:"name"`
	ARN     string `json:"arn"`
	Purpose string `json:"purpose"`
	// TrustPolicy and AccessPolicy are IAM policy documents; a role that may do
	// nothing has no AccessPolicy.
	TrustPolicy  identity.Policy  `json:"trustPolicy"`
	AccessPolicy *identity.Policy `json:"accessPolicy,omitempty"`
	Tags         []identity.Tag   `json:"tags,omitempty"`
	// PodIdentityAssociations are the associations that EKS Pod Identity needs in
	// addition to the role.
	PodIdentityAssociations []Association `json:"podIdentityAssociations,omitempty"`
}

// Association gives a role to the pods of a ServiceAccount.
type Association struct {
	Cluster        string `json:"cluster"`
	Region         string `json:"region"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
}

// Describe returns the descriptions of roles, in their order.
func Describe(roles []identity.Role) []Description {
	out := make([]Description, len(roles))
	for i, role := range roles {
		out[i] = Description{
			Name: role.ARN.Name, ARN: role.ARN.String(), Purpose: role.Purpose,
			TrustPolicy: role.Trust, AccessPolicy: role.Access, Tags: role.Tags,
			PodIdentityAssociations: associations(role),
		}
	}
	return out
}

func associations(role identity.Role) []Association {
	if role.Accounts == nil {
		return nil
	}
	var out []Association
	for _, name := range role.Accounts.Names {
		out = append(out, Association{
			Cluster: role.Cluster.Name, Region: role.Cluster.Region,
			Namespace: role.Accounts.Namespace, ServiceAccount: name,
		})
	}
	return out
}
