package hubspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

const hubARN = "arn:aws-cn:eks:cn-north-1:123456789012:cluster/hub"

func manager(s hubspec.Spec, others ...string) *operatorv1.ClusterManager {
	cm := &operatorv1.ClusterManager{}
	c := &operatorv1.RegistrationHubConfiguration{}
	for _, other := range others {
		c.RegistrationDrivers = append(c.RegistrationDrivers, operatorv1.RegistrationDriverHub{AuthType: other})
	}
	c.RegistrationDrivers = append(c.RegistrationDrivers, s.Driver())
	cm.Spec.RegistrationConfiguration = c
	cm.Annotations = s.Annotations()
	return cm
}

// TestRoundTrip: what is written into a ClusterManager is read from it.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []hubspec.Spec{
		{Cluster: hubARN},
		{
			Cluster: hubARN, Approved: []string{"a", "b,c"}, Tags: []string{"k=v"}, Mapping: "aws-auth",
			Creator: "arn:aws-cn:iam::123456789012:role/x", PodIdentity: "true",
		},
	} {
		got, ok := hubspec.Of(manager(want, "csr"))
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := got.Validate(hubspec.FieldNames()); err != nil {
			t.Error(err)
		}
	}
	if _, ok := hubspec.Of(&operatorv1.ClusterManager{}); ok {
		t.Error("a hub without drivers registers by AWS IAM")
	}
}

func TestUsesAWSAuth(t *testing.T) {
	t.Parallel()
	for mapping, want := range map[string]bool{"": true, "auto": true, "aws-auth": true, "access-entry": false, "both": false} {
		if got := (hubspec.Spec{Cluster: hubARN, Mapping: mapping}).UsesAWSAuth(); got != want {
			t.Errorf("%q: %v", mapping, got)
		}
	}
}

// TestOver: what is left out is kept, and an empty list is not left out.
func TestOver(t *testing.T) {
	t.Parallel()
	before := hubspec.Spec{Cluster: hubARN, Approved: []string{"a"}, Tags: []string{"k=v"}, Mapping: "auto", Creator: "c", PodIdentity: "true"}
	if diff := cmp.Diff(before, hubspec.Spec{}.Over(before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := hubspec.Spec{Cluster: "x", Approved: []string{}, Tags: []string{"k=w"}, Mapping: "aws-auth", Creator: "d", PodIdentity: "false"}
	if diff := cmp.Diff(want, want.Over(before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
