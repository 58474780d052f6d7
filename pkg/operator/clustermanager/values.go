package clustermanager

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/argument"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// gateSettings are the gates of a ClusterManager's components. The gates of
// components that this version does not deploy are evaluated too, so that none
// is ignored in silence.
type gateSettings struct {
	registration operand.GateSetting
	addOns       operand.GateSetting
	work         operand.GateSetting
	others       []operand.GateSetting
}

func evaluateGates(spec *operatorv1.ClusterManagerSpec) gateSettings {
	var registration, work, addOn, placement []operatorv1.FeatureGate
	if c := spec.RegistrationConfiguration; c != nil {
		registration = c.FeatureGates
	}
	if c := spec.WorkConfiguration; c != nil {
		work = c.FeatureGates
	}
	if c := spec.AddOnManagerConfiguration; c != nil {
		addOn = c.FeatureGates
	}
	if c := spec.PlacementConfiguration; c != nil {
		placement = c.FeatureGates
	}
	known := operand.Gates{
		Specs:       feature.DefaultHubRegistrationFeatureGates,
		Implemented: names.HubRegistrationGates(),
	}
	return gateSettings{
		registration: operand.EvaluateGates(known.Operator(), registration),
		addOns: operand.EvaluateGates(operand.Gates{
			Specs:       feature.DefaultHubAddonManagerFeatureGates,
			Implemented: names.HubAddOnGates(),
		}, addOn),
		work: operand.EvaluateGates(operand.Gates{
			Specs:       feature.DefaultHubWorkFeatureGates,
			Implemented: names.HubWorkGates(),
		}, work),
		others: []operand.GateSetting{
			operand.EvaluateGates(operand.Gates{Specs: feature.DefaultHubPlacementFeatureGates}, placement),
		},
	}
}

func (g gateSettings) condition() metav1.Condition {
	return operand.GatesCondition(append(slices.Clone(g.others), g.registration, g.addOns, g.work)...)
}

// values turns the ClusterManager into the values of its manifests.
func (r *Reconciler) values(cm *operatorv1.ClusterManager, settings gateSettings, replicas int32, pull []byte) manifests.Hub {
	synced := r.syncedLabels(cm)
	own := map[string]string{}
	maps.Copy(own, synced)
	own[names.LabelCreatedByClusterManager] = cm.Name
	pod := manifests.Pod{
		Image:        r.config.Image,
		Replicas:     replicas,
		Resources:    manifests.Resources(cm.Spec.ResourceRequirement),
		NodeSelector: cm.Spec.NodePlacement.NodeSelector,
		Tolerations:  cm.Spec.NodePlacement.Tolerations,
	}
	if image := cm.Spec.RegistrationImagePullSpec; image != "" {
		pod.Image = image
	}
	runtime := r.driverRuntime(cm)
	addOns := pod
	addOns.Image = r.config.Image
	if image := cm.Spec.AddOnManagerImagePullSpec; image != "" {
		addOns.Image = image
	}
	return manifests.Hub{
		Name:         cm.Name,
		Namespace:    names.HubNamespace,
		Version:      r.config.Version,
		Labels:       own,
		DockerConfig: pull,
		Registration: pod,
		RegistrationArgs: slices.Concat(
			registrationArgs(cm.Spec.RegistrationConfiguration, settings.registration, synced), workArgs(settings.work), runtime.Args),

		RegistrationAnnotations: runtime.Account,
		System:                  runtime.System,
		IdentityAnnotations:     r.config.Drivers.Annotations(),

		AddOnManager:          addOnManager(settings, addOns),
		AddOnWebhook:          addOns,
		NilExecutorValidating: settings.work.Enabled[feature.NilExecutorValidating],
		ReplicaSets:           settings.work.Enabled[feature.ManifestWorkReplicaSet],
		TokenAuthorizer:       tokenAuthorizer(cm.Annotations, addOns),
	}
}

// tokenAuthorizerReplicas is the minimum number of token authorizers: requests fail
// without one.
const tokenAuthorizerReplicas = 2

// tokenAuthorizer returns the token authorizer if the annotation enables it. It runs on
// the nodes of the hub's other pods.
func tokenAuthorizer(annotations map[string]string, pod manifests.Pod) *manifests.TokenAuthorizer {
	if annotations[names.AnnotationTokenAuthorizer] != "true" {
		return nil
	}
	pod.Replicas = max(pod.Replicas, tokenAuthorizerReplicas)
	return &manifests.TokenAuthorizer{
		Component: manifests.Component{Pod: pod}, TLSSecret: annotations[names.AnnotationTokenAuthorizerTLS],
		TokenService: annotations[names.AnnotationTokenService] == "true",
	}
}

// addOnManager is the add-on manager, unless its feature gate is off. It runs
// where the other pods of the hub run.
func addOnManager(settings gateSettings, pod manifests.Pod) *manifests.Component {
	if !settings.addOns.Enabled[feature.AddonManagement] {
		return nil
	}
	return &manifests.Component{Pod: pod, Args: settings.addOns.Args()}
}

// syncedLabels are the ClusterManager's own labels where they are to be copied.
func (r *Reconciler) syncedLabels(cm *operatorv1.ClusterManager) map[string]string {
	if r.config.SyncLabels {
		return operand.SyncedLabels(cm.Labels)
	}
	return nil
}

// registrationArgs are the registration controller's flags.
func registrationArgs(c *operatorv1.RegistrationHubConfiguration, settings operand.GateSetting, labels map[string]string) []string {
	args := settings.Args()
	if c != nil {
		if len(c.AutoApproveUsers) > 0 {
			args = append(args, "--cluster-auto-approval-users="+argument.List(c.AutoApproveUsers...))
		}
	}
	if len(labels) > 0 {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			pairs = append(pairs, key+"="+labels[key])
		}
		args = append(args, "--labels="+strings.Join(pairs, ","))
	}
	return args
}

// workArgs are the flags for the controllers of ManifestWorks, which run in the
// registration controller.
func workArgs(settings operand.GateSetting) []string {
	var args []string
	for _, gate := range names.HubWorkControllerGates() {
		if settings.Enabled[gate] {
			args = append(args, fmt.Sprintf("--feature-gates=%s=true", gate))
		}
	}
	return args
}
