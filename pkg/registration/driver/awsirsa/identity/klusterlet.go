package identity

import (
	"errors"
	"fmt"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// AuthType is the driver's name in resources, and Alias the one that OCM's commands take.
const (
	AuthType driver.AuthType = "awsirsa"
	Alias    string          = "aws-irsa"
)

// Is reports whether an authType means this driver.
func Is(authType string) bool { return authType == string(AuthType) || authType == Alias }

// PairOf returns the EKS clusters that a Klusterlet names for the awsirsa driver, or
// why its agent would not start with them.
func PairOf(d operatorv1.RegistrationDriver) (Pair, error) {
	const path = "spec.registrationConfiguration.registrationDriver.awsIrsa"
	if d.AwsIrsa == nil {
		return Pair{}, errors.New(path + " is missing: set hubClusterArn and managedClusterArn")
	}
	hub, err := awsarn.ParseCluster(d.AwsIrsa.HubClusterArn)
	if err != nil {
		return Pair{}, fmt.Errorf("%s.hubClusterArn: %w", path, err)
	}
	managed, err := awsarn.ParseCluster(d.AwsIrsa.ManagedClusterArn)
	if err != nil {
		return Pair{}, fmt.Errorf("%s.managedClusterArn: %w", path, err)
	}
	pair, err := NewPair(hub, managed)
	if err != nil {
		return Pair{}, fmt.Errorf("%s: %w", path, err)
	}
	return pair, nil
}
