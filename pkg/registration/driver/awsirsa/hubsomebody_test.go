package awsirsa_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

// somebody is an administrator of the hub's account.
type somebody struct {
	hub string
	eks *eks.Client
	iam *iam.Client
}

func (e *env) client(t *testing.T) somebody {
	t.Helper()
	config := e.awsConfig(t, e.cloud.AddAdmin(t, "aws", hubAccount))
	config.Region = hubRegion
	return somebody{e.hub.Name, eks.NewFromConfig(config), iam.NewFromConfig(config)}
}

func (s somebody) deleteEntry(t *testing.T, role string) {
	t.Helper()
	if _, err := s.eks.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: &s.hub, PrincipalArn: &role}); err != nil {
		t.Fatal(err)
	}
}

func (s somebody) updateEntry(t *testing.T, entry *aws.AccessEntry) {
	t.Helper()
	in := &eks.UpdateAccessEntryInput{ClusterName: &s.hub, PrincipalArn: &entry.PrincipalARN, Username: &entry.Username, KubernetesGroups: entry.Groups}
	if _, err := s.eks.UpdateAccessEntry(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
