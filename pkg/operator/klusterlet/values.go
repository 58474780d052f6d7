package klusterlet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/gates"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/resources"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/synclabels"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Paths in the agent's pods (contract D.4).
const (
	bootstrapFile = "/spoke/bootstrap/kubeconfig"
)

// gateSettings are the gates of a Klusterlet's components. The work agent's are
// judged already, so that a typing error does not wait for it to be found.
type gateSettings struct {
	registration, work gates.Setting
}

func evaluateGates(k *operatorv1.Klusterlet) gateSettings {
	var registration, work []operatorv1.FeatureGate
	if c := k.Spec.RegistrationConfiguration; c != nil {
		registration = c.FeatureGates
	}
	if c := k.Spec.WorkConfiguration; c != nil {
		work = c.FeatureGates
	}
	return gateSettings{
		registration: gates.Evaluate(feature.DefaultSpokeRegistrationFeatureGates, registration),
		work:         gates.Evaluate(feature.DefaultSpokeWorkFeatureGates, work),
	}
}

func (g gateSettings) condition() metav1.Condition { return gates.Condition(g.registration, g.work) }

// Reasons of the condition Applied for what this version cannot do.
const (
	// ReasonModeNotSupported is about spec.deployOption.mode.
	ReasonModeNotSupported = "InstallModeNotSupported"
	// ReasonDriverNotSupported is about spec.registrationConfiguration.registrationDriver.
	ReasonDriverNotSupported = "RegistrationDriverNotSupported"
	// ReasonAddOnDriverNotSupported is about
	// spec.registrationConfiguration.addOnKubeClientRegistrationDriver.
	ReasonAddOnDriverNotSupported = "AddOnRegistrationDriverNotSupported"
	// ReasonDeleting says what a deletion waits for.
	ReasonDeleting = "KlusterletDeleting"
	// ReasonGateNotSupported is about a feature gate that is known but not there yet.
	ReasonGateNotSupported = "FeatureGateNotSupported"
)

// unsupported returns the condition that says what this version cannot do, or
// nil. Nothing is applied for such a Klusterlet, and what runs goes on running.
func unsupported(k *operatorv1.Klusterlet) *metav1.Condition {
	refuse := func(reason, format string, args ...any) *metav1.Condition {
		return &metav1.Condition{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	if mode := k.Spec.DeployOption.Mode; mode != "" && mode != operatorv1.InstallModeDefault {
		return refuse(ReasonModeNotSupported, "The install mode %s is not supported by this version: set spec.deployOption.mode to Default", mode)
	}
	c := k.Spec.RegistrationConfiguration
	if c == nil {
		return nil
	}
	kind, err := driver.ParseAuthType(c.RegistrationDriver.AuthType)
	if err != nil {
		return refuse(ReasonDriverNotSupported, "spec.registrationConfiguration.registrationDriver.authType: %v", err)
	}
	if kind != driver.CSR {
		return refuse(ReasonDriverNotSupported, "The registration driver %s is not supported by this version: use csr", kind)
	}
	setting := gates.Evaluate(feature.DefaultSpokeRegistrationFeatureGates, c.FeatureGates)
	if problem := addOnProblem(c.AddOnKubeClientRegistrationDriver); problem != "" {
		return refuse(ReasonAddOnDriverNotSupported, "%s", problem)
	}
	if on := setting.On(feature.MultipleHubs, feature.ClusterProperty, feature.V1beta1CSRAPICompatibility); len(on) > 0 {
		return refuse(ReasonGateNotSupported, "The feature gates %v are not supported by this version: disable them", on)
	}
	return nil
}

// values turns the Klusterlet into the values of its manifests.
func (r *Reconciler) values(k *operatorv1.Klusterlet, settings gateSettings, replicas int32, pull []byte) manifests.Klusterlet {
	return manifests.Klusterlet{
		Name:             k.Name,
		Namespace:        agentNamespace(k),
		Version:          r.config.Version,
		Labels:           r.labels(k),
		DockerConfig:     pull,
		AddOnNamespace:   !r.config.SkipAddOnNamespace,
		AddOnManagement:  settings.registration.Enabled[feature.AddonManagement],
		PublishIssuer:    k.Annotations[names.AnnotationPublishIssuer] == "true",
		Registration:     r.pod(k, replicas),
		RegistrationArgs: registrationArgs(k, settings.registration),
	}
}

func agentNamespace(k *operatorv1.Klusterlet) string {
	if k.Spec.Namespace == "" {
		return names.AgentNamespace
	}
	return k.Spec.Namespace
}

// labels are put onto everything: whose it is, and the Klusterlet's own labels
// where they are synced (contract A.4).
func (r *Reconciler) labels(k *operatorv1.Klusterlet) map[string]string {
	labels := map[string]string{}
	if r.config.SyncLabels {
		labels = synclabels.Of(k.Labels)
	}
	labels[names.LabelCreatedByKlusterlet] = k.Name
	return labels
}

func (r *Reconciler) pod(k *operatorv1.Klusterlet, replicas int32) manifests.Pod {
	pod := manifests.Pod{
		Image:             r.config.Image,
		Replicas:          replicas,
		Resources:         resources.For(k.Spec.ResourceRequirement),
		NodeSelector:      k.Spec.NodePlacement.NodeSelector,
		Tolerations:       k.Spec.NodePlacement.Tolerations,
		PriorityClassName: k.Spec.PriorityClassName,
	}
	if image := k.Spec.RegistrationImagePullSpec; image != "" {
		pod.Image = image
	}
	if alias := k.Spec.HubApiServerHostAlias; alias != nil {
		pod.HostAliases = []corev1.HostAlias{{IP: alias.IP, Hostnames: []string{alias.Hostname}}}
	}
	return pod
}

// registrationArgs are the agent's flags (contract B.1, D.2).
func registrationArgs(k *operatorv1.Klusterlet, settings gates.Setting) []string {
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
	c := k.Spec.RegistrationConfiguration
	if c == nil {
		return args
	}
	if c.ClientCertExpirationSeconds > 0 {
		args = append(args, fmt.Sprintf("--client-cert-expiration-seconds=%d", c.ClientCertExpirationSeconds))
	}
	for _, key := range slices.Sorted(maps.Keys(c.ClusterAnnotations)) {
		if strings.HasPrefix(key, names.AnnotationAgentPrefix) {
			args = append(args, fmt.Sprintf("--cluster-annotations=%s=%s", key, c.ClusterAnnotations[key]))
		}
	}
	args = append(args, addOnArgs(c.AddOnKubeClientRegistrationDriver)...)
	if claims := c.ClusterClaimConfiguration; claims != nil {
		args = append(args, fmt.Sprintf("--max-custom-cluster-claims=%d", claims.MaxCustomClusterClaims))
		if len(claims.ReservedClusterClaimSuffixes) > 0 {
			args = append(args, "--reserved-cluster-claim-suffixes="+strings.Join(claims.ReservedClusterClaimSuffixes, ","))
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
	return strings.Join(urls, ",")
}

// issuerArgs have the agent publish the cluster's issuer, or take it back. Where
// nobody ever asked for either, the agent does nothing about it.
func issuerArgs(k *operatorv1.Klusterlet) []string {
	switch k.Annotations[names.AnnotationPublishIssuer] {
	case "true":
		return []string{"--publish-issuer"}
	case "false":
		return []string{"--publish-issuer=false"}
	}
	return nil
}
