package aws_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

func TestAccessEntries(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	file := filepath.Join(t.TempDir(), "entries.json")
	cloud.AddCluster(t, aws.Cluster{ARN: hubCluster, Endpoint: "https://hub", CA: []byte("CA"), Issuer: issuerURL, EntriesFile: file})
	cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: anyone})
	ctx, c := t.Context(), newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount)).eks
	name, role := new("hub-0"), new(hubRole)
	create := func(role, user, group string) error {
		_, err := c.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
			ClusterName: name, PrincipalArn: &role, Username: &user, KubernetesGroups: []string{group}, Tags: map[string]string{"a": "b"},
		})
		return err
	}
	got, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: name})
	if err != nil || *got.Cluster.Arn != hubCluster || *got.Cluster.CertificateAuthority.Data != "Q0E=" ||
		got.Cluster.AccessConfig.AuthenticationMode != aws.APIAndConfigMap || *got.Cluster.Identity.Oidc.Issuer != issuerURL {
		t.Errorf("got %+v, %v", got, err)
	}
	expect(t, "a reserved group", create(*role, "u", "system:open-cluster-management:c"), "InvalidParameterException")
	expect(t, "a reserved user", create(*role, "system:u", "g"), "InvalidParameterException")
	expect(t, "no such role", create(managedRole, "u", "g"), "InvalidParameterException")
	expect(t, "an entry", create(*role, "managed-0", "open-cluster-management:managed-0"), "")
	expect(t, "an entry again", create(*role, "managed-0", "g"), "ResourceInUseException")
	_, err = c.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{ClusterName: name, PrincipalArn: role, KubernetesGroups: []string{"g"}})
	expect(t, "update", err, "")
	entry, err := c.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: name, PrincipalArn: role})
	if err != nil || *entry.AccessEntry.Username != "managed-0" || !slices.Equal(entry.AccessEntry.KubernetesGroups, []string{"g"}) ||
		entry.AccessEntry.Tags["a"] != "b" || entry.AccessEntry.CreatedAt == nil {
		t.Fatalf("got %+v, %v", entry, err)
	}
	_, err = c.TagResource(ctx, &eks.TagResourceInput{ResourceArn: entry.AccessEntry.AccessEntryArn, Tags: map[string]string{"c": "d"}})
	expect(t, "tag", err, "")
	if known := cloud.AccessEntries(hubCluster); len(known) != 1 || known[0].Tags["c"] != "d" || known[0].Tags["a"] != "b" {
		t.Errorf("entries: %+v", known)
	}
	if mapped := mappings(t, file); len(mapped) != 1 || mapped[0]["rolearn"] != hubRole || mapped[0]["userid"] == "" {
		t.Errorf("the file says %v", mapped)
	}
	list, err := c.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: name})
	if err != nil || !slices.Equal(list.AccessEntries, []string{hubRole}) {
		t.Errorf("list: %+v, %v", list, err)
	}
	_, err = c.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: name, PrincipalArn: role})
	expect(t, "delete", err, "")
	_, err = c.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: name, PrincipalArn: role})
	expect(t, "delete again", err, "ResourceNotFoundException")
	if mapped := mappings(t, file); len(mapped) != 0 {
		t.Errorf("the file says %v", mapped)
	}
}

// mappings are what the authenticator would read.
func mappings(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ MapRoles []map[string]any }
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return document.MapRoles
}

func TestAccessEntriesNeedTheMode(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	cloud.AddCluster(t, aws.Cluster{ARN: hubCluster, AuthenticationMode: aws.ConfigMap})
	cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: anyone})
	c := newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount)).eks
	in := &eks.CreateAccessEntryInput{ClusterName: new("hub-0"), PrincipalArn: new(hubRole)}
	_, err := c.CreateAccessEntry(t.Context(), in)
	expect(t, "CONFIG_MAP", err, "InvalidRequestException")
	in.ClusterName = new("none")
	_, err = c.CreateAccessEntry(t.Context(), in)
	expect(t, "no cluster", err, "ResourceNotFoundException")
	in.ClusterName = new("hub-0")
	_, err = newClients(t, cloud, "eu-west-1", cloud.AddAdmin(t, "aws", hubAccount)).eks.CreateAccessEntry(t.Context(), in)
	expect(t, "another region", err, "ResourceNotFoundException")
}

// TestEntriesArePermittedOneByOne shows that an access entry is a resource of its
// own, except when it is created.
func TestEntriesArePermittedOneByOne(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	cloud.AddCluster(t, aws.Cluster{ARN: hubCluster})
	cloud.AddRole(t, aws.Role{ARN: hubRole, Trust: anyone})
	in := &eks.CreateAccessEntryInput{ClusterName: new("hub-0"), PrincipalArn: new(hubRole)}
	out := &eks.DeleteAccessEntryInput{ClusterName: new("hub-0"), PrincipalArn: new(hubRole)}
	entries := "arn:aws:eks:us-west-2:111122223333:access-entry/hub-0/role/111122223333/ocm-hub-*/*"
	byCluster := newClients(t, cloud, region, cloud.AddUser(t, "arn:aws:iam::111122223333:user/a", allow("eks:*", hubCluster)))
	byEntry := newClients(t, cloud, region, cloud.AddUser(t, "arn:aws:iam::111122223333:user/b", allow("eks:*", entries)))
	_, err := byEntry.eks.CreateAccessEntry(t.Context(), in)
	expect(t, "create with a right to entries", err, "AccessDeniedException")
	_, err = byCluster.eks.CreateAccessEntry(t.Context(), in)
	expect(t, "create with a right to the cluster", err, "")
	_, err = byCluster.eks.DeleteAccessEntry(t.Context(), out)
	expect(t, "delete with a right to the cluster", err, "AccessDeniedException")
	_, err = byEntry.eks.DeleteAccessEntry(t.Context(), out)
	expect(t, "delete with a right to entries", err, "")
	_, err = byCluster.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: new("ocm-hub-1")})
	expect(t, "another service", err, "AccessDenied")
}
