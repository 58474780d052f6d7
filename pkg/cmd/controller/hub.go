//go:build linux

package controller

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"open-cluster-management.io/api/feature"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/census"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/csrapproval"
	workhub "github.com/kubectl-ocm/kubectl-ocm/pkg/work/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/replicaset"
)

// hubFlags are the flags of the hub registration controllers.
type hubFlags struct {
	common common
	// drivers are the enabled registration drivers by name.
	drivers []string
	// csrUsers may have their first CSRs approved; clusterUsers is upstream's
	// old name for the same, read when csrUsers is empty.
	csrUsers     []string
	clusterUsers []string
	labels       string
	resources    []string
	gates        []string
	aws          hubAWSFlags
}

func newHub() *cobra.Command {
	return newRole(&hubFlags{common: newCommon()}, &cobra.Command{
		Use:   "hub",
		Short: "Accept clusters, approve certificates and watch leases",
	})
}

func (f *hubFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.drivers, "enabled-registration-drivers", []string{string(driver.CSR)}, "how clusters may register: csr, awsirsa")
	flags.StringSliceVar(&f.csrUsers, "auto-approved-csr-users", nil, "users whose first CSRs are approved while the gate ManagedClusterAutoApproval is on")
	flags.StringSliceVar(&f.clusterUsers, "cluster-auto-approval-users", nil, "old name of --auto-approved-csr-users")
	f.aws.addFlags(flags)
	flags.StringVar(&f.labels, "labels", "", "labels for what is made for clusters, as key=value,...")
	flags.StringSliceVar(&f.resources, "gc-resource-list", resourceNames(hub.DefaultCleanupResources()),
		"what is deleted, in this order, from the namespace of a cluster that goes, as group/version/resource (default the add-ons, then the ManifestWorks)")
	flags.Lookup("gc-resource-list").DefValue = "[]" // It is wider than a terminal.
	flags.StringSliceVar(&f.gates, "feature-gates", nil, "Name=true or Name=false of: "+joined(hubGates()))
}

// hubGates are the known gates: those of registration, and those of the controllers of
// ManifestWorks that run in the same process.
func hubGates() map[featuregate.Feature]featuregate.FeatureSpec {
	known := maps.Clone(feature.DefaultHubRegistrationFeatureGates)
	for _, gate := range names.HubWorkControllerGates() {
		known[gate] = feature.DefaultHubWorkFeatureGates[gate]
	}
	return known
}

// config turns flags into values, without the network.
func (f *hubFlags) config(gates gates) (hub.Config, error) {
	extra, errLabels := parseLabels(f.labels)
	resources, errResources := parseResources(f.resources)
	errMissing := gates.without(feature.ClusterProfile, feature.ClusterImporter, feature.V1beta1CSRAPICompatibility)
	drivers, errDrivers := f.hubDrivers(gates[feature.ManagedClusterAutoApproval])
	if err := errors.Join(errDrivers, errLabels, errResources, errMissing); err != nil {
		return hub.Config{}, err
	}
	return hub.Config{
		Drivers:          drivers,
		Namespace:        cmp.Or(f.common.namespace(), names.HubNamespace),
		AutoApprove:      gates[feature.ManagedClusterAutoApproval],
		ResourceCleanup:  gates[feature.ResourceCleanup],
		CleanupResources: resources,
		Labels:           extra,
		Clock:            clock.RealClock{},
	}, nil
}

func (f *hubFlags) run(cmd *cobra.Command) error {
	gates, err := parseGates(hubGates(), f.gates)
	if err != nil {
		return err
	}
	config, err := f.config(gates)
	if err != nil {
		return err
	}
	objects, err := hub.CacheOptions()
	if err != nil {
		return err
	}
	maps.Copy(objects.ByObject, trust.CacheObjects())
	maps.Copy(objects.ByObject, workhub.CacheObjects())
	mgr, err := f.common.manager("hub-registration", objects)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := hub.Setup(ctx, mgr, config); err != nil {
		return err
	}
	if err := metrics.Registry.Register(census.Collector{Clusters: mgr.GetClient()}); err != nil {
		return fmt.Errorf("metrics of clusters: %w", err)
	}
	if err := trust.Setup(ctx, mgr, trust.Config{Clock: config.Clock, Metrics: metrics.Registry}); err != nil {
		return fmt.Errorf("trust of issuers: %w", err)
	}
	if err := setupWorks(mgr, gates, config.Clock); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting hub registration", "drivers", f.drivers, "autoApprove", config.AutoApprove)
	return mgr.Start(ctx)
}

