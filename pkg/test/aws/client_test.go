package aws_test

import (
	"errors"
	"fmt"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

const (
	region         = "us-west-2"
	hubAccount     = "111122223333"
	managedAccount = "444455556666"
	issuerURL      = "https://oidc.eks.us-west-2.amazonaws.com/id/MANAGED0"

	hubRole     = "arn:aws:iam::111122223333:role/ocm-hub-1"
	managedRole = "arn:aws:iam::444455556666:role/ocm-managed-1"
	hubCluster  = "arn:aws:eks:us-west-2:111122223333:cluster/hub-0"
)

// clients are those of the SDK, as the product uses them.
type clients struct {
	config awssdk.Config
	sts    *sts.Client
	iam    *iam.Client
	eks    *eks.Client
}

// newClients returns clients in a region that never retry, so that every answer
// is seen.
func newClients(t *testing.T, cloud *aws.Cloud, region string, c aws.Credentials) clients {
	t.Helper()
	config := awssdk.Config{
		Region:      region,
		HTTPClient:  cloud.HTTPClient(t),
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken),
		Retryer:     func() awssdk.Retryer { return awssdk.NopRetryer{} },
	}
	return clients{config, sts.NewFromConfig(config), iam.NewFromConfig(config), eks.NewFromConfig(config)}
}

// with are clients with other credentials.
func (c clients) with(p awssdk.CredentialsProvider) clients {
	config := c.config.Copy()
	config.Credentials = p
	return clients{config, sts.NewFromConfig(config), iam.NewFromConfig(config), eks.NewFromConfig(config)}
}

// code is the code of an error of AWS, "" after success.
func code(err error) string {
	if err == nil {
		return ""
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return err.Error()
}

// expect fails the test unless err has a code.
func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("%s: got %q, want %q (%v)", what, got, want, err)
	}
}

// allow is an identity policy.
func allow(action, resource string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":%q,"Resource":%q}}`, action, resource)
}

// trusting is a trust policy with a principal such as {"AWS":"..."} and a
// condition, {} for none.
func trusting(principal, action, condition string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":%s,"Action":%s,"Condition":%s}}`, principal, action, condition)
}

// byRole is a trust policy that trusts one role.
func byRole(arn string) string { return trusting(`{"AWS":"`+arn+`"}`, `"sts:AssumeRole"`, `{}`) }
