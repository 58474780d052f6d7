package identity

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Accounts are ServiceAccounts of one namespace of a cluster.
type Accounts struct {
	Namespace string
	Names     []string
}

// AgentAccounts returns the ServiceAccounts of a Klusterlet's registration and
// work agents.
func AgentAccounts(namespace, klusterlet string) Accounts {
	return Accounts{Namespace: namespace, Names: []string{
		names.RegistrationAgentServiceAccount(klusterlet), names.WorkAgentServiceAccount(klusterlet),
	}}
}

// SingletonAccounts returns the only ServiceAccount that a Klusterlet's agents
// have in the install mode Singleton.
func SingletonAccounts(namespace, klusterlet string) Accounts {
	return Accounts{Namespace: namespace, Names: []string{names.WorkAgentServiceAccount(klusterlet)}}
}

// ControllerAccounts returns the ServiceAccount of the hub's registration controller.
func ControllerAccounts() Accounts {
	return Accounts{Namespace: names.HubNamespace, Names: []string{names.HubRegistrationServiceAccount}}
}

// Source is how the pods of a cluster get the credentials of a role.
type Source struct {
	// Issuer is the issuer of the cluster's IAM OIDC provider, without https://.
	// Empty means EKS Pod Identity, which needs none.
	Issuer string
}

// PodIdentity reports whether the source is EKS Pod Identity. It sets session
// tags, which are passed on from role to role, so that every role on the way must
// allow sts:TagSession.
func (s Source) PodIdentity() bool { return s.Issuer == "" }

// assume are the actions of assuming one role with the credentials of another.
func (s Source) assume() []string {
	if s.PodIdentity() {
		return []string{"sts:AssumeRole", "sts:TagSession"}
	}
	return []string{"sts:AssumeRole"}
}

// trust lets ServiceAccounts of a cluster assume a role of the same account.
func (s Source) trust(cluster awsarn.Cluster, accounts Accounts) Policy {
	if s.PodIdentity() {
		// The request tags that EKS Pod Identity sets, see "Create IAM role with
		// trust policy required by EKS Pod Identity" in the EKS User Guide.
		return policy(allow(s.assume()...).by(Principal{Service: "pods.eks.amazonaws.com"},
			equal("aws:RequestTag/eks-cluster-arn", cluster.String()),
			equal("aws:RequestTag/kubernetes-namespace", accounts.Namespace),
			equal("aws:RequestTag/kubernetes-service-account", accounts.Names...)))
	}
	provider := awsarn.Provider{Partition: cluster.Partition, Account: cluster.Account, Issuer: s.Issuer}
	var statements []Statement
	for _, name := range accounts.Names {
		statements = append(statements, allow("sts:AssumeRoleWithWebIdentity").by(Principal{Federated: provider.String()},
			equal(s.Issuer+":sub", names.ServiceAccountUser(accounts.Namespace, name)),
			equal(s.Issuer+":aud", "sts.amazonaws.com")))
	}
	return policy(statements...)
}
