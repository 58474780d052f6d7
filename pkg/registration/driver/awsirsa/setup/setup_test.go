package setup_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/setup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
)

const (
	hubARN     = "arn:aws-us-gov:eks:us-gov-west-1:111111111111:cluster/hub"
	managedARN = "arn:aws-us-gov:eks:us-gov-east-1:222222222222:cluster/managed"
)

func TestSetup(t *testing.T) {
	t.Parallel()
	drivertest.RunSetup(t, drivertest.SetupSuite{
		Setup: setup.Setup{},
		Init: []string{
			"--hub-cluster-arn=" + hubARN, `--auto-approved-arn-patterns=arn:aws-us-gov:eks:.*\d`, "--aws-resource-tags=team=fleet,cost=a b",
			"--aws-identity-mapping=aws-auth", "--aws-pod-identity", "--aws-identity-creator-role-arn=arn:aws-us-gov:iam::111111111111:role/x",
		},
		Join:    []string{"--hub-cluster-arn=" + hubARN, "--managed-cluster-arn=" + managedARN},
		Changed: []string{"--aws-identity-mapping=access-entry"},
	})
}

// TestEntry: a kubeconfig whose cluster entry is called by an ARN fills in the flag that
// nobody gave, and contradicts another one.
func TestEntry(t *testing.T) {
	t.Parallel()
	flags := setup.Setup{}.InitFlags()
	if missing := flags.Missing(); len(missing) != 1 || missing[0].Flag != "hub-cluster-arn" {
		t.Errorf("missing: %v", missing)
	}
	flags.Complete("kind-hub")
	if len(flags.Missing()) != 1 {
		t.Error("an entry that is no ARN filled in the hub")
	}
	flags.Complete(hubARN)
	if missing := flags.Missing(); len(missing) > 0 {
		t.Errorf("still missing: %v", missing)
	}
	if _, err := flags.Settings(driver.InitFacts{Entry: hubARN}); err != nil {
		t.Error(err)
	}
	if _, err := flags.Settings(driver.InitFacts{Entry: managedARN}); err == nil || !strings.Contains(err.Error(), "leads to another EKS cluster, "+managedARN) {
		t.Errorf("another cluster: %v", err)
	}
	joining := setup.Setup{}.JoinFlags()
	joining.Complete(managedARN)
	if missing := joining.Missing(); len(missing) != 1 || missing[0].Flag != "hub-cluster-arn" {
		t.Errorf("join misses %v", missing)
	}
}
