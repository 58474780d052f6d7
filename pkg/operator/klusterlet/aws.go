package klusterlet

import (
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// awsArgs are the agent's flags for the awsirsa driver.
func awsArgs(k *operatorv1.Klusterlet) []string {
	pair, ok := identity.OfKlusterlet(k)
	if !ok {
		return nil
	}
	return []string{
		"--registration-auth=" + string(driver.AWSIRSA),
		"--hub-cluster-arn=" + pair.Hub.String(),
		"--managed-cluster-arn=" + pair.Managed.String(),
		"--managed-cluster-role-suffix=" + pair.Identifier(),
	}
}

// accountAnnotations are those of the agent's ServiceAccount: on EKS, the IAM role
// that its pods get. EKS Pod Identity does not look at them.
func accountAnnotations(k *operatorv1.Klusterlet) map[string]string {
	pair, ok := identity.OfKlusterlet(k)
	if !ok {
		return nil
	}
	return map[string]string{names.AnnotationAWSRole: pair.ManagedRole().String()}
}
