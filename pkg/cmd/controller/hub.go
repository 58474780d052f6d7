//go:build linux

package controller

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"
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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
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
	known        map[driver.AuthType]driver.HubFlags
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
	f.known = map[driver.AuthType]driver.HubFlags{}
	for _, setup := range drivers.All() {
		own := setup.HubFlags()
		own.AddTo(flags)
		f.known[setup.Type()] = own
	}
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
	enabled, errDrivers := f.hubDrivers(gates[feature.ManagedClusterAutoApproval])
	if err := errors.Join(errDrivers, errLabels, errResources, errMissing); err != nil {
		return hub.Config{}, err
	}
	return hub.Config{
		Drivers:             enabled,
		IdentityAnnotations: drivers.All().Annotations(),
		Namespace:           cmp.Or(f.common.namespace(), names.HubNamespace),
		AutoApprove:         gates[feature.ManagedClusterAutoApproval],
		ResourceCleanup:     gates[feature.ResourceCleanup],
		CleanupResources:    resources,
		Labels:              extra,
		Clock:               clock.RealClock{},
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
	var enabled []hub.Driver
	var errs []error
	for _, name := range f.drivers {
		known, err := drivers.All().Parse(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("--enabled-registration-drivers: %w", err))
			continue
		}
		d, setup, err := f.known[known.Type()].Driver()
		if known.Type() == driver.CSR {
			setup = csrapproval.Setup(autoApprove, users)
		}
		enabled, errs = append(enabled, hub.Driver{Hub: d, Setup: setup}), append(errs, err)
	}
	if len(f.drivers) == 0 {
		errs = append(errs, fmt.Errorf("--enabled-registration-drivers: name at least one, such as %q", driver.CSR))
	}
	return enabled, errors.Join(errs...)
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
