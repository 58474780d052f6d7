package aws_test

import (
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind  aws.FaultKind
		want  string
		there bool
	}{
		"throttled": {aws.Throttled, "Throttling", false},
		"broken":    {aws.Broken, "InternalFailure", false},
		"lost":      {aws.Lost, "InternalFailure", true},
		"cut":       {aws.Cut, "EOF", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := aws.Start(t)
			c := newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount)).iam
			create := func(name string) error {
				_, err := c.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &anyone})
				return err
			}
			injected := cloud.Inject(aws.Fault{Operation: "CreateRole", Kind: test.kind, Skip: 1, Times: 1})
			expect(t, "the first call", create("ocm-hub-0"), "")
			if err := create("ocm-hub-1"); !strings.Contains(code(err), test.want) {
				t.Errorf("the second call: got %v, want %s", err, test.want)
			}
			if _, there := cloud.Role(hubRole); there != test.there || injected.Hits() != 1 {
				t.Errorf("the role is there: %t, hits: %d", there, injected.Hits())
			}
			expect(t, "the third call", create("ocm-hub-2"), "")
			lasting := cloud.Inject(aws.Fault{Kind: test.kind})
			if create("ocm-hub-3") == nil || create("ocm-hub-4") == nil || lasting.Hits() != 2 {
				t.Error("a fault without an end ends")
			}
			lasting.Heal()
			expect(t, "healed", create("ocm-hub-5"), "")
		})
	}
}

// TestThrottlingIsRetried shows that the SDK takes the answer for what it is.
func TestThrottlingIsRetried(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	cloud.AddCluster(t, aws.Cluster{ARN: hubCluster})
	c := newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount))
	c.config.Retryer = func() awssdk.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Millisecond, nil })
		})
	}
	c = c.with(c.config.Credentials)
	sts2 := cloud.Inject(aws.Fault{Operation: "GetCallerIdentity", Kind: aws.Throttled, Times: 2})
	_, err := c.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	expect(t, "STS", err, "")
	eks2 := cloud.Inject(aws.Fault{Operation: "DescribeCluster", Kind: aws.Throttled, Times: 2})
	_, err = c.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: new("hub-0")})
	expect(t, "EKS", err, "")
	if sts2.Hits() != 2 || eks2.Hits() != 2 || len(cloud.Calls()) != 6 {
		t.Errorf("hits: %d and %d of %d calls", sts2.Hits(), eks2.Hits(), len(cloud.Calls()))
	}
}

// TestPropagation shows that STS and EKS see new roles and new trust later than
// IAM does, by calls or by time.
func TestPropagation(t *testing.T) {
	t.Parallel()
	cloud := aws.Start(t)
	cloud.AddCluster(t, aws.Cluster{ARN: hubCluster})
	cloud.AddRole(t, aws.Role{ARN: managedRole, Trust: anyone, Policies: map[string]string{"p": allow("sts:*", "*")}})
	admin := newClients(t, cloud, region, cloud.AddAdmin(t, "aws", hubAccount))
	agent := newClients(t, cloud, region, cloud.Session(t, managedRole, "agent", nil))
	ctx, name := t.Context(), new("ocm-hub-1")
	assume := func() error {
		_, err := agent.sts.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: new(hubRole), RoleSessionName: new("test")})
		return err
	}
	cloud.Propagation(4, time.Minute)
	_, err := admin.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: new(byRole(managedRole))})
	expect(t, "create", err, "")
	_, err = admin.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: name})
	expect(t, "IAM sees it", err, "")
	_, err = admin.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: new("hub-0"), PrincipalArn: new(hubRole)})
	expect(t, "EKS does not", err, "InvalidParameterException")
	cloud.Advance(time.Minute)
	expect(t, "a minute later, after too few calls", assume(), "AccessDenied")
	expect(t, "after enough calls", assume(), "")
	cloud.Propagation(0, time.Minute)
	other := trusting(`{"AWS":"`+hubAccount+`"}`, `"sts:AssumeRole"`, `{}`)
	_, err = admin.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: name, PolicyDocument: &other})
	expect(t, "update", err, "")
	expect(t, "STS sees the old trust", assume(), "")
	cloud.Advance(time.Minute)
	expect(t, "STS sees the new trust", assume(), "AccessDenied")
}
