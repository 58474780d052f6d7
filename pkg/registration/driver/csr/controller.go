package csr

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// hubFlags is empty: a hub controller approves the requests, and it runs for add-ons as
// well.
type hubFlags struct{}

// HubFlags implements driver.HubSetup.
func (Setup) HubFlags() driver.HubFlags { return hubFlags{} }

// AddTo implements driver.HubFlags.
func (hubFlags) AddTo(*pflag.FlagSet) {}

// Driver implements driver.HubFlags.
func (hubFlags) Driver() (driver.Hub, func(context.Context, ctrl.Manager) error, error) {
	return Hub{}, nil, nil
}

// agentFlags are the flags of the agent.
type agentFlags struct{ expirationSeconds int32 }

// AgentFlags implements driver.AgentSetup.
func (Setup) AgentFlags() driver.AgentFlags { return &agentFlags{} }

// FlagExpiration is the flag with the lifetime of certificates to request, those of add-ons
// included.
const FlagExpiration = "client-cert-expiration-seconds"

// AddTo implements driver.AgentFlags.
func (f *agentFlags) AddTo(flags *pflag.FlagSet) {
	flags.Int32Var(&f.expirationSeconds, FlagExpiration, 0, "life of the client certificate to ask for, at least 3600; 0 leaves it to the hub")
}

// Driver implements driver.AgentFlags.
func (f *agentFlags) Driver() (func(driver.Identity) driver.Agent, error) {
	if s := f.expirationSeconds; s != 0 && s < driver.MinClientCertSeconds {
		return nil, fmt.Errorf("--%s: %d is less than %d; 0 leaves it to the hub", FlagExpiration, s, driver.MinClientCertSeconds)
	}
	return func(id driver.Identity) driver.Agent {
		return NewAgent(AgentConfig{Identity: id, ExpirationSeconds: f.expirationSeconds, Clock: clock.RealClock{}})
	}, nil
}
