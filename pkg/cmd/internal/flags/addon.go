package flags

import (
	"errors"
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

const (
	// minTokenSeconds is the shortest life that the API server gives a token.
	minTokenSeconds = 600
	// advisedTokenSeconds is the shortest life that lets an add-on outlive an
	// hour without its hub.
	advisedTokenSeconds = 3600
)

// AddOnTokenSeconds checks how long the tokens of add-ons are valid; 0 is
// the default of one year. It returns what the user should know, or why it
// cannot be.
func AddOnTokenSeconds(flag string, seconds int64) (warning string, err error) {
	switch {
	case seconds < 0:
		return "", fmt.Errorf("--%s must not be negative", flag)
	case seconds == 0:
		return "", nil
	case seconds < minTokenSeconds:
		return "", fmt.Errorf("--%s must be 0 or at least %d", flag, minTokenSeconds)
	case seconds < advisedTokenSeconds:
		return fmt.Sprintf("tokens of %d seconds are for tests: in production use %d or more, so that a hub that is down for a while locks no add-on out",
			seconds, advisedTokenSeconds), nil
	}
	return "", nil
}

// The flags that name the EKS clusters of a registration by AWS IAM.
const (
	HubARN     = "hub-cluster-arn"
	ManagedARN = "managed-cluster-arn"
)

// Pair reads the ARNs of two EKS clusters, which the driver awsirsa needs.
func Pair(hub, managed string) (identity.Pair, error) {
	var errs []error
	parse := func(flag, arn string) (cluster awsarn.Cluster) {
		err := errors.New("the registration driver awsirsa needs it")
		if arn != "" {
			cluster, err = awsarn.ParseCluster(arn)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
		return cluster
	}
	pair := identity.Pair{Hub: parse(HubARN, hub), Managed: parse(ManagedARN, managed)}
	if len(errs) > 0 {
		return pair, errors.Join(errs...)
	}
	return identity.NewPair(pair.Hub, pair.Managed)
}
