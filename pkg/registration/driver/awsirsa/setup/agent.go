package setup

import (
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// ValidateAgent implements driver.AgentSetup.
func (Setup) ValidateAgent(settings operatorv1.RegistrationDriver) error {
	_, err := identity.PairOf(settings)
	return err
}

// AgentRuntime implements driver.AgentSetup. EKS Pod Identity does not look at the
// annotation of the ServiceAccount.
func (Setup) AgentRuntime(settings operatorv1.RegistrationDriver) driver.Runtime {
	pair, err := identity.PairOf(settings)
	if err != nil {
		return driver.Runtime{} // Such a Klusterlet is rejected.
	}
	return driver.Runtime{
		Args: []string{
			"--registration-auth=" + string(identity.AuthType),
			"--" + hubspec.FlagCluster + "=" + pair.Hub.String(),
			"--" + FlagManaged + "=" + pair.Managed.String(),
			"--" + flagSuffix + "=" + pair.Identifier(),
		},
		Account: map[string]string{identity.AnnotationRole: pair.ManagedRole().String()},
	}
}
