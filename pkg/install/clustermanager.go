package install

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

// clusterManager returns the desired ClusterManager. live may be nil.
func (h Hub) clusterManager(live *operatorv1.ClusterManager) *operatorv1.ClusterManager {
	cm := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName}}
	if live != nil {
		cm.Spec = *live.Spec.DeepCopy()
	} else {
		cm.Spec.DeployOption.Mode = operatorv1.InstallModeDefault
	}
	cm.Annotations = h.annotations(live)
	image := h.TakeOver.image(h.Workload, cm.Spec.RegistrationImagePullSpec)
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
	h.registerByAWS(cm, live)
	return cm
}

// registerByAWS fills the part about registration by AWS IAM, if the hub has that
// driver.
func (h Hub) registerByAWS(cm, live *operatorv1.ClusterManager) {
	if _, ok := hubspec.Of(cm); !ok {
		return
	}
	wanted := h.AWS
	if live != nil {
		before, _ := hubspec.Of(live)
		wanted = h.AWS.Over(before)
	}
	drivers := cm.Spec.RegistrationConfiguration.RegistrationDrivers
	for i := range drivers {
		if drivers[i].AuthType == string(driver.AWSIRSA) {
			drivers[i] = wanted.Driver()
		}
	}
	maps.Copy(cm.Annotations, wanted.Annotations())
}

// annotations returns the annotations of the ClusterManager.
func (h Hub) annotations(live *operatorv1.ClusterManager) map[string]string {
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
func (h Hub) registration(spec *operatorv1.ClusterManagerSpec) {
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
	if h.Drivers != nil {
		c.RegistrationDrivers = h.driversOver(c.RegistrationDrivers)
	}
}

// driversOver returns the wanted drivers. A csr driver that is not said more about
// keeps what the live one has.
func (h Hub) driversOver(live []operatorv1.RegistrationDriverHub) []operatorv1.RegistrationDriverHub {
	wanted := slices.Clone(h.Drivers)
	for _, old := range live {
		i := slices.IndexFunc(wanted, func(d operatorv1.RegistrationDriverHub) bool { return d.AuthType == old.AuthType })
		switch {
		case i < 0 && h.KeepDrivers:
			wanted = append(wanted, old)
		case i >= 0 && wanted[i].CSR == nil:
			wanted[i].CSR = old.CSR
		}
	}
	return wanted
}

// mergeGates sets gates by name and keeps the others.
func mergeGates(live, wanted []operatorv1.FeatureGate) []operatorv1.FeatureGate {
	merged := slices.Clone(live)
	for _, gate := range wanted {
		i := slices.IndexFunc(merged, func(g operatorv1.FeatureGate) bool { return g.Feature == gate.Feature })
		if i >= 0 {
			merged[i] = gate
			continue
		}
		merged = append(merged, gate)
	}
	return merged
}

func mergeMap(live, wanted map[string]string) map[string]string {
	if len(live)+len(wanted) == 0 {
		return nil
	}
	merged := maps.Clone(live)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, wanted)
	return merged
}
