//go:build linux

package controller

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
)

// Lives of add-on tokens in seconds: the default, below which one is advised
// against, and below which the API server refuses it.
const (
	defaultTokenSeconds = 31536000
	advisedTokenSeconds = 3600
	minTokenSeconds     = 600
)

// agentAddOnFlags choose how add-ons get their credentials.
type agentAddOnFlags struct {
	driver       string
	tokenSeconds int64
}

func (f *agentAddOnFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.driver, "addon-kubeclient-registration-auth", "", "how add-ons get their credential for the hub's API server, csr or token; empty means csr")
	flags.Int64Var(&f.tokenSeconds, "addon-token-expiration-seconds", 0, fmt.Sprintf("life of add-ons' tokens to ask for, at least %d; 0 means %d, a year", minTokenSeconds, defaultTokenSeconds))
}

// config turns the flags into values. The certificates of add-ons are asked for
// with the life of the agent's own.
func (f *agentAddOnFlags) config(cluster agentDriverFlags) (*agent.AddOns, error) {
	auth, err := driver.ParseAddOnAuthType(f.driver)
	if err != nil {
		return nil, fmt.Errorf("--addon-kubeclient-registration-auth: %w", err)
	}
	seconds := f.tokenSeconds
	if seconds == 0 {
		seconds = defaultTokenSeconds
	}
	if seconds < minTokenSeconds {
		return nil, fmt.Errorf("--addon-token-expiration-seconds: %d is less than %d, the shortest life that a hub gives; 0 means %d", seconds, minTokenSeconds, defaultTokenSeconds)
	}
	expiration := cluster.expirationSeconds()
	return &agent.AddOns{
		NewDriver: func(cluster string, addOn *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig) driver.AddOn {
			if auth == driver.Token && registration.Type == addonv1beta1.KubeClient {
				return token.NewAddOn(token.Config{Cluster: cluster, AddOn: addOn, Registration: registration, ExpirationSeconds: seconds, Clock: clock.RealClock{}})
			}
			return csr.NewAddOn(csr.AddOnConfig{Cluster: cluster, AddOn: addOn, Registration: registration, ExpirationSeconds: expiration, Clock: clock.RealClock{}})
		},
	}, nil
}

// advice is what the log should say about the flags, or empty.
func (f *agentAddOnFlags) advice() string {
	if f.tokenSeconds == 0 || f.tokenSeconds >= advisedTokenSeconds {
		return ""
	}
	return fmt.Sprintf("The tokens of add-ons live for %d seconds only, which is meant for tests: set --addon-token-expiration-seconds to %d or more", f.tokenSeconds, advisedTokenSeconds)
}

// agentDriverFlags choose how the agent gets its credential.
type agentDriverFlags struct {
	name  string
	known map[driver.AuthType]driver.AgentFlags
	set   *pflag.FlagSet
}

func (f *agentDriverFlags) addFlags(set *pflag.FlagSet) {
	set.StringVar(&f.name, "registration-auth", "", "registration driver, csr or awsirsa; empty means csr")
	f.set, f.known = set, map[driver.AuthType]driver.AgentFlags{}
	for _, setup := range drivers.All() {
		flags := setup.AgentFlags()
		flags.AddTo(set)
		f.known[setup.Type()] = flags
	}
}

// constructor returns what makes the driver that was asked for.
func (f *agentDriverFlags) constructor() (func(driver.Identity) driver.Agent, error) {
	setup, err := drivers.All().Parse(f.name)
	if err != nil {
		return nil, fmt.Errorf("--registration-auth: %w", err)
	}
	return f.known[setup.Type()].Driver()
}

// expirationSeconds is the lifetime to request of certificates.
func (f *agentDriverFlags) expirationSeconds() int32 {
	seconds, _ := f.set.GetInt32(csr.FlagExpiration)
	return seconds
}
