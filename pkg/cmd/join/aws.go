package join

import (
	"errors"
	"fmt"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// awsQuestions are about the ARNs that awsirsa needs and no flag gives. The managed
// cluster's is taken from the kubeconfig where that has one.
func (o *options) awsQuestions() []cli.Question {
	r := &o.registration
	if r.driver != driver.AWSIRSA {
		return nil
	}
	if r.managedARN == "" {
		if cluster, ok := fleet.CurrentEKSCluster(o.env.Kube); ok {
			r.managedARN = cluster.String()
		}
	}
	var questions []cli.Question
	for _, asked := range []cli.Question{
		{Flag: flagHubARN, Text: "ARN of the hub's EKS cluster:", Answer: &r.hubARN},
		{Flag: flagManagedARN, Text: "ARN of this EKS cluster:", Answer: &r.managedARN},
	} {
		if *asked.Answer == "" {
			questions = append(questions, asked)
		}
	}
	return questions
}

// awsDriver is the driver of EKS clusters.
func (r *registrationFlags) awsDriver() (*operatorv1.RegistrationDriver, error) {
	var errs []error
	parse := func(flag, arn string) awsarn.Cluster {
		if arn == "" {
			errs = append(errs, fmt.Errorf("--%s is missing: awsirsa needs the ARNs of both EKS clusters", flag))
			return awsarn.Cluster{}
		}
		cluster, err := awsarn.ParseCluster(arn)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
		return cluster
	}
	hub, managed := parse(flagHubARN, r.hubARN), parse(flagManagedARN, r.managedARN)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if _, err := identity.NewPair(hub, managed); err != nil {
		return nil, err
	}
	return &operatorv1.RegistrationDriver{
		AuthType: string(driver.AWSIRSA),
		AwsIrsa:  &operatorv1.AwsIrsa{HubClusterArn: hub.String(), ManagedClusterArn: managed.String()},
	}, nil
}
