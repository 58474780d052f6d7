package inithub

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
)

// complete turns the flags into values, without any network. All mistakes are
// reported at once.
func (o *options) complete(cmd *cobra.Command) (install.Hub, error) {
	var h install.Hub
	var errs []error
	collect := func(err error) { errs = append(errs, err) }
	var err error
	h.Workload, err = o.workload.Value()
	collect(err)
	h.FeatureGates, err = o.gates.Value()
	collect(err)
	h.Catalog = drivers.All()
	h.Drivers, err = o.drivers.value(o.env.Kube, o.gates)
	collect(err)
	h.KeepDrivers = len(o.drivers.names) == 0
	collect(o.join.CheckServer())
	collect(o.join.CheckTTL())
	collect(o.rendering.Check(o.env))
	if o.noToken && o.out.Machine() && o.env.Kube.DryRun() == cli.DryRunNone {
		collect(errors.New("--output prints the join command, which --no-token leaves out: choose one"))
	}
	h.Features = o.features
	for _, feature := range h.Features.On {
		if slices.Contains(h.Features.Off, feature) {
			collect(fmt.Errorf("--feature and --disable-feature both name %s: choose one", feature))
		}
	}
	h.Server = o.join.Server
	h.BootstrapToken = o.join.BootstrapToken
	h.Cleanup, err = o.cleanup.value(cmd)
	collect(err)
	h.TakeOver, err = o.takeOver.Value()
	collect(err)
	if err := errors.Join(errs...); err != nil {
		return h, cli.Usagef("%v", err)
	}
	return h, nil
}

// value returns the drivers for the ClusterManager, or nil to keep the live ones.
func (d *driverFlags) value(kube *cli.Kube, gates *flags.Gates) ([]driver.HubSettings, error) {
	spec, err := d.awsSpec(kube, gates)
	if err := errors.Join(d.validateUsers(gates), err); err != nil {
		return nil, err
	}
	names := d.names
	if len(names) == 0 && len(d.csrUsers) > 0 {
		names = []driver.AuthType{driver.CSR}
	}
	var wanted []driver.HubSettings
	for _, name := range names {
		settings := driver.HubSettings{Driver: operatorv1.RegistrationDriverHub{AuthType: string(name)}}
		switch {
		case name == driver.CSR && len(d.csrUsers) > 0:
			settings.Driver.CSR = &operatorv1.CSRConfig{AutoApprovedIdentities: d.csrUsers}
		case name == driver.AWSIRSA:
			settings = driver.HubSettings{Driver: spec.Driver(), Annotations: spec.Annotations()}
		}
		wanted = append(wanted, settings)
	}
	return wanted, nil
}

// validateUsers checks who may register without a person.
func (d *driverFlags) validateUsers(gates *flags.Gates) error {
	if len(d.csrUsers) == 0 {
		return nil
	}
	if len(d.names) > 0 && !slices.Contains(d.names, driver.CSR) {
		return fmt.Errorf("--auto-approved-csr-identities needs --%s=csr", flagDrivers)
	}
	if !gates.Enabled("ManagedClusterAutoApproval") {
		return errors.New("--auto-approved-csr-identities needs --feature-gates=ManagedClusterAutoApproval=true")
	}
	return nil
}

func (c *cleanupFlags) value(cmd *cobra.Command) (*install.Cleanup, error) {
	if !c.enabled {
		if cmd.Flags().Changed("unjoined-cleanup") {
			return &install.Cleanup{}, nil
		}
		return nil, nil
	}
	if c.after < 0 {
		return nil, errors.New("--unjoined-cleanup-after must not be negative")
	}
	if fields := len(strings.Fields(c.schedule)); fields != 5 && !strings.HasPrefix(c.schedule, "@") {
		return nil, fmt.Errorf("--unjoined-cleanup-schedule: %q is not a cron expression with 5 fields", c.schedule)
	}
	return &install.Cleanup{After: c.after, Schedule: c.schedule}, nil
}
