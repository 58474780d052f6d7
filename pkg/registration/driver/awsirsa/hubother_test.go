package awsirsa_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// otherUser is an administrator of the hub's account.
type otherUser struct {
	hub string
	eks *eks.Client
	iam *iam.Client
}

func (e *env) client(t *testing.T) otherUser {
	t.Helper()
	config := e.awsConfig(t, e.cloud.AddAdmin(t, "aws", hubAccount))
	config.Region = hubRegion
	return otherUser{e.hub.Name, eks.NewFromConfig(config), iam.NewFromConfig(config)}
}

func (s otherUser) deleteEntry(t *testing.T, role string) {
	t.Helper()
	if _, err := s.eks.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: &s.hub, PrincipalArn: &role}); err != nil {
		t.Fatal(err)
	}
}

func (s otherUser) updateEntry(t *testing.T, entry *aws.AccessEntry) {
	t.Helper()
	in := &eks.UpdateAccessEntryInput{ClusterName: &s.hub, PrincipalArn: &entry.PrincipalARN, Username: &entry.Username, KubernetesGroups: entry.Groups}
	if _, err := s.eks.UpdateAccessEntry(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
