package agent

import (
	"strconv"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// DefaultCertificateSeconds is the lifetime that a new agent asks for of its client
// certificate: 90 days. Without a request, the signer of Kubernetes issues it for a year.
const DefaultCertificateSeconds = 90 * 24 * 60 * 60

// klusterlet returns the Klusterlet that is wanted. live may be nil.
func (k Values) klusterlet(live *operatorv1.Klusterlet) *operatorv1.Klusterlet {
	out := named(names.KlusterletName)
	if live != nil {
		out.Spec = *live.Spec.DeepCopy()
		out.Spec.DeployOption.Mode = k.TakeOver.Mode(out.Spec.DeployOption.Mode)
	} else {
		out.Spec.DeployOption.Mode = operatorv1.InstallModeDefault
		out.Spec.Namespace = names.AgentNamespace
		out.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{ClientCertExpirationSeconds: DefaultCertificateSeconds}
	}
	image := k.TakeOver.Image(k.Workload, out.Spec.RegistrationImagePullSpec)
	out.Spec.RegistrationImagePullSpec = image
	out.Spec.WorkImagePullSpec = image
	out.Spec.ImagePullSpec = image
	if k.ClusterName != "" {
		out.Spec.ClusterName = k.ClusterName
	}
	if k.ExternalServer != "" && len(out.Spec.ExternalServerURLs) == 0 {
		out.Spec.ExternalServerURLs = []operatorv1.ServerURL{{URL: k.ExternalServer}}
	}
	if k.HostAlias != nil {
		out.Spec.HubApiServerHostAlias = k.HostAlias
	}
	if k.PriorityClass != "" {
		out.Spec.PriorityClassName = k.PriorityClass
	}
	if k.Resources != nil {
		out.Spec.ResourceRequirement = k.Resources.DeepCopy()
	}
	if k.Placement != nil {
		out.Spec.NodePlacement = *k.Placement.DeepCopy()
	}
	k.Registration.fill(&out.Spec)
	out.Annotations = k.annotations(live)
	return out
}

// annotations returns the annotations of the Klusterlet.
func (k Values) annotations(live *operatorv1.Klusterlet) map[string]string {
	wanted := map[string]string{}
	if live != nil && live.Annotations[names.AnnotationPublishIssuer] != "" {
		wanted[names.AnnotationPublishIssuer] = live.Annotations[names.AnnotationPublishIssuer]
	}
	if k.PublishIssuer != nil {
		wanted[names.AnnotationPublishIssuer] = strconv.FormatBool(*k.PublishIssuer)
	}
	k.Work.annotate(wanted, live)
	return wanted
}

// fill fills the part about how the cluster registers.
func (r Registration) fill(spec *operatorv1.KlusterletSpec) {
	if spec.RegistrationConfiguration == nil {
		spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{}
	}
	c := spec.RegistrationConfiguration
	if r.Driver != nil {
		c.RegistrationDriver = *r.Driver
	}
	if r.AddOns != nil {
		c.AddOnKubeClientRegistrationDriver = r.AddOns
	}
	if r.CertificateSeconds != nil {
		c.ClientCertExpirationSeconds = *r.CertificateSeconds
	}
	agentGates(spec, r.FeatureGates)
	c.ClusterAnnotations = install.MergeMap(c.ClusterAnnotations, r.Annotations)
	c.ClusterLabels = install.MergeMap(c.ClusterLabels, r.Labels)
}
