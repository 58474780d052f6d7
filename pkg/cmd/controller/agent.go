//go:build linux

package controller

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"open-cluster-management.io/api/feature"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
)

// agentFlags are the flags of the registration agent.
type agentFlags struct {
	common    common
	agent     agent.Config
	claims    status.ClaimRules
	namespace string
	gates     []string
	driver    agentDriverFlags
	addOns    agentAddOnFlags
	issuer    agentIssuerFlags
}

func newAgent() *cobra.Command {
	cmd := newRole(&agentFlags{common: newPatient()}, &cobra.Command{
		Use:   "agent",
		Short: "Register this cluster with a hub and report its status there",
	})
	cli.OldName(cmd, "spoke")
	return cmd
}

func (f *agentFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	set := cmd.Flags()
	a := &f.agent
	set.StringVar(&f.common.kubeconfig, "spoke-kubeconfig", "", "OCM's name of --kubeconfig")
	set.StringVar(&f.namespace, "namespace", "", "namespace of the agent's Secrets; empty means $POD_NAMESPACE, else "+names.AgentNamespace)
	set.StringVar(&a.Names.Cluster, "spoke-cluster-name", "", "name of this cluster on the hub; empty means the name it had before, else a new one")
	set.StringVar(&a.Names.Cluster, "cluster-name", "", "old name of --spoke-cluster-name")
	set.StringVar(&a.Names.Agent, "agent-id", "", "name of this agent; empty means the name it had before, else a new one")
	set.StringVar(&a.Names.Klusterlet, "klusterlet-name", names.KlusterletName, "Klusterlet whose status reports the hub connection; empty for none")
	set.StringVar(&a.Secrets.Bootstrap, "bootstrap-kubeconfig-secret", names.BootstrapHubKubeconfigSecret, "Secret with the kubeconfig to join with")
	set.StringVar(&a.Secrets.BootstrapFile, "bootstrap-kubeconfig", "", "kubeconfig to join with where there is no such Secret; files it names are relative to it")
	set.StringVar(&a.Secrets.Hub, "hub-kubeconfig-secret", names.HubKubeconfigSecret, "Secret that keeps the hub kubeconfig")
	set.StringVar(&a.Secrets.HubDir, "hub-kubeconfig-dir", "/spoke/hub-kubeconfig", "directory that receives that Secret's files; empty for none")
	set.StringSliceVar(&a.Cluster.ExternalURLs, "spoke-external-server-urls", nil, "https URLs under which this cluster's API server can be reached")
	set.StringToStringVar(&a.Cluster.Annotations, "cluster-annotations", nil, "annotations of the ManagedCluster; keys must begin with "+names.AnnotationAgentPrefix)
	set.StringToStringVar(&a.Cluster.Labels, "cluster-labels", nil, "labels that the ManagedCluster is created with")
	set.DurationVar(&a.HealthPeriod, "cluster-healthcheck-period", time.Minute, "how often this cluster's API server is asked how it is")
	set.IntVar(&f.claims.MaxCustom, "max-custom-cluster-claims", 20, "how many ClusterClaims that are not reserved are reported")
	set.StringSliceVar(&f.claims.ReservedSuffixes, "reserved-cluster-claim-suffixes", nil, "suffixes of ClusterClaims that are always reported")
	f.driver.addFlags(set)
	set.StringSliceVar(&f.gates, "feature-gates", nil, "feature gates as Name=true or Name=false")
	f.addOns.addFlags(set)
	f.issuer.addFlags(set)
	_ = set.MarkHidden("cluster-name")
	const limited = "the API server limits its clients"
	flags.AddCompat(cmd, map[string]string{
		"hub-kube-api-qps": limited, "hub-kube-api-burst": limited, "kube-api-qps": limited, "kube-api-burst": limited,
		"hub-connection-timeout-seconds": "it belongs to the feature gate MultipleHubs",
	}, map[string]string{
		"bootstrap-kubeconfigs": "several hubs are not available in this version: use --bootstrap-kubeconfig",
	})
}

// config turns flags into values, without the network.
func (f *agentFlags) config() (agent.Config, error) {
	c := f.agent
	c.Namespace = cmp.Or(f.namespace, os.Getenv("POD_NAMESPACE"), names.AgentNamespace)
	c.Clock = clock.RealClock{}
	gates, errGates := parseGates(feature.DefaultSpokeRegistrationFeatureGates, f.gates)
	errMissing := gates.without(feature.MultipleHubs, feature.ClusterProperty, feature.V1beta1CSRAPICompatibility)
	if gates[feature.ClusterClaim] {
		c.Claims = &f.claims
	}
	newDriver, errDriver := f.driver.constructor()
	c.NewDriver = newDriver
	addOns, errAddOns := f.addOns.config(f.driver)
	if gates[feature.AddonManagement] {
		c.AddOns = addOns
	}
	err := errors.Join(errGates, errMissing, errDriver, errAddOns)
	for key := range c.Cluster.Annotations {
		if !strings.HasPrefix(key, names.AnnotationAgentPrefix) {
			err = errors.Join(err, fmt.Errorf("--cluster-annotations: %q must begin with %s", key, names.AnnotationAgentPrefix))
		}
	}
	return c, errors.Join(err, c.Validate())
}

func (f *agentFlags) run(cmd *cobra.Command) error {
	config, err := f.config()
	if err != nil {
		return err
	}
	if advice := f.addOns.advice(); advice != "" {
		klog.Background().Info(advice)
	}
	mgr, err := f.common.manager("registration-agent", agent.CacheOptions(config.Namespace))
	if err != nil {
		return err
	}
	if config.Cluster.CABundle, err = caBundle(mgr.GetConfig()); err != nil {
		return err
	}
	if config.Extensions, err = f.issuer.extensions(cmd.Flags(), mgr, config); err != nil {
		return err
	}
	if _, err := agent.Setup(mgr, metrics.Registry, config); err != nil {
		return err
	}
	return mgr.Start(cmd.Context())
}

// caBundle is the certificate authority of this cluster's API server.
func caBundle(connection *rest.Config) ([]byte, error) {
	if connection.CAFile == "" || len(connection.CAData) > 0 {
		return connection.CAData, nil
	}
	bundle, err := os.ReadFile(filepath.Clean(connection.CAFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority of this cluster: %w", err)
	}
	return bundle, nil
}