// setupWorks adds the controllers of ManifestWorks. That of ManifestWorkReplicaSets
// removes them whether or not its gate is on.
func setupWorks(mgr manager.Manager, gates gates, c clock.PassiveClock) error {
	if gates[feature.CleanUpCompletedManifestWork] {
		if err := workhub.Setup(mgr, workhub.Config{Clock: c}); err != nil {
			return fmt.Errorf("finished ManifestWorks: %w", err)
		}
	}
	setup := replicaset.SetupRemoval
	if gates[feature.ManifestWorkReplicaSet] {
		setup = replicaset.Setup
	}
	if err := setup(mgr); err != nil {
		return fmt.Errorf("ManifestWorkReplicaSets: %w", err)
	}
	return nil
}

// hubDrivers returns the enabled drivers with the controllers that each needs.
func (f *hubFlags) hubDrivers(autoApprove bool) ([]hub.Driver, error) {
	users := f.csrUsers
	if len(users) == 0 {
		users = f.clusterUsers
	}
	var drivers []hub.Driver
	var errs []error
	for _, name := range f.drivers {
		kind, err := driver.ParseAuthType(name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--enabled-registration-drivers: %w", err))
		case kind == driver.CSR:
			drivers = append(drivers, hub.Driver{Hub: csr.Hub{}, Setup: csrapproval.Setup(autoApprove, users)})
		case kind == driver.AWSIRSA:
			aws, err := f.aws.driver()
			drivers, errs = append(drivers, aws), append(errs, err)
		}
	}
	if len(f.drivers) == 0 {
		errs = append(errs, fmt.Errorf("--enabled-registration-drivers: name at least one, such as %q", driver.CSR))
	}
	return drivers, errors.Join(errs...)
}

// parseLabels reads --labels. The label that names the cluster that an object
// belongs to is not for choosing.
func parseLabels(value string) (map[string]string, error) {
	if value == "" {
		return nil, nil
	}
	parsed, err := labels.ConvertSelectorToLabelsMap(value)
	if err != nil {
		return nil, fmt.Errorf("--labels: %w", err)
	}
	if _, ok := parsed[names.LabelClusterName]; ok {
		return nil, fmt.Errorf("--labels: %s is set by the hub itself", names.LabelClusterName)
	}
	return parsed, nil
}

// parseResources reads group/version/resource names; the core group is written
// as version/resource.
func parseResources(values []string) ([]schema.GroupVersionResource, error) {
	var resources []schema.GroupVersionResource
	for _, value := range values {
		parts := strings.Split(value, "/")
		if len(parts) == 2 {
			parts = append([]string{""}, parts...)
		}
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			return nil, fmt.Errorf("--gc-resource-list: %q: write it as group/version/resource", value)
		}
		resources = append(resources, schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]})
	}
	return resources, nil
}

func resourceNames(resources []schema.GroupVersionResource) []string {
	out := make([]string, len(resources))
	for i, r := range resources {
		out[i] = strings.Join([]string{r.Group, r.Version, r.Resource}, "/")
	}
	return out
}

// hubAWSFlags are the flags of the hub controller for the awsirsa driver.
type hubAWSFlags struct {
	spec        hubspec.Spec
	podIdentity bool
}

func (f *hubAWSFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.spec.Cluster, hubspec.FlagCluster, "", "ARN of the hub's EKS cluster, which the driver awsirsa needs")
	flags.StringSliceVar(&f.spec.Approved, hubspec.FlagApproved, nil,
		"regular expressions for ARNs of EKS clusters that are accepted while the gate ManagedClusterAutoApproval is on; each must match the whole ARN")
	flags.StringSliceVar(&f.spec.Tags, hubspec.FlagTags, nil, "tags for the roles and access entries that the hub creates, as key=value,...")
	flags.StringVar(&f.spec.Mapping, hubspec.FlagMapping, string(awsirsa.MapAuto),
		"how the roles of clusters are mapped to groups of the hub: access-entry, aws-auth, or auto for what the hub's authenticationMode has")
	flags.BoolVar(&f.podIdentity, hubspec.FlagPodIdentity, false,
		"If true, let agents assume their roles with sessions of EKS Pod Identity, which need sts:TagSession")
}

// driver returns the driver, without the network.
func (f *hubAWSFlags) driver() (hub.Driver, error) {
	spec := f.spec
	spec.PodIdentity = strconv.FormatBool(f.podIdentity)
	config, err := spec.Config(hubspec.FlagNames())
	if err != nil {
		return hub.Driver{}, err
	}
	granter := awsirsa.NewHub(config)
	return hub.Driver{Hub: granter, Setup: granter.SetupWithManager}, nil
}
