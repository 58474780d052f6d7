package hub

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// clusterManager returns the desired ClusterManager. live may be nil.
func (h Values) clusterManager(live *operatorv1.ClusterManager) *operatorv1.ClusterManager {
	cm := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName}}
	if live != nil {
		cm.Spec = *live.Spec.DeepCopy()
	} else {
		cm.Spec.DeployOption.Mode = operatorv1.InstallModeDefault
	}
	cm.Annotations = h.annotations(live)
	image := h.TakeOver.Image(h.Workload, cm.Spec.RegistrationImagePullSpec)
	cm.Spec.RegistrationImagePullSpec = image
	cm.Spec.WorkImagePullSpec = image
	cm.Spec.PlacementImagePullSpec = image
	cm.Spec.AddOnManagerImagePullSpec = image
	if h.Resources != nil {
		cm.Spec.ResourceRequirement = h.Resources.DeepCopy()
	}
	if h.Placement != nil {
		cm.Spec.NodePlacement = *h.Placement.DeepCopy()
	}
	h.registration(&cm.Spec)
	h.registerBy(cm, live)
	return cm
}

// registerBy fills in the drivers by which clusters register, with their settings. A
// driver that is not known here is kept, for the operator to report.
func (h Values) registerBy(cm, live *operatorv1.ClusterManager) {
	before := cm.Spec.RegistrationConfiguration.RegistrationDrivers
	wanted := slices.Clone(h.Drivers)
	for _, old := range before {
		said := slices.ContainsFunc(wanted, func(s driver.HubSettings) bool { return s.Driver.AuthType == old.AuthType })
		if !said && (h.KeepDrivers || h.Drivers == nil) {
			wanted = append(wanted, driver.HubSettings{Driver: old})
		}
	}
	var drivers []operatorv1.RegistrationDriverHub
	for _, settings := range wanted {
		if setup, err := h.Catalog.Parse(settings.Driver.AuthType); err == nil {
			settings = setup.Retain(settings, h.liveSettings(live, setup.Type()))
		}
		drivers = append(drivers, settings.Driver)
		maps.Copy(cm.Annotations, settings.Annotations)
	}
	cm.Spec.RegistrationConfiguration.RegistrationDrivers = drivers
}

// liveSettings returns the settings that a hub has for a driver, none if it does not have
// the driver.
func (h Values) liveSettings(live *operatorv1.ClusterManager, kind driver.AuthType) driver.HubSettings {
	for _, e := range h.Catalog.Of(live) {
		if e.Type() == kind {
			return e.Settings
		}
	}
	return driver.HubSettings{}
}

// annotations returns the annotations of the ClusterManager.
func (h Values) annotations(live *operatorv1.ClusterManager) map[string]string {
	wanted := h.Features.annotations(live)
	if live != nil && live.Annotations[names.AnnotationHubServer] != "" {
		wanted[names.AnnotationHubServer] = live.Annotations[names.AnnotationHubServer]
	}
	if h.Server != "" {
		wanted[names.AnnotationHubServer] = h.Server
	}
	return wanted
}

// registration fills the part about how clusters register.
func (h Values) registration(spec *operatorv1.ClusterManagerSpec) {
	if spec.RegistrationConfiguration == nil {
		spec.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{}
	}
	c := spec.RegistrationConfiguration
	// A bootstrap token has one of the two users; upstream writes a name that does
	// not exist for the second. See docs/reference/wire-contract.md#bootstrap-identity.
	for _, user := range append(slices.Clone(h.AutoApproved), names.BootstrapServiceAccountUser, names.BootstrapTokenUser) {
		if !slices.Contains(c.AutoApproveUsers, user) {
			c.AutoApproveUsers = append(c.AutoApproveUsers, user)
		}
	}
	hubGates(spec, h.FeatureGates)
}
