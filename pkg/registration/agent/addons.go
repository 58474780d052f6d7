package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// addOns are the parts of add-on registration that live as long as the process.
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

// setup adds add-on registration to the manager of a hub connection.
func (o *addOns) setup(inner ctrl.Manager, c *connected) error {
	if o.config == nil {
		return nil
	}
	a := c.agent
	hub, err := whole(*c.snapshot.hub, a.store.bootstrapDir())
	if err != nil {
		return err
	}
	cluster := c.snapshot.identity.Cluster
	return addon.Setup(inner, addon.Config{
		Cluster:   cluster,
		Namespace: a.config.Namespace,
		Reserved:  []string{a.config.Secrets.Bootstrap, a.config.Secrets.Hub, names.PendingCredentialSecret},
		NewDriver: func(addOn *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig) driver.AddOn {
			return o.config.NewDriver(cluster, addOn, registration)
		},
		Hub:     hub,
		Live:    c.hub,
		Managed: o.managed,
		Metrics: o.metrics,
		Clock:   a.config.Clock,
	})
}

// whole returns hub with the data of its certificate authority in place of the file
// name, because an add-on does not have the file.
func whole(hub kubeconfig.Hub, dir string) (kubeconfig.Hub, error) {
	file := hub.Cluster.CertificateAuthority
	if file == "" || len(hub.Cluster.CertificateAuthorityData) > 0 {
		return hub, nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	data, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return hub, fmt.Errorf("read the hub's certificate authority for add-ons: %w", err)
	}
	hub.Cluster.CertificateAuthority, hub.Cluster.CertificateAuthorityData = "", data
	return hub, nil
}
