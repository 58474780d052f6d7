package join

import (
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/eks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// awsQuestions are about the ARNs that awsirsa needs and no flag gives. The managed
// cluster's is taken from the kubeconfig where that has one.
func (o *options) awsQuestions() []cli.Question {
	r := &o.registration
	if r.driver != driver.AWSIRSA {
		return nil
	}
	if r.managedARN == "" {
		if cluster, ok := eks.CurrentCluster(o.env.Kube); ok {
			r.managedARN = cluster.String()
		}
	}
	var questions []cli.Question
	for _, asked := range []cli.Question{
		{Flag: flags.HubARN, Text: "ARN of the hub's EKS cluster:", Answer: &r.hubARN},
		{Flag: flags.ManagedARN, Text: "ARN of this EKS cluster:", Answer: &r.managedARN},
	} {
		if *asked.Answer == "" {
			questions = append(questions, asked)
		}
	}
	return questions
}

// awsDriver is the driver of EKS clusters.
func (r *registrationFlags) awsDriver() (*operatorv1.RegistrationDriver, error) {
	pair, err := flags.Pair(r.hubARN, r.managedARN)
	if err != nil {
		return nil, err
	}
	return &operatorv1.RegistrationDriver{
		AuthType: string(driver.AWSIRSA),
		AwsIrsa:  &operatorv1.AwsIrsa{HubClusterArn: pair.Hub.String(), ManagedClusterArn: pair.Managed.String()},
	}, nil
}
