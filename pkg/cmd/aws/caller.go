package aws

import (
	"context"
	"errors"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/ststoken"
)

// caller is whose AWS credentials are used.
type caller struct {
	source *ststoken.Source
	// arn and account are known once AWS was asked.
	arn, account string
}

func newCaller(ctx context.Context, env cli.Env, cluster awsarn.Cluster, config awssdk.Config) (caller, error) {
	source, err := ststoken.New(ctx, ststoken.Config{
		Cluster: cluster.Name, Region: cluster.Region, Clock: env.Clock,
		Load: func(context.Context, string) (awssdk.Config, error) { return config, nil },
	})
	return caller{source: source}, err
}

// identify asks AWS who the caller is. The caller must be of one of the accounts.
func (c *caller) identify(ctx context.Context, accounts ...string) (checks.Status, string, string) {
	arn, err := c.source.Caller(ctx)
	if err != nil {
		return unidentified(err)
	}
	parts := strings.Split(arn, ":")
	const partOfAccount = 4
	if len(parts) <= partOfAccount {
		return checks.Bad("", "AWS returned %q as the ARN of the caller", arn)
	}
	c.arn, c.account = arn, parts[partOfAccount]
	if !slices.Contains(accounts, c.account) {
		return checks.Bad("choose credentials of account "+strings.Join(slices.Compact(accounts), " or ")+", with AWS_PROFILE for example",
			"the credentials are of account %s: %s (sts:GetCallerIdentity)", c.account, arn)
	}
	return checks.Good("%s", arn)
}

// unidentified reports why AWS did not say who the caller is.
func unidentified(err error) (checks.Status, string, string) {
	const login = "log in to AWS, or choose other credentials, with AWS_PROFILE for example"
	call, ok := errors.AsType[*ststoken.Error](err)
	switch {
	case !ok:
		return checks.Broken(err)
	case call.Code != "":
		return checks.Bad(login+"; the call needs no permission", "AWS does not accept the credentials: sts:%s failed with %s", call.Operation, call.Code)
	case call.Operation == "":
		return checks.Bad(login, "no AWS credential was found: %v", innermost(err))
	}
	return checks.Bad("check the network and the proxy settings", "AWS did not answer sts:%s: %v", call.Operation, innermost(err))
}

// innermost is what an error of the SDK is about in the end. The calls around it
// have their own names in their texts.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
