//go:build linux

package controller

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
)

// flagPublishIssuer is tri-state: not given, the agent leaves the issuer alone;
// false, it takes back what an agent before it published.
const flagPublishIssuer = "publish-issuer"

// spokeIssuerFlags choose whether the agent publishes the cluster's issuer.
type spokeIssuerFlags struct {
	publish bool
}

func (f *spokeIssuerFlags) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&f.publish, flagPublishIssuer, false, "show the hub the issuer and the public keys of this cluster's tokens; =false takes back what was shown")
}

// extensions add the publisher to the agent's hub connection.
func (f *spokeIssuerFlags) extensions(flags *pflag.FlagSet, mgr ctrl.Manager, config agent.Config) ([]agent.Extension, error) {
	if !flags.Changed(flagPublishIssuer) {
		return nil, nil
	}
	account := types.NamespacedName{Namespace: config.Namespace, Name: names.RegistrationAgentServiceAccount(config.Names.Klusterlet)}
	p, err := newIssuerPublisher(mgr, account, config.Names.Klusterlet)
	if err != nil {
		return nil, err
	}
	return []agent.Extension{func(hub ctrl.Manager, cluster string) error {
		begin := p.withdrawal
		if f.publish {
			begin = p.publisher
		}
		work, err := begin(hub.GetConfig(), hub.GetClient(), cluster)
		if err != nil {
			return err
		}
		return hub.Add(work)
	}}, nil
}

// issuerPublisher is what publishing needs of the managed cluster.
type issuerPublisher struct {
	config publish.Config
}

// newIssuerPublisher prepares publishing for the life of a process. Klusterlet
// may be empty.
func newIssuerPublisher(mgr ctrl.Manager, account types.NamespacedName, klusterlet string) (*issuerPublisher, error) {
	source, err := publish.NewSource(mgr.GetConfig(), account)
	if err != nil {
		return nil, err
	}
	log := mgr.GetLogger().WithName("issuer.publish")
	return &issuerPublisher{config: publish.Config{
		Source: source, Metrics: publish.NewMetrics(metrics.Registry), Clock: clock.RealClock{}, Log: log,
		Report: &publish.Teller{
			Klusterlet: klusterlet, Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(),
			Events: mgr.GetEventRecorder("issuer.publish"), Account: account, Clock: clock.RealClock{}, Log: log,
		},
	}}, nil
}

// publisher publishes by a hub connection. Clusters reads its ManagedClusters,
// nil by that connection.
func (p *issuerPublisher) publisher(hub *rest.Config, clusters client.Reader, cluster string) (manager.Runnable, error) {
	config := p.config
	config.Hub, config.Clusters, config.Cluster = hub, clusters, cluster
	return publish.New(config)
}

// withdrawal takes back what was published.
func (p *issuerPublisher) withdrawal(hub *rest.Config, _ client.Reader, cluster string) (manager.Runnable, error) {
	config := p.config
	config.Hub, config.Cluster = hub, cluster
	return publish.NewWithdrawal(config)
}
