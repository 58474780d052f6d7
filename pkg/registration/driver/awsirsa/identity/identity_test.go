package identity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

const (
	hubARN     = "arn:aws:eks:eu-west-1:111111111111:cluster/hub"
	managedARN = "arn:aws:eks:us-east-2:222222222222:cluster/managed_1"
	issuer     = "oidc.eks.us-east-2.amazonaws.com/id/0123456789ABCDEF"
)

func cluster(t *testing.T, arn string) awsarn.Cluster {
	t.Helper()
	c, err := awsarn.ParseCluster(arn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pair(t *testing.T, hub, managed string) identity.Pair {
	t.Helper()
	p, err := identity.NewPair(cluster(t, hub), cluster(t, managed))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestIdentifier has the check value that Open Cluster Management publishes.
func TestIdentifier(t *testing.T) {
	t.Parallel()
	if got := identity.Identifier("hubaccount1", "hubcluster1", "managedaccount1", "managedcluster1"); got != "79e99112993014816615711cbd35a9bc" {
		t.Errorf("got %s", got)
	}
	p := pair(t, hubARN, managedARN)
	if want := identity.Identifier("111111111111", "hub", "222222222222", "managed_1"); p.Identifier() != want {
		t.Errorf("got %s, want %s", p.Identifier(), want)
	}
	elsewhere := pair(t, hubARN, strings.Replace(managedARN, "us-east-2", "us-east-1", 1))
	if elsewhere.Identifier() != p.Identifier() {
		t.Error("the identifier depends on the region, OCM's does not")
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	p := pair(t, "arn:aws-cn:eks:cn-north-1:111111111111:cluster/hub", "arn:aws-cn:eks:cn-north-1:222222222222:cluster/m")
	id := identity.Identifier("111111111111", "hub", "222222222222", "m")
	for got, want := range map[string]string{
		p.ManagedRole().String(): "arn:aws-cn:iam::222222222222:role/ocm-managed-cluster-" + id,
		p.HubRole().String():     "arn:aws-cn:iam::111111111111:role/ocm-hub-" + id,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if _, err := awsarn.ParseRole(got); err != nil {
			t.Error(err)
		}
	}
	want := []identity.Tag{
		{Key: "hub_cluster_account_id", Value: "111111111111"},
		{Key: "hub_cluster_name", Value: "hub"},
		{Key: "managed_cluster_account_id", Value: "222222222222"},
		{Key: "managed_cluster_name", Value: "m"},
	}
	if got := p.RoleOfAgents(identity.Source{}, identity.Accounts{}).Tags; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestPartitionsMustMatch(t *testing.T) {
	t.Parallel()
	_, err := identity.NewPair(cluster(t, hubARN), cluster(t, "arn:aws-cn:eks:cn-north-1:222222222222:cluster/m"))
	if err == nil || !strings.Contains(err.Error(), "roles cannot be assumed across partitions") {
		t.Errorf("got %v", err)
	}
}

// TestCreatorRole: a hub's name may have 31 characters before the role's has 65.
func TestCreatorRole(t *testing.T) {
	t.Parallel()
	named := func(n int) awsarn.Cluster {
		c := cluster(t, hubARN)
		c.Name = strings.Repeat("h", n)
		return c
	}
	role, err := identity.CreatorRole(named(31))
	if err != nil || role.String() != "arn:aws:iam::111111111111:role/"+strings.Repeat("h", 31)+"_managed-cluster-identity-creator" {
		t.Errorf("got %s, %v", role, err)
	}
	if _, err := awsarn.ParseRole(role.String()); err != nil {
		t.Error(err)
	}
	_, err = identity.CreatorRole(named(32))
	long, ok := errors.AsType[*identity.NameTooLongError](err)
	if !ok || !strings.Contains(err.Error(), "has 65 characters, more than the 64 of IAM") || !strings.Contains(long.Hint(), "--aws-identity-creator-role-arn") {
		t.Errorf("got %v", err)
	}
}

func TestCheckOwner(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]bool{
		"arn:aws:iam::111111111111:role/x":    true,
		"arn:aws:iam::222222222222:role/x":    false,
		"arn:aws-cn:iam::111111111111:role/x": false,
	} {
		role, err := awsarn.ParseRole(arn)
		if err != nil {
			t.Fatal(err)
		}
		if err := identity.CheckOwner(role, cluster(t, hubARN)); (err == nil) != want {
			t.Errorf("%s: got %v", arn, err)
		}
	}
}

// golden returns a document of testdata for the clusters of this test, in one line.
func golden(t *testing.T, name string, p identity.Pair) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"<hub-account-id>", p.Hub.Account, "<hub-cluster-account-id>", p.Hub.Account, "<hub-cluster-name>", p.Hub.Name, "<hub-region>", p.Hub.Region,
		"<managed-cluster-account-id>", p.Managed.Account, "<managed-cluster-name>", p.Managed.Name, "<managed-region>", p.Managed.Region,
		"<md5-hash-unique-identifier>", p.Identifier(), "<oidc-provider>", issuer, "<klusterlet-name>", "klusterlet",
		"arn:aws:", "arn:"+string(p.Hub.Partition)+":",
	).Replace(string(data))
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestDocuments compares the documents, member by member and in order, with those
// that Open Cluster Management publishes for registration by AWS IRSA. The
// documents with pod-identity in their names, and what the identity creator may
// do, are ours. All partitions have the same but for the ARNs.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, arns := range [][2]string{
		{hubARN, managedARN},
		{"arn:aws-us-gov:eks:us-gov-west-1:111111111111:cluster/hub", "arn:aws-us-gov:eks:us-gov-east-1:222222222222:cluster/m"},
		{"arn:aws-cn:eks:cn-north-1:111111111111:cluster/hub", "arn:aws-cn:eks:cn-northwest-1:222222222222:cluster/m"},
	} {
		p := pair(t, arns[0], arns[1])
		agents := identity.AgentAccounts(names.AgentNamespace, names.KlusterletName)
		irsa, pods := identity.Source{Issuer: issuer}, identity.Source{}
		creator, err := identity.CreatorRole(p.Hub)
		if err != nil {
			t.Fatal(err)
		}
		for name, document := range map[string]identity.Policy{
			"managed-trust":               p.RoleOfAgents(irsa, agents).Trust,
			"managed-access":              *p.RoleOfAgents(irsa, agents).Access,
			"managed-trust-pod-identity":  p.RoleOfAgents(pods, agents).Trust,
			"managed-access-pod-identity": *p.RoleOfAgents(pods, agents).Access,
			"hub-trust":                   p.RoleOnHub(irsa).Trust,
			"hub-trust-pod-identity":      p.RoleOnHub(pods).Trust,
			"hub-access":                  p.DescribeHub(),
			"creator-trust":               identity.Creator(p.Hub, creator, irsa).Trust,
			"creator-access":              *identity.Creator(p.Hub, creator, irsa).Access,
		} {
			got, err := document.Compact()
			if err != nil {
				t.Fatal(err)
			}
			if want := golden(t, name, p); got != want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, want)
			}
		}
		if p.RoleOnHub(irsa).Access != nil {
			t.Error("the role on the hub has an access policy")
		}
	}
}

func TestSingletonHasOneAccount(t *testing.T) {
	t.Parallel()
	p := pair(t, hubARN, managedARN)
	role := p.RoleOfAgents(identity.Source{Issuer: issuer}, identity.SingletonAccounts("ns", "k"))
	text, err := role.Trust.Compact()
	if err != nil || strings.Contains(text, "registration-sa") || !strings.Contains(text, "system:serviceaccount:ns:k-work-sa") || len(role.Trust.Statement) != 1 {
		t.Errorf("got %s, %v", text, err)
	}
}
