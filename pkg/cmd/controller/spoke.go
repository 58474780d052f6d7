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
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"open-cluster-management.io/api/feature"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

// spokeFlags are the flags of the registration agent.
type spokeFlags struct {
	common    common
	agent     agent.Config
	claims    status.ClaimRules
	namespace string
	gates     []string
	driver    spokeDriverFlags
	addOns    spokeAddOnFlags
	issuer    spokeIssuerFlags
	ignored   spokeIgnoredFlags
}

// spokeDriverFlags choose how the agent gets its credential.
type spokeDriverFlags struct {
	name              string
	expirationSeconds int32
	aws               spokeAWSFlags
}

// spokeIgnoredFlags are OCM's flags that are taken and change nothing: the API
// server limits clients, and several hubs are not part of this role yet.
type spokeIgnoredFlags struct {
	qps            float32
	burst          int
	timeoutSeconds int32
	bootstraps     []string
}

func newSpoke() *cobra.Command {
	var flags spokeFlags
	cmd := &cobra.Command{
		Use:   "spoke",
		Short: "Register this cluster with a hub and keep its lease and status there",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.addFlags(cmd.Flags())
	return cmd
}

func (f *spokeFlags) addFlags(flags *pflag.FlagSet) {
	f.common.addFlags(flags)
	f.common.patient(flags)
	a := &f.agent
	flags.StringVar(&f.common.kubeconfig, "spoke-kubeconfig", "", "OCM's name of --kubeconfig")
	flags.StringVar(&f.namespace, "namespace", "", "namespace of the agent's Secrets; empty means $POD_NAMESPACE, else "+names.AgentNamespace)
	flags.StringVar(&a.Names.Cluster, "spoke-cluster-name", "", "name of this cluster on the hub; empty means the name it had before, else a new one")
	flags.StringVar(&a.Names.Cluster, "cluster-name", "", "old name of --spoke-cluster-name")
	flags.StringVar(&a.Names.Agent, "agent-id", "", "name of this agent; empty means the name it had before, else a new one")
	flags.StringVar(&a.Names.Klusterlet, "klusterlet-name", names.KlusterletName, "Klusterlet whose status reports the hub connection; empty for none")
	flags.StringVar(&a.Secrets.Bootstrap, "bootstrap-kubeconfig-secret", names.BootstrapHubKubeconfigSecret, "Secret with the kubeconfig to join with")
	flags.StringVar(&a.Secrets.BootstrapFile, "bootstrap-kubeconfig", "", "kubeconfig to join with where there is no such Secret; files it names are relative to it")
	flags.StringVar(&a.Secrets.Hub, "hub-kubeconfig-secret", names.HubKubeconfigSecret, "Secret that keeps the hub kubeconfig")
	flags.StringVar(&a.Secrets.HubDir, "hub-kubeconfig-dir", "/spoke/hub-kubeconfig", "directory that receives that Secret's files; empty for none")
	flags.StringSliceVar(&a.Cluster.ExternalURLs, "spoke-external-server-urls", nil, "https URLs under which this cluster's API server can be reached")
	flags.StringToStringVar(&a.Cluster.Annotations, "cluster-annotations", nil, "annotations of the ManagedCluster; keys must begin with "+names.AnnotationAgentPrefix)
	flags.StringToStringVar(&a.Cluster.Labels, "cluster-labels", nil, "labels that the ManagedCluster is created with")
	flags.DurationVar(&a.HealthPeriod, "cluster-healthcheck-period", time.Minute, "how often this cluster's API server is asked how it is")
	flags.IntVar(&f.claims.MaxCustom, "max-custom-cluster-claims", 20, "how many ClusterClaims that are not reserved are reported")
	flags.StringSliceVar(&f.claims.ReservedSuffixes, "reserved-cluster-claim-suffixes", nil, "suffixes of ClusterClaims that are always reported")
	flags.Int32Var(&f.driver.expirationSeconds, "client-cert-expiration-seconds", 0, "life of the client certificate to ask for, at least 3600; 0 leaves it to the hub")
	flags.StringVar(&f.driver.name, "registration-auth", "", "registration driver, csr or awsirsa; empty means csr")
	f.driver.aws.addFlags(flags)
	flags.StringSliceVar(&f.gates, "feature-gates", nil, "feature gates as Name=true or Name=false")
	f.addOns.addFlags(flags)
	f.issuer.addFlags(flags)
	f.addIgnored(flags)
}

func (f *spokeFlags) addIgnored(flags *pflag.FlagSet) {
	i := &f.ignored
	flags.Float32Var(&i.qps, "hub-kube-api-qps", 0, "without effect: the hub limits its clients")
	flags.IntVar(&i.burst, "hub-kube-api-burst", 0, "without effect: the hub limits its clients")
	flags.Float32Var(&i.qps, "kube-api-qps", 0, "without effect: the API server limits its clients")
	flags.IntVar(&i.burst, "kube-api-burst", 0, "without effect: the API server limits its clients")
	flags.Int32Var(&i.timeoutSeconds, "hub-connection-timeout-seconds", 600, "without effect: it belongs to feature gate MultipleHubs")
	flags.StringSliceVar(&i.bootstraps, "bootstrap-kubeconfigs", nil, "bootstrap kubeconfigs of several hubs")
	for _, name := range []string{"hub-kube-api-qps", "hub-kube-api-burst", "kube-api-qps", "kube-api-burst", "hub-connection-timeout-seconds", "cluster-name"} {
		if flag := flags.Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
}

// config turns flags into values, without the network.
func (f *spokeFlags) config() (agent.Config, error) {
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
	err := errors.Join(errGates, errMissing, errDriver, errAddOns, f.refuse())
	for key := range c.Cluster.Annotations {
		if !strings.HasPrefix(key, names.AnnotationAgentPrefix) {
			err = errors.Join(err, fmt.Errorf("--cluster-annotations: %q must begin with %s", key, names.AnnotationAgentPrefix))
		}
	}
	return c, errors.Join(err, c.Validate())
}

func (f *spokeFlags) refuse() error {
	if len(f.ignored.bootstraps) > 0 {
		return errors.New("--bootstrap-kubeconfigs: several hubs are not available in this version: use --bootstrap-kubeconfig")
	}
	return nil
}

// constructor returns what makes the driver that was asked for.
func (f *spokeDriverFlags) constructor() (func(driver.Identity) driver.Agent, error) {
	kind, err := driver.ParseAuthType(f.name)
	if err != nil {
		return nil, fmt.Errorf("--registration-auth: %w", err)
	}
	if kind == driver.AWSIRSA {
		return f.aws.constructor()
	}
	if s := f.expirationSeconds; s != 0 && s < driver.MinClientCertSeconds {
		return nil, fmt.Errorf("--client-cert-expiration-seconds: %d is less than %d; 0 leaves it to the hub", s, driver.MinClientCertSeconds)
	}
	return func(id driver.Identity) driver.Agent {
		return csr.NewAgent(csr.AgentConfig{Identity: id, ExpirationSeconds: f.expirationSeconds, Clock: clock.RealClock{}})
	}, nil
}

func (f *spokeFlags) run(cmd *cobra.Command) error {
	config, err := f.config()
	if err != nil {
		return err
	}
	if advice := f.addOns.advice(); advice != "" {
		klog.Background().Info(advice)
	}
	connection, err := f.common.config()
	if err != nil {
		return err
	}
	if config.Cluster.CABundle, err = caBundle(connection); err != nil {
		return err
	}
	mgr, err := f.common.manager(connection, "registration-agent", agent.CacheOptions(config.Namespace))
	if err != nil {
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
