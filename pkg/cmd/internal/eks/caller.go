package eks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/ststoken"
)

// Caller is whose AWS credentials a command runs with.
type Caller struct {
	// Config has the credentials, as every AWS SDK finds them.
	Config awssdk.Config
	// ARN and Account are what AWS says, once Identify was called.
	ARN, Account string

	source *ststoken.Source
	region string
}

// New returns the caller in the region of an EKS cluster. It sends no request. A
// configuration that leads to other services than AWS's own is an error.
func New(ctx context.Context, env cli.Env, cluster awsarn.Cluster) (*Caller, error) {
	config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(cluster.Region))
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if err := cloud.CheckEndpoints(config); err != nil {
		return nil, err
	}
	source, err := ststoken.New(ctx, ststoken.Config{
		Cluster: cluster.Name, Region: cluster.Region, Clock: env.Clock,
		Load: func(context.Context, string) (awssdk.Config, error) { return config, nil },
	})
	return &Caller{Config: config, source: source, region: cluster.Region}, err
}

// Identify asks AWS who the caller is, with sts:GetCallerIdentity, which needs no
// permission. The caller must be of one of the accounts. An error that the user can
// do something about is a *cli.Explained.
func (c *Caller) Identify(ctx context.Context, accounts ...string) error {
	arn, err := c.source.Caller(ctx)
	if err != nil {
		return c.unidentified(err)
	}
	parts := strings.Split(arn, ":")
	const partOfAccount = 4
	if len(parts) <= partOfAccount {
		return fmt.Errorf("AWS returned %q as the ARN of the caller", arn)
	}
	c.ARN, c.Account = arn, parts[partOfAccount]
	if !slices.Contains(accounts, c.Account) {
		return cli.Blockedf("choose credentials of account "+strings.Join(slices.Compact(accounts), " or ")+", with AWS_PROFILE for example",
			"the credentials are of account %s: %s (sts:GetCallerIdentity)", c.Account, arn)
	}
	return nil
}

// unidentified says why AWS did not identify the caller.
func (c *Caller) unidentified(err error) error {
	const login = "log in to AWS, or choose other credentials, with AWS_PROFILE for example"
	call, ok := errors.AsType[*ststoken.Error](err)
	switch {
	case !ok:
		return err
	case Late(err):
		return &cli.Explained{Problem: "AWS did not answer in time: sts:GetCallerIdentity in " + c.region, Try: MoreTime, Code: cli.CodeTimeout}
	case call.Code != "":
		return cli.Blockedf(login+"; the call needs no permission", "AWS does not accept the credentials: sts:%s failed with %s", call.Operation, call.Code)
	case call.Operation == "":
		return cli.Blockedf(login, "no AWS credential was found: %v", innermost(err))
	}
	return cli.Blockedf("check the network and the proxy settings", "AWS did not answer sts:%s: %v", call.Operation, innermost(err))
}

// MoreTime is what to try when the time was over before AWS answered.
const MoreTime = "check the network and the proxy settings, or allow more time with --timeout"

// Late reports whether err is that the time was over before AWS answered.
func Late(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// innermost is what an error of the SDK is about in the end. The calls around it
// have their own names in their texts.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
