package caller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/ststoken"
)

// Caller is whose AWS credentials a command runs with.
type Caller struct {
	// Config has the credentials, as every AWS SDK finds them.
	Config awssdk.Config
	// ARN and Account are the identity that AWS returned to Identify.
	ARN, Account string

	source *ststoken.Source
	region string
}

// New returns the caller in the region of an EKS cluster. It sends no request. It
// rejects a configuration that overrides the endpoints of AWS.
func New(ctx context.Context, clock clock.PassiveClock, cluster awsarn.Cluster) (*Caller, error) {
	config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(cluster.Region))
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if err := cloud.CheckEndpoints(config); err != nil {
		return nil, err
	}
	source, err := ststoken.New(ctx, ststoken.Config{
		Cluster: cluster.Name, Region: cluster.Region, Clock: clock,
		Load: func(context.Context, string) (awssdk.Config, error) { return config, nil },
	})
	return &Caller{Config: config, source: source, region: cluster.Region}, err
}

// Identify asks AWS who the caller is, with sts:GetCallerIdentity, which needs no
// permission. The caller must be of one of the accounts. An error that the user can
// do something about is an *Error.
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
		return &Error{
			Problem: fmt.Sprintf("the credentials are of account %s: %s (sts:GetCallerIdentity)", c.Account, arn),
			try:     "choose credentials of account " + strings.Join(slices.Compact(accounts), " or ") + ", with AWS_PROFILE for example",
		}
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
		return &Error{Problem: "AWS did not answer in time: sts:GetCallerIdentity in " + c.region, try: MoreTime, cause: context.DeadlineExceeded}
	case call.Code != "":
		return &Error{Problem: fmt.Sprintf("AWS does not accept the credentials: sts:%s failed with %s", call.Operation, call.Code), try: login + "; the call needs no permission"}
	case call.Operation == "":
		return &Error{Problem: fmt.Sprintf("no AWS credential was found: %v", innermost(err)), try: login}
	}
	return &Error{Problem: fmt.Sprintf("AWS did not answer sts:%s: %v", call.Operation, innermost(err)), try: "check the network and the proxy settings"}
}

// Error says why the credentials cannot be used.
type Error struct {
	// Problem is one sentence.
	Problem string

	try   string
	cause error
}

// Error implements error.
func (e *Error) Error() string { return e.Problem }

// Hint says what to do about it.
func (e *Error) Hint() string { return e.try }

// Blocked says that something has to change before the command can succeed.
func (e *Error) Blocked() bool { return true }

// Unwrap returns context.DeadlineExceeded if AWS did not answer in time.
func (e *Error) Unwrap() error { return e.cause }

// MoreTime is the advice for a call that timed out before AWS answered.
const MoreTime = "check the network and the proxy settings, or allow more time with --timeout"

// Late reports whether err is that the time was over before AWS answered.
func Late(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// innermost returns the root cause of an error of the SDK. The errors around it repeat
// the names of the calls.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
