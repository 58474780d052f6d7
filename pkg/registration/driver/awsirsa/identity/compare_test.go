package identity_test

import (
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// TestDifferences: documents are compared by what they say, and a difference names
// the element.
func TestDifferences(t *testing.T) {
	t.Parallel()
	pair := identity.Pair{
		Hub:     awsarn.Cluster{Partition: awsarn.AWS, Region: "eu-west-1", Account: "111111111111", Name: "hub"},
		Managed: awsarn.Cluster{Partition: awsarn.AWS, Region: "eu-west-1", Account: "222222222222", Name: "m"},
	}
	role := pair.RoleOfAgents(identity.Source{}, identity.AgentAccounts("ns", "k"))
	const (
		principal = `"Principal":{"Service":"pods.eks.amazonaws.com"}`
		action    = `"Action":["sts:AssumeRole","sts:TagSession"]`
		equals    = `"Condition":{"StringEquals":{"aws:RequestTag/eks-cluster-arn":"arn:aws:eks:eu-west-1:222222222222:cluster/m",` +
			`"aws:RequestTag/kubernetes-namespace":["ns"],"aws:RequestTag/kubernetes-service-account":["k-work-sa","k-registration-sa"]}}`
		head = `{"Version":"2012-10-17","Statement":`
	)
	for document, want := range map[string][]string{
		// The same in other spellings.
		head + `[{"Effect":"Allow",` + principal + `,` + action + `,` + equals + `}]}`:                                                                        nil,
		head + `{"Sid":"x",` + equals + `,"Effect":"Allow","Action":["sts:TagSession","sts:AssumeRole"],"Principal":{"Service":["pods.eks.amazonaws.com"]}}}`: nil,
		// Differences.
		`{"Version":"2008-10-17","Statement":{"Effect":"Allow",` + principal + `,` + action + `,` + equals + `}}`: {
			`Version is "2008-10-17", and must be "2012-10-17"`,
		},
		head + `{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole",` + equals + `}}`: {
			`Statement.Action lacks "sts:TagSession"`,
			`Statement.Principal.AWS is "*", and must not exist`,
			`Statement.Principal.Service is missing, and must be "pods.eks.amazonaws.com"`,
		},
		head + `[{"Effect":"Allow",` + principal + `,` + action + `,` + equals + `},{"Effect":"Deny","Principal":"*","Action":"sts:*"}]}`: {
			`Statement has {"Action":["sts:*"],"Effect":"Deny","Principal":"*"}, which must not exist`,
		},
		head + `[]}`: {
			`Statement lacks {"Action":["sts:AssumeRole","sts:TagSession"],"Condition":{"StringEquals":{` +
				`"aws:RequestTag/eks-cluster-arn":"arn:aws:eks:eu-west-1:222222222222:cluster/m","aws:RequestTag/kubernetes-namespace":"ns",` +
				`"aws:RequestTag/kubernetes-service-account":["k-registration-sa","k-work-sa"]}},"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"}}`,
		},
		`{`: {"not a policy document"},
	} {
		if got := role.Trust.Differences(document); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", document, got, want)
		}
	}
}
