package aws

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/policy"
)

// podIdentityService is whom a role trusts that EKS Pod Identity gives to Pods.
const podIdentityService = "pods.eks.amazonaws.com"

// PodSession returns what the EKS Pod Identity Agent gives the Pods of a
// ServiceAccount: a session of the associated role, with tags that say whose it is
// and that are passed from role to role. The caller has verified the Pod's token.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
func (c *Cloud) PodSession(clusterARN, namespace, serviceAccount string) (Credentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	denied := fail(http.StatusForbidden, "AccessDeniedException", "no role for %s/%s of %s", namespace, serviceAccount, clusterARN)
	k := c.clusters[clusterARN]
	if k == nil {
		return Credentials{}, denied
	}
	i := slices.IndexFunc(k.Associations, func(a Association) bool { return a.Namespace == namespace && a.ServiceAccount == serviceAccount })
	if i < 0 || c.roles[k.Associations[i].RoleARN] == nil {
		return Credentials{}, denied
	}
	r := c.roles[k.Associations[i].RoleARN]
	tags := map[string]string{
		"eks-cluster-arn": clusterARN, "eks-cluster-name": k.arn.name(),
		"kubernetes-namespace": namespace, "kubernetes-service-account": serviceAccount,
	}
	for _, action := range []string{"sts:AssumeRole", "sts:TagSession"} {
		trusted := c.trusts(&request{call: &Call{}}, r, &policy.Request{
			Action: action, Resource: r.ARN, Context: tagContext("aws:RequestTag", tags),
			Caller: policy.Caller{Kind: "Service", Names: []string{podIdentityService}, Account: r.arn.account},
		})
		if trusted.Effect != policy.Allowed {
			return Credentials{}, denied
		}
	}
	return c.newSession(r, session{name: "eks-" + k.arn.name(), life: time.Hour, tags: tags, transitive: maps.Clone(tags)}).Credentials, nil
}
