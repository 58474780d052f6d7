//go:build linux

package controller

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
)

// flagPublishIssuer is tri-state: not given, the agent leaves the issuer alone;
// false, it takes back what an agent before it published.
const flagPublishIssuer = "publish-issuer"

// agentIssuerFlags choose whether the agent publishes the cluster's issuer.
type agentIssuerFlags struct {
	publish bool
}

func (f *agentIssuerFlags) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&f.publish, flagPublishIssuer, false, "show the hub the issuer and the public keys of this cluster's tokens; =false takes back what was shown")
}

// extensions add the publisher to the agent's hub connection.
func (f *agentIssuerFlags) extensions(flags *pflag.FlagSet, mgr ctrl.Manager, registration agent.Config) ([]agent.Extension, error) {
	if !flags.Changed(flagPublishIssuer) {
		return nil, nil
	}
	account := types.NamespacedName{Namespace: registration.Namespace, Name: names.RegistrationAgentServiceAccount(registration.Names.Klusterlet)}
	config, err := publishConfig(mgr, account, registration.Names.Klusterlet)
	if err != nil {
		return nil, err
	}
	return []agent.Extension{func(hub ctrl.Manager, cluster string) error {
		own := config
		own.Hub, own.Clusters, own.Cluster = hub.GetConfig(), hub.GetClient(), cluster
		var work manager.Runnable
		var err error
		if f.publish {
			work, err = publish.New(own)
		} else {
			work, err = publish.NewWithdrawal(own)
		}
		if err != nil {
			return err
		}
		return hub.Add(work)
	}}, nil
}

// publishConfig returns what publishing needs of the managed cluster, for the life
// of a process. Klusterlet may be empty. The hub and the cluster's name on it are the
// caller's to fill in.
func publishConfig(mgr ctrl.Manager, account types.NamespacedName, klusterlet string) (publish.Config, error) {
	source, err := publish.NewSource(mgr.GetConfig(), account)
	if err != nil {
		return publish.Config{}, err
	}
	log := mgr.GetLogger().WithName("issuer.publish")
	return publish.Config{
		Source: source, Metrics: publish.NewMetrics(metrics.Registry), Clock: clock.RealClock{}, Log: log,
		Report: &publish.Teller{
			Klusterlet: klusterlet, Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(),
			Events: mgr.GetEventRecorder("issuer.publish"), Account: account, Clock: clock.RealClock{}, Log: log,
		},
	}, nil
}
