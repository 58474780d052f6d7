package klusterlet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/argument"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// bootstrapFile is a path in the agent's pods.
const bootstrapFile = "/spoke/bootstrap/kubeconfig"

// gateSettings are the gates of a Klusterlet's components. The work agent's are
// evaluated even where it is left out, so that none is ignored in silence.
type gateSettings struct {
	registration, work operand.GateSetting
}

func evaluateGates(k *operatorv1.Klusterlet) gateSettings {
	var registration, work []operatorv1.FeatureGate
	if c := k.Spec.RegistrationConfiguration; c != nil {
		registration = c.FeatureGates
	}
	if c := k.Spec.WorkConfiguration; c != nil {
		work = c.FeatureGates
	}
	known := operand.Gates{
		Specs:       feature.DefaultSpokeRegistrationFeatureGates,
		Implemented: names.AgentRegistrationGates(),
	}
	return gateSettings{
		registration: operand.EvaluateGates(known.Operator(), registration),
		work: operand.EvaluateGates(operand.Gates{
			Specs:       feature.DefaultSpokeWorkFeatureGates,
			Implemented: names.AgentWorkGates(),
		}, work),
	}
}

func (g gateSettings) condition() metav1.Condition {
	return operand.GatesCondition(g.registration, g.work)
}

// values turns the Klusterlet into the values of its manifests.
func (r *Reconciler) values(k *operatorv1.Klusterlet, settings gateSettings, replicas int32, pull []byte) manifests.Klusterlet {
	runtime := r.driverRuntime(k)
	return manifests.Klusterlet{
		Name:             k.Name,
		Namespace:        agentNamespace(k),
		Version:          r.config.Version,
		Labels:           r.labels(k),
		DockerConfig:     pull,
		AddOnNamespace:   !r.config.SkipAddOnNamespace,
		AddOnManagement:  settings.registration.Enabled[feature.AddonManagement],
		PublishIssuer:    k.Annotations[names.AnnotationPublishIssuer] == "true",
		Registration:     r.pod(k, k.Spec.RegistrationImagePullSpec, replicas),
		RegistrationArgs: registrationArgs(k, settings.registration, runtime),

		RegistrationAnnotations: runtime.Account,

		Work: r.work(k, settings.work, replicas),
	}
}

func agentNamespace(k *operatorv1.Klusterlet) string {
	if k.Spec.Namespace == "" {
		return names.AgentNamespace
	}
	return k.Spec.Namespace
}

// labels are put onto everything: whose it is, and the Klusterlet's own labels
// where they are synced.
func (r *Reconciler) labels(k *operatorv1.Klusterlet) map[string]string {
	labels := map[string]string{}
	if r.config.SyncLabels {
		labels = operand.SyncedLabels(k.Labels)
	}
	labels[names.LabelCreatedByKlusterlet] = k.Name
	return labels
}

func (r *Reconciler) pod(k *operatorv1.Klusterlet, image string, replicas int32) manifests.Pod {
	pod := manifests.Pod{
		Image:             cmp.Or(image, r.config.Image),
		Replicas:          replicas,
		Resources:         manifests.Resources(k.Spec.ResourceRequirement),
		NodeSelector:      k.Spec.NodePlacement.NodeSelector,
		Tolerations:       k.Spec.NodePlacement.Tolerations,
		PriorityClassName: k.Spec.PriorityClassName,
	}
	if alias := k.Spec.HubApiServerHostAlias; alias != nil {
		pod.HostAliases = []corev1.HostAlias{{IP: alias.IP, Hostnames: []string{alias.Hostname}}}
	}
	return pod
}

// driverRuntime returns what the agent needs to run with the cluster's driver.
func (r *Reconciler) driverRuntime(k *operatorv1.Klusterlet) driver.Runtime {
	c := k.Spec.RegistrationConfiguration
	if c == nil {
		return driver.Runtime{}
	}
	setup, err := r.config.Drivers.Parse(c.RegistrationDriver.AuthType)
	if err != nil {
		return driver.Runtime{} // Such a Klusterlet is rejected.
	}
	return setup.AgentRuntime(c.RegistrationDriver)
}

// registrationArgs are the agent's flags.
func registrationArgs(k *operatorv1.Klusterlet, settings operand.GateSetting, runtime driver.Runtime) []string {
	args := []string{
		"--klusterlet-name=" + k.Name,
		"--spoke-cluster-name=" + k.Spec.ClusterName,
		"--bootstrap-kubeconfig=" + bootstrapFile,
	}
	if urls := externalURLs(k); urls != "" {
		args = append(args, "--spoke-external-server-urls="+urls)
	}
	args = append(args, settings.Args()...)
	args = append(args, issuerArgs(k)...)
	args = append(args, runtime.Args...)
	c := k.Spec.RegistrationConfiguration
	if c == nil {
		return args
	}
	if c.ClientCertExpirationSeconds > 0 {
		args = append(args, fmt.Sprintf("--client-cert-expiration-seconds=%d", c.ClientCertExpirationSeconds))
	}
	for _, key := range slices.Sorted(maps.Keys(c.ClusterAnnotations)) {
		if strings.HasPrefix(key, names.AnnotationAgentPrefix) {
			args = append(args, "--cluster-annotations="+argument.Pair(key, c.ClusterAnnotations[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.ClusterLabels)) {
		// The agent would not start with one that no object can have, nor create a
		// ManagedCluster with one of the hub's.
		if len(metav1validation.ValidateLabels(map[string]string{key: c.ClusterLabels[key]}, nil)) == 0 && !names.OfHub(key) {
			args = append(args, "--cluster-labels="+argument.Pair(key, c.ClusterLabels[key]))
		}
	}
	args = append(args, addOnArgs(c.AddOnKubeClientRegistrationDriver)...)
	if claims := c.ClusterClaimConfiguration; claims != nil {
		args = append(args, fmt.Sprintf("--max-custom-cluster-claims=%d", claims.MaxCustomClusterClaims))
		if len(claims.ReservedClusterClaimSuffixes) > 0 {
			args = append(args, "--reserved-cluster-claim-suffixes="+argument.List(claims.ReservedClusterClaimSuffixes...))
		}
	}
	return args
}

func externalURLs(k *operatorv1.Klusterlet) string {
	var urls []string
	for _, server := range k.Spec.ExternalServerURLs {
		if server.URL != "" {
			urls = append(urls, server.URL)
		}
	}
	return argument.List(urls...)
}

// issuerArgs have the agent publish the cluster's issuer, or take it back. Where
// neither was ever set, the agent does nothing about it.
func issuerArgs(k *operatorv1.Klusterlet) []string {
	switch k.Annotations[names.AnnotationPublishIssuer] {
	case "true":
		return []string{"--publish-issuer"}
	case "false":
		return []string{"--publish-issuer=false"}
	}
	return nil
}
