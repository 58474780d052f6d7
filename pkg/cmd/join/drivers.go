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
	// kind is the driver that was chosen, or that the installed agent has; empty if neither
	// is known.
	kind  driver.AuthType
	flags flags.Drivers[driver.JoinFlags]
	// settings are those of the driver, once they are known.
	settings operatorv1.RegistrationDriver
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
	var err error
	d.settings, err = of.Flags.Settings()
	return &d.settings, err
}

// retain fills in how an installed agent registers. The operator reports a driver that this
// version does not have, and settings that are not valid.
func (d *driverFlags) retain(installed *operatorv1.Klusterlet) {
	var settings operatorv1.RegistrationDriver
	if c := installed.Spec.RegistrationConfiguration; c != nil {
		settings = c.RegistrationDriver
	}
	if setup, err := d.known.Parse(settings.AuthType); err == nil && setup.ValidateAgent(settings) == nil {
		d.kind, d.settings = setup.Type(), settings
	}
}

// identifier returns the driver if it identifies clusters without a key; nil otherwise.
func (d *driverFlags) identifier() driver.Identifier { return d.known.Identifier(d.kind) }

// hubID identifies the hub as the driver does; empty if it does not.
func (d *driverFlags) hubID() string {
	if by := d.identifier(); by != nil {
		return by.HubID(d.settings)
	}
	return ""
}
