package inithub

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
)

// complete turns the flags into values, without any network. All mistakes are
// reported at once.
func (o *options) complete(cmd *cobra.Command) (hub.Values, error) {
	var h hub.Values
	var errs []error
	collect := func(err error) { errs = append(errs, err) }
	var err error
	h.Workload, err = o.workload.Value()
	collect(err)
	h.FeatureGates, err = o.gates.Value()
	collect(err)
	h.Catalog = o.env.Drivers
	h.Drivers, err = o.drivers.settings(o.env.Kube, o.gates)
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

func (c *cleanupFlags) value(cmd *cobra.Command) (*hub.Cleanup, error) {
	if !c.enabled {
		if cmd.Flags().Changed("unjoined-cleanup") {
			return &hub.Cleanup{}, nil
		}
		return nil, nil
	}
	if c.after < 0 {
		return nil, errors.New("--unjoined-cleanup-after must not be negative")
	}
	if fields := len(strings.Fields(c.schedule)); fields != 5 && !strings.HasPrefix(c.schedule, "@") {
		return nil, fmt.Errorf("--unjoined-cleanup-schedule: %q is not a cron expression with 5 fields", c.schedule)
	}
	return &hub.Cleanup{After: c.after, Schedule: c.schedule}, nil
}
