package agent

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Config is how an agent is set up.
type Config struct {
	// Namespace is the agent's namespace on the managed cluster.
	Namespace string
	Names     Names
	Secrets   Secrets
	// Cluster is what the agent tells the hub when it creates the ManagedCluster.
	Cluster Cluster
	// Claims say which claims are reported; nil switches them off.
	Claims *status.ClaimRules
	// HealthPeriod is how often the managed cluster's API server is probed.
	HealthPeriod time.Duration
	// NewDriver returns the driver for an identity.
	NewDriver func(driver.Identity) driver.Agent
	// AddOns say how add-ons are registered; nil switches that off.
	AddOns *AddOns
	// Extensions are what else works with the cluster's credential.
	Extensions []Extension
	// Clock is the time; it must be the real one outside unit tests, because
	// deadlines of requests go by that.
	Clock clock.WithTicker
}

// Extension adds what works with the hub connection of an accepted cluster to
// the manager that lives as long as the connection does: a new one is called
// when the hub or its trust changes, while a renewed credential goes on in the
// clients that were made with the manager's connection. The manager's cache
// holds the cluster's own ManagedCluster only, and must not be made to wait for
// what a hub may not allow.
type Extension func(hub ctrl.Manager, cluster string) error

// AddOns are how the add-ons of a cluster get their credentials.
type AddOns struct {
	// NewDriver returns the driver of one registration, of either type.
	NewDriver func(cluster string, addOn *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig) driver.AddOn
}

// Names are the names that the agent goes by.
type Names struct {
	// Cluster and Agent are found out or made up where they are empty.
	Cluster string
	Agent   string
	// Klusterlet is whose status tells about the hub connection; empty for none.
	Klusterlet string
}

// Secrets are where kubeconfigs are kept.
type Secrets struct {
	// Bootstrap and Hub name Secrets in the agent's namespace.
	Bootstrap string
	Hub       string
	// BootstrapFile is read where there is no bootstrap Secret, and relative
	// files of the bootstrap kubeconfig are beside it.
	BootstrapFile string
	// HubDir receives the files of the hub kubeconfig Secret; empty for none.
	HubDir string
}

// Cluster is what the hub is told about the managed cluster.
type Cluster struct {
	// ExternalURLs are the addresses under which its API server can be reached.
	ExternalURLs []string
	// CABundle is the certificate authority behind these.
	CABundle []byte
	// Annotations are put on the ManagedCluster if their prefix allows it.
	Annotations map[string]string
	// Labels are what the ManagedCluster is created with. They are others' to
	// change afterwards.
	Labels map[string]string
}

// Validate reports everything that is wrong with the configuration.
func (c *Config) Validate() error {
	var problems []error
	if c.Namespace == "" {
		problems = append(problems, errors.New("the agent's namespace is not known: set --namespace or the environment variable POD_NAMESPACE"))
	}
	if c.Names.Cluster != "" {
		problems = append(problems, names.ValidateClusterName(c.Names.Cluster))
	}
	if c.HealthPeriod <= 0 {
		problems = append(problems, fmt.Errorf("invalid health check period %v: it must be positive", c.HealthPeriod))
	}
	if c.Claims != nil && c.Claims.MaxCustom < 0 {
		problems = append(problems, fmt.Errorf("invalid number of custom cluster claims %d: it must not be negative", c.Claims.MaxCustom))
	}
	return errors.Join(append(problems, c.Secrets.validate(), c.Cluster.validate())...)
}

func (s *Secrets) validate() error {
	var problems []error
	for _, secret := range []string{s.Bootstrap, s.Hub} {
		if bad := validation.IsDNS1123Subdomain(secret); len(bad) > 0 {
			problems = append(problems, fmt.Errorf("invalid Secret name %q: %s", secret, strings.Join(bad, "; ")))
		}
	}
	if s.Bootstrap == s.Hub {
		problems = append(problems, fmt.Errorf("the bootstrap and the hub kubeconfig must be in different Secrets, both are %q", s.Hub))
	}
	return errors.Join(problems...)
}

func (c *Cluster) validate() error {
	var problems []error
	for _, external := range c.ExternalURLs {
		if u, err := url.Parse(external); err != nil || u.Scheme != "https" || u.Host == "" {
			problems = append(problems, fmt.Errorf("invalid external server URL %q: it must be an https URL", external))
		}
	}
	if err := metav1validation.ValidateLabels(c.Labels, field.NewPath("labels")).ToAggregate(); err != nil {
		problems = append(problems, fmt.Errorf("invalid cluster labels: %w", err))
	}
	return errors.Join(problems...)
}

// clientConfigs are the external URLs in the form of a ManagedCluster.
func (c *Cluster) clientConfigs() []clusterv1.ClientConfig {
	var configs []clusterv1.ClientConfig
	for _, external := range c.ExternalURLs {
		configs = append(configs, clusterv1.ClientConfig{URL: external, CABundle: c.CABundle})
	}
	return configs
}

// annotations are those that an agent may pass on.
func (c *Cluster) annotations() map[string]string {
	var allowed map[string]string
	for key, value := range c.Annotations {
		if strings.HasPrefix(key, names.AnnotationAgentPrefix) {
			if allowed == nil {
				allowed = map[string]string{}
			}
			allowed[key] = value
		}
	}
	return allowed
}
