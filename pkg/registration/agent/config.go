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

// Config configures an agent.
type Config struct {
	// Namespace is the agent's namespace on the managed cluster.
	Namespace string
	Names     Names
	Secrets   Secrets
	// Cluster describes the ManagedCluster that the agent creates.
	Cluster Cluster
	// Claims selects the reported claims; nil disables them.
	Claims *status.ClaimRules
	// HealthPeriod is how often the managed cluster's API server is probed.
	HealthPeriod time.Duration
	// NewDriver returns the driver for an identity.
	NewDriver func(driver.Identity) driver.Agent
	// AddOns configures the registration of add-ons; nil disables it.
	AddOns *AddOns
	// Extensions add further users of the cluster's credential.
	Extensions []Extension
	// Clock must be the real one outside unit tests, because request deadlines use it.
	Clock clock.WithTicker
}

// Extension adds runnables to the manager of the hub connection of an accepted
// cluster. It is called for each new connection, when the hub or its trust changes; a
// renewed credential is used by the existing clients of the manager. The manager's
// cache has the cluster's own ManagedCluster only, and must not wait for objects that
// a hub may not allow the agent to list.
type Extension func(hub ctrl.Manager, cluster string) error

// AddOns configures the registration of add-ons.
type AddOns struct {
	// NewDriver returns the driver of one registration, of either type.
	NewDriver func(cluster string, addOn *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig) driver.AddOn
}

// Names are the names of the cluster and the agent.
type Names struct {
	// Cluster and Agent are read from the stored state or generated if empty.
	Cluster string
	Agent   string
	// Klusterlet has the condition that reports the hub connection; empty for none.
	Klusterlet string
}

// Secrets locate the kubeconfigs.
type Secrets struct {
	// Bootstrap and Hub name Secrets in the agent's namespace.
	Bootstrap string
	Hub       string
	// BootstrapFile is read if there is no bootstrap Secret. Relative file names in
	// the bootstrap kubeconfig are relative to its directory.
	BootstrapFile string
	// HubDir receives the files of the hub kubeconfig Secret; empty for none.
	HubDir string
}

// Cluster describes the managed cluster to the hub.
type Cluster struct {
	// ExternalURLs are the external addresses of its API server.
	ExternalURLs []string
	// CABundle is the certificate authority of these.
	CABundle []byte
	// Annotations of the ManagedCluster; only those with AnnotationAgentPrefix are set.
	Annotations map[string]string
	// Labels are set when the ManagedCluster is created and not changed afterwards.
	Labels map[string]string
}

// Validate returns every problem of the configuration.
func (c *Config) Validate() error {
	var problems []error
	if c.Namespace == "" {
		problems = append(problems, errors.New("the namespace of the agent is required; set --namespace or the environment variable POD_NAMESPACE"))
	}
	if c.Names.Cluster != "" {
		problems = append(problems, names.ValidateClusterName(c.Names.Cluster))
	}
	if c.HealthPeriod <= 0 {
		problems = append(problems, fmt.Errorf("invalid health check period %v: must be positive", c.HealthPeriod))
	}
	if c.Claims != nil && c.Claims.MaxCustom < 0 {
		problems = append(problems, fmt.Errorf("invalid number of custom cluster claims %d: must not be negative", c.Claims.MaxCustom))
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
		problems = append(problems, fmt.Errorf("the bootstrap and the hub kubeconfig must be in different Secrets, but both are in %q", s.Hub))
	}
	return errors.Join(problems...)
}

func (c *Cluster) validate() error {
	var problems []error
	for _, external := range c.ExternalURLs {
		if u, err := url.Parse(external); err != nil || u.Scheme != "https" || u.Host == "" {
			problems = append(problems, fmt.Errorf("invalid external server URL %q: must be an https URL", external))
		}
	}
	if err := metav1validation.ValidateLabels(c.Labels, field.NewPath("labels")).ToAggregate(); err != nil {
		problems = append(problems, fmt.Errorf("invalid cluster labels: %w", err))
	}
	return errors.Join(problems...)
}

// clientConfigs returns the external URLs as client configurations of a ManagedCluster.
func (c *Cluster) clientConfigs() []clusterv1.ClientConfig {
	var configs []clusterv1.ClientConfig
	for _, external := range c.ExternalURLs {
		configs = append(configs, clusterv1.ClientConfig{URL: external, CABundle: c.CABundle})
	}
	return configs
}

// annotations returns those that an agent may set.
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
