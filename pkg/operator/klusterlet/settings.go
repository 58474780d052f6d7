package klusterlet

import (
	"context"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/pass"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// Reasons of the condition Applied that are ours.
const (
	// ReasonModeNotSupported is about spec.deployOption.mode.
	ReasonModeNotSupported = "InstallModeNotSupported"
	// ReasonDriverNotSupported is about spec.registrationConfiguration.registrationDriver.
	ReasonDriverNotSupported = "RegistrationDriverNotSupported"
	// ReasonAddOnDriverNotSupported is about
	// spec.registrationConfiguration.addOnKubeClientRegistrationDriver.
	ReasonAddOnDriverNotSupported = "AddOnRegistrationDriverNotSupported"
	// ReasonSettingInvalid is about another setting that the agent would refuse.
	ReasonSettingInvalid = "AgentSettingInvalid"
	// ReasonNamespaceInUse says that spec.namespace belongs to another Klusterlet.
	ReasonNamespaceInUse = "NamespaceInUse"
	// ReasonDeleting says what a deletion waits for.
	ReasonDeleting = "KlusterletDeleting"
)

// unsupportedMode returns the condition of an install mode that this version
// does not have, or nil. Nothing is applied for such a Klusterlet, because its
// agents would run in the wrong place; what runs goes on running.
func unsupportedMode(k *operatorv1.Klusterlet) *metav1.Condition {
	mode := k.Spec.DeployOption.Mode
	if mode == "" || mode == operatorv1.InstallModeDefault {
		return nil
	}
	return refuse(ReasonModeNotSupported, "The install mode %s is not supported by this version: set spec.deployOption.mode to Default", mode)
}

// refusedSetting returns the condition of a setting with which the agent would
// not start, or nil. An agent that runs keeps its settings meanwhile, and none
// is created; everything else is applied.
func refusedSetting(k *operatorv1.Klusterlet) *metav1.Condition {
	if name := k.Spec.ClusterName; name != "" {
		if err := names.ValidateClusterName(name); err != nil {
			return refuse(ReasonSettingInvalid, "spec.clusterName: %v", err)
		}
	}
	for _, server := range k.Spec.ExternalServerURLs {
		if u, err := url.Parse(server.URL); server.URL != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
			return refuse(ReasonSettingInvalid, "spec.externalServerURLs: %q is not an https URL", server.URL)
		}
	}
	if c := k.Spec.RegistrationConfiguration; c != nil {
		return refusedRegistration(c)
	}
	return nil
}

func refusedRegistration(c *operatorv1.RegistrationConfiguration) *metav1.Condition {
	const path = "spec.registrationConfiguration"
	kind, err := driver.ParseAuthType(c.RegistrationDriver.AuthType)
	switch seconds, claims := c.ClientCertExpirationSeconds, c.ClusterClaimConfiguration; {
	case err != nil:
		return refuse(ReasonDriverNotSupported, path+".registrationDriver.authType: %v", err)
	case kind == driver.GRPC:
		return refuse(ReasonDriverNotSupported, "The registration driver %s is not supported by this version: use csr or awsirsa", kind)
	case seconds != 0 && seconds < driver.MinClientCertSeconds:
		return refuse(ReasonSettingInvalid, path+".clientCertExpirationSeconds is %d: use at least %d, or 0 to leave it to the hub", seconds, driver.MinClientCertSeconds)
	case claims != nil && claims.MaxCustomClusterClaims < 0:
		return refuse(ReasonSettingInvalid, path+".clusterClaimConfiguration.maxCustomClusterClaims is %d: use 0 or more", claims.MaxCustomClusterClaims)
	}
	if kind == driver.AWSIRSA {
		if _, err := identity.PairOf(c.RegistrationDriver); err != nil {
			return refuse(ReasonSettingInvalid, "%v", err)
		}
	}
	if problem := addOnProblem(c.AddOnKubeClientRegistrationDriver); problem != "" {
		return refuse(ReasonAddOnDriverNotSupported, "%s", problem)
	}
	return nil
}

func refuse(reason, format string, args ...any) *metav1.Condition {
	return &metav1.Condition{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// plan returns the phases of a pass, and the condition of a setting that they
// leave out, which is nil where there is none.
func (r *Reconciler) plan(ctx context.Context, s *scope) ([]pass.Phase[manifests.Klusterlet], *metav1.Condition, error) {
	phases := r.phases()
	refused := refusedSetting(s.klusterlet)
	if refused == nil {
		return phases, nil, nil
	}
	agent := pass.Component{
		Name: "agent", Kind: "agent", Phase: agentPhase, Args: &s.Values.RegistrationArgs,
		Deployment:  client.ObjectKey{Namespace: s.Values.Namespace, Name: names.RegistrationAgentDeployment(s.klusterlet.Name)},
		Account:     client.ObjectKey{Namespace: s.Values.Namespace, Name: names.RegistrationAgentServiceAccount(s.klusterlet.Name)},
		Annotations: &s.Values.RegistrationAnnotations,
	}
	phases, err := pass.KeepSettings(ctx, r.uncached, agent, refused, phases)
	return phases, refused, err
}
