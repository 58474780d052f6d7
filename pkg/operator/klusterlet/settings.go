package klusterlet

import (
	"context"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Reasons of the condition Applied that are ours.
const (
	// ReasonDriverNotSupported is about spec.registrationConfiguration.registrationDriver.
	ReasonDriverNotSupported = "RegistrationDriverNotSupported"
	// ReasonAddOnDriverNotSupported is about
	// spec.registrationConfiguration.addOnKubeClientRegistrationDriver.
	ReasonAddOnDriverNotSupported = "AddOnRegistrationDriverNotSupported"
	// ReasonSettingInvalid is about another setting that the agent rejects.
	ReasonSettingInvalid = "AgentSettingInvalid"
	// ReasonNamespaceInUse is about a spec.namespace that belongs to another Klusterlet.
	ReasonNamespaceInUse = "NamespaceInUse"
	// ReasonDeleting is the reason while a deletion is in progress.
	ReasonDeleting = "KlusterletDeleting"
)

// rejectedSetting returns the rejection of a setting with which the agent would not
// start, or nil. A running agent retains its settings, a missing one is not created,
// and everything else is applied.
func (r *Reconciler) rejectedSetting(k *operatorv1.Klusterlet) *metav1.Condition {
	if name := k.Spec.ClusterName; name != "" {
		if err := names.ValidateClusterName(name); err != nil {
			return operand.Rejection(ReasonSettingInvalid, "spec.clusterName: %v", err)
		}
	}
	for _, server := range k.Spec.ExternalServerURLs {
		if u, err := url.Parse(server.URL); server.URL != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
			return operand.Rejection(ReasonSettingInvalid, "spec.externalServerURLs: %q is not an https URL", server.URL)
		}
	}
	if c := k.Spec.RegistrationConfiguration; c != nil {
		return r.rejectedRegistration(c)
	}
	return nil
}

func (r *Reconciler) rejectedRegistration(c *operatorv1.RegistrationConfiguration) *metav1.Condition {
	const path = "spec.registrationConfiguration"
	setup, err := r.config.Drivers.Parse(c.RegistrationDriver.AuthType)
	switch seconds, claims := c.ClientCertExpirationSeconds, c.ClusterClaimConfiguration; {
	case err != nil:
		return operand.Rejection(ReasonDriverNotSupported, path+".registrationDriver.authType: %v", err)
	case seconds != 0 && seconds < driver.MinClientCertSeconds:
		return operand.Rejection(ReasonSettingInvalid, path+".clientCertExpirationSeconds is %d: use at least %d, or 0 to leave it to the hub", seconds, driver.MinClientCertSeconds)
	case claims != nil && claims.MaxCustomClusterClaims < 0:
		return operand.Rejection(ReasonSettingInvalid, path+".clusterClaimConfiguration.maxCustomClusterClaims is %d: use 0 or more", claims.MaxCustomClusterClaims)
	}
	if err := setup.ValidateAgent(c.RegistrationDriver); err != nil {
		return operand.Rejection(ReasonSettingInvalid, "%v", err)
	}
	if problem := addOnProblem(c.AddOnKubeClientRegistrationDriver); problem != "" {
		return operand.Rejection(ReasonAddOnDriverNotSupported, "%s", problem)
	}
	return nil
}

// plan returns the phases of a pass, and the rejection of a setting that they omit; nil
// if there is none. After a rejection the work agent stays unchanged: it has settings
// of both kinds, and none of its objects may be pruned.
func (r *Reconciler) plan(ctx context.Context, s *scope) ([]operand.Phase[manifests.Klusterlet], *metav1.Condition, error) {
	rejected := r.rejectedSetting(s.klusterlet)
	agent := operand.Component{
		Name: "agent", Kind: "agent", Phase: agentPhase, Args: &s.Values.RegistrationArgs,
		Deployment:  client.ObjectKey{Namespace: s.Values.Namespace, Name: names.RegistrationAgentDeployment(s.klusterlet.Name)},
		Account:     client.ObjectKey{Namespace: s.Values.Namespace, Name: names.RegistrationAgentServiceAccount(s.klusterlet.Name)},
		Annotations: &s.Values.RegistrationAnnotations,
		Keys:        r.config.Drivers.AccountKeys(),
	}
	phases, err := operand.RetainSettings(ctx, r.Uncached, agent, rejected, r.phases())
	if rejected == nil {
		rejected = rejectedWork(s.klusterlet)
	}
	if rejected != nil {
		phases = slices.DeleteFunc(phases, func(p operand.Phase[manifests.Klusterlet]) bool { return p.Name == phaseWork || p.Name == phasePrune })
	}
	return phases, rejected, err
}
