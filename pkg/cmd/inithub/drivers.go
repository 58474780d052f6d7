package inithub

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// chosen returns the drivers that the hub is to have, none to keep the live ones. Flags of
// the driver that clusters have by default choose it.
func (d *driverFlags) chosen() []driver.AuthType {
	if byDefault := d.flags[0]; len(d.names) == 0 && len(byDefault.Given()) > 0 {
		return []driver.AuthType{byDefault.Type()}
	}
	return d.names
}

// ask asks for what the chosen drivers need, where neither a flag nor the kubeconfig has it.
func (o *options) ask() error {
	var missing []cli.Question
	for _, of := range o.drivers.flags {
		if !slices.Contains(o.drivers.chosen(), of.Type()) {
			continue
		}
		of.Flags.Complete(o.env.Kube.ClusterEntry())
		missing = append(missing, flags.Ask(of.Flags.Missing())...)
	}
	if len(missing) == 0 || !o.env.Interactive() {
		return nil // What is missing is reported with what else is wrong.
	}
	return o.env.Ask(missing...)
}

// settings returns the settings of the chosen drivers.
func (d *driverFlags) settings(kube *cli.Kube, gates *flags.Gates) ([]driver.HubSettings, error) {
	var (
		wanted []driver.HubSettings
		errs   []error
	)
	chosen := d.chosen()
	facts := driver.InitFacts{Entry: kube.ClusterEntry(), AutoApproval: gates.Enabled("ManagedClusterAutoApproval")}
	for _, kind := range chosen {
		settings, err := d.flags.Of(kind).Flags.Settings(facts)
		wanted, errs = append(wanted, settings), append(errs, err)
	}
	for _, of := range d.flags {
		if given := of.Given(); len(given) > 0 && !slices.Contains(chosen, of.Type()) {
			errs = append(errs, fmt.Errorf("--%s=%s is missing, which this needs: %s", flags.DriverFlag, of.Type(), strings.Join(given, ", ")))
		}
	}
	return wanted, errors.Join(errs...)
}
