package agent

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// addOns is what the registration of add-ons needs for the life of a process.
type addOns struct {
	config  *AddOns
	managed cluster.Cluster
	metrics *addon.Metrics
}

func newAddOns(mgr ctrl.Manager, registry prometheus.Registerer, config Config) (addOns, error) {
	if config.AddOns == nil {
		return addOns{}, nil
	}
	m, err := addon.NewMetrics(registry)
	if err != nil {
		return addOns{}, fmt.Errorf("register metrics of add-ons: %w", err)
	}
	return addOns{config: config.AddOns, managed: mgr, metrics: m}, nil
}

// setup registers add-ons by a hub connection.
func (o *addOns) setup(inner ctrl.Manager, c *connected) error {
	if o.config == nil {
		return nil
	}
	a := c.agent
	cluster := c.snapshot.identity.Cluster
	return addon.Setup(inner, addon.Config{
		Cluster:    cluster,
		Namespace:  a.config.Namespace,
		Reserved:   []string{a.config.Secrets.Bootstrap, a.config.Secrets.Hub, names.PendingCredentialSecret},
		KubeClient: o.config.KubeClient,
		NewDriver: func(addOn *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig, auth driver.AuthType) (driver.AddOn, error) {
			return o.config.NewDriver(cluster, addOn, registration, auth)
		},
		Hub:     *c.snapshot.hub,
		Live:    c.hub,
		Managed: o.managed,
		Metrics: o.metrics,
		Clock:   a.config.Clock,
	})
}
