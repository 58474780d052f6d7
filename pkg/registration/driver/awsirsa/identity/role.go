package identity

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
)

// Role is an IAM role as it has to be.
type Role struct {
	ARN awsarn.Role
	// Purpose says in one sentence what the role is for.
	Purpose string
	// Trust says who may assume the role.
	Trust Policy
	// Access says what the role may do; nil when that is nothing.
	Access *Policy
	Tags   []Tag
	// Cluster, with Accounts, is whose pods get the role from EKS Pod Identity
	// without any annotation; Accounts is nil for other roles.
	Cluster  awsarn.Cluster
	Accounts *Accounts
}

// RoleOfAgents returns the role that the agents of p's managed cluster assume.
func (p Pair) RoleOfAgents(source Source, agents Accounts) Role {
	access := policy(allow(source.assume()...).on(p.HubRole().String()))
	return Role{
		ARN:     p.ManagedRole(),
		Purpose: "The agents of " + p.Managed.Name + " assume it, and with it the role that the hub made for the cluster.",
		Trust:   source.trust(p.Managed, agents), Access: &access, Tags: p.Tags(),
		Cluster: p.Managed, Accounts: source.associated(agents),
	}
}

// associated returns the accounts for the association of Pod Identity.
func (s Source) associated(accounts Accounts) *Accounts {
	if !s.PodIdentity() {
		return nil
	}
	return &accounts
}

// RoleOnHub returns the role that the hub makes for p's managed cluster when it
// accepts it. It needs no access policy: a token for the API server is a signed
// request for the caller's own identity, which every role may make. Source is the
// managed cluster's.
func (p Pair) RoleOnHub(source Source) Role {
	var tags []Equal
	for _, tag := range p.Tags() {
		tags = append(tags, equal("aws:PrincipalTag/"+tag.Key, tag.Value))
	}
	return Role{
		ARN:     p.HubRole(),
		Purpose: "The agents of " + p.Managed.Name + " are this role on the hub.",
		Trust:   policy(allow(source.assume()...).by(Principal{AWS: p.ManagedRole().String()}, tags...)),
		Tags:    p.Tags(),
	}
}

// DescribeHub returns the access policy that a role of RoleOnHub needs only for
// "aws eks update-kubeconfig". IAM takes eks:ListClusters here, but grants it on
// the resource * alone.
func (p Pair) DescribeHub() Policy {
	return policy(allow("eks:DescribeCluster", "eks:ListClusters").on(p.Hub.String()))
}

// Creator returns the role with which a hub's registration controller makes the
// roles of RoleOnHub and maps them to users of the hub, called role. It may touch no
// other roles and no other access entries.
func Creator(hub awsarn.Cluster, role awsarn.Role, source Source) Role {
	clusterRoles := roleOf(hub, hubRolePrefix+"*").String()
	entries := awsarn.AccessEntries(hub, hub.Account, hubRolePrefix+"*")
	access := policy(
		allow("iam:CreateRole", "iam:GetRole", "iam:DeleteRole", "iam:UpdateAssumeRolePolicy", "iam:TagRole",
			// IAM deletes no role that still has a policy.
			"iam:ListRolePolicies", "iam:DeleteRolePolicy", "iam:ListAttachedRolePolicies", "iam:DetachRolePolicy").on(clusterRoles),
		allow("eks:DescribeCluster", "eks:CreateAccessEntry").on(hub.String()),
		allow("eks:DescribeAccessEntry", "eks:UpdateAccessEntry", "eks:DeleteAccessEntry", "eks:TagResource").on(entries),
	)
	return Role{
		ARN:     role,
		Purpose: "The hub's registration controller assumes it to make the roles of managed clusters.",
		Trust:   source.trust(hub, ControllerAccounts()), Access: &access,
		Cluster: hub, Accounts: source.associated(ControllerAccounts()),
	}
}
