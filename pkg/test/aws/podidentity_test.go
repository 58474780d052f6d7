package aws_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// TestPodIdentityAssociations: they are listed page by page and with filters, and
// each is a resource of its own.
func TestPodIdentityAssociations(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	cloud.AddCluster(t, aws.Cluster{ARN: hubCluster, Associations: []aws.Association{
		{Namespace: "a", ServiceAccount: "one", RoleARN: hubRole}, {Namespace: "a", ServiceAccount: "two", RoleARN: managedRole},
	}})
	ctx, name := t.Context(), new("hub-0")
	c := newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount)).eks
	pages := eks.NewListPodIdentityAssociationsPaginator(c, &eks.ListPodIdentityAssociationsInput{ClusterName: name, MaxResults: new(int32(1))})
	var ids []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil || len(page.Associations) != 1 {
			t.Fatalf("got %+v, %v", page, err)
		}
		ids = append(ids, *page.Associations[0].AssociationId)
	}
	if len(ids) != 2 {
		t.Fatalf("got %v", ids)
	}
	found, err := c.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{ClusterName: name, ServiceAccount: new("two")})
	if err != nil || len(found.Associations) != 1 || *found.Associations[0].AssociationId != ids[1] {
		t.Errorf("got %+v, %v", found, err)
	}
	in := &eks.DescribePodIdentityAssociationInput{ClusterName: name, AssociationId: &ids[1]}
	one, err := c.DescribePodIdentityAssociation(ctx, in)
	if err != nil || *one.Association.RoleArn != managedRole {
		t.Errorf("got %+v, %v", one, err)
	}
	_, err = c.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{ClusterName: name, AssociationId: new("a-9")})
	expect(t, "no such association", err, "ResourceNotFoundException")
	byCluster := newClients(t, cloud, region, cloud.AddUser(t, "arn:aws:iam::111122223333:user/a", allow("eks:*", hubCluster))).eks
	_, err = byCluster.DescribePodIdentityAssociation(ctx, in)
	expect(t, "with a right to the cluster", err, "AccessDeniedException")
}

// TestOIDCProviders: a provider is seen in its own account, with a permission.
func TestOIDCProviders(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	provider := cloud.AddProvider(t, "aws", hubAccount, issuerURL, []byte(`{"keys":[]}`), "x")
	in := &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: &provider}
	get := func(key aws.Credentials) (*iam.GetOpenIDConnectProviderOutput, error) {
		return newClients(t, cloud, region, key).iam.GetOpenIDConnectProvider(t.Context(), in)
	}
	got, err := get(cloud.AddAdmin(t, "aws", hubAccount))
	if err != nil || len(got.ClientIDList) != 1 || got.ClientIDList[0] != "x" || "https://"+*got.Url != issuerURL {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = get(cloud.AddAdmin(t, "aws", managedAccount))
	expect(t, "of another account", err, "NoSuchEntity")
	_, err = get(cloud.AddUser(t, "arn:aws:iam::111122223333:user/a", allow("iam:GetRole", "*")))
	expect(t, "without the permission", err, "AccessDenied")
	cloud.RemoveProvider(provider)
	_, err = get(cloud.AddAdmin(t, "aws", hubAccount))
	expect(t, "removed", err, "NoSuchEntity")
}

// TestPodSession: only the Pods of an associated ServiceAccount get a role, and only
// if the role trusts EKS Pod Identity with its session tags.
func TestPodSession(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	const trust = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"],` +
		`"Condition":{"StringEquals":{"aws:RequestTag/kubernetes-namespace":"a"}}}}`
	cloud.AddRole(t, aws.Role{ARN: managedRole, Trust: trust})
	cloud.AddCluster(t, aws.Cluster{ARN: hubCluster, Associations: []aws.Association{
		{Namespace: "a", ServiceAccount: "one", RoleARN: managedRole}, {Namespace: "b", ServiceAccount: "one", RoleARN: managedRole},
	}})
	if key, err := cloud.PodSession(hubCluster, "a", "one"); err != nil || key.SessionToken == "" {
		t.Errorf("the associated ServiceAccount: %v", err)
	}
	for _, namespace := range []string{"b", "c"} {
		if _, err := cloud.PodSession(hubCluster, namespace, "one"); err == nil {
			t.Errorf("a Pod of namespace %s got the role", namespace)
		}
	}
	cloud.AddRole(t, aws.Role{ARN: managedRole, Trust: strings.Replace(trust, `,"sts:TagSession"`, "", 1)})
	if _, err := cloud.PodSession(hubCluster, "a", "one"); err == nil {
		t.Error("a role without sts:TagSession was given to a Pod")
	}
}
