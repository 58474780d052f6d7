package join

import (
	"fmt"
	"strings"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// driverFlags say by which driver the cluster registers.
type driverFlags struct {
	// known are the drivers that there are.
	known driver.Catalog
	// kind is the driver that was chosen; empty if none was.
	kind  driver.AuthType
	flags flags.Drivers[driver.JoinFlags]
}

// questions are about what the chosen driver needs and no flag gives. It takes from the
// kubeconfig what that has.
func (d *driverFlags) questions(kube *cli.Kube) []cli.Question {
	of := d.flags.Of(d.kind)
	if of == nil {
		return nil
	}
	of.Flags.Complete(kube.ClusterEntry())
	return flags.Ask(of.Flags.Missing())
}

// value returns the chosen driver with its settings; nil if none was chosen.
func (d *driverFlags) value() (*operatorv1.RegistrationDriver, error) {
	for _, of := range d.flags {
		if given := of.Given(); len(given) > 0 && of.Type() != d.kind {
			return nil, fmt.Errorf("--%s=%s is missing, which this needs: %s", flags.DriverFlag, of.Type(), strings.Join(given, ", "))
		}
	}
	of := d.flags.Of(d.kind)
	if of == nil {
		return nil, nil
	}
	settings, err := of.Flags.Settings()
	return &settings, err
}
