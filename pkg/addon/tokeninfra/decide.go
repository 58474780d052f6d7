package tokeninfra

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// action is the action for an add-on's token infrastructure.
type action int

const (
	// retain leaves the objects unchanged until the agent reports more.
	retain action = iota
	// build makes or repairs it.
	build
	// remove takes it away.
	remove
)

// decision is the controller's decision for an add-on.
type decision struct {
	action action
	// account is the ServiceAccount to build for.
	account string
	// condition says why there is none; nil leaves the condition of a kept add-on
	// unchanged, and removes that of a removed one.
	condition *metav1.Condition
	// until is how long the decision is valid if nothing changes; 0 means no limit.
	until time.Duration
}

// decide returns the decision for an add-on at a time. cluster is nil if it does not exist.
func decide(addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster, now time.Time) decision {
	client := kubeClient(addOn)
	switch {
	case client == nil:
		return decision{action: remove}
	case !accepted(cluster):
		return unaccepted(addOn, client)
	case client.Driver == "":
		// The agent has not set the driver yet, or the registrations were reset: the
		// agent sets it again.
		return decision{action: retain}
	case client.Driver == string(driver.CSR):
		return decideCertified(addOn, now)
	case client.Driver != string(driver.Token):
		return decision{action: remove}
	case addOn.DeletionTimestamp != nil && condition(addOn) == nil:
		return decision{action: retain} // What goes needs no identity that it never had.
	}
	return decideSubject(addOn, client.Subject.User)
}

// unaccepted is the decision for the add-on of a cluster that is not accepted. Only an
// add-on that waits for tokens gets a condition.
func unaccepted(addOn *addonv1beta1.ManagedClusterAddOn, client *addonv1beta1.KubeClientConfig) decision {
	v := decision{action: remove}
	if client.Driver == string(driver.Token) {
		v.condition = notReady(names.ReasonClusterNotAccepted,
			"The hub does not accept cluster %s, so its add-ons have no identity; accept the cluster", addOn.Namespace)
	}
	return v
}

// decideCertified is the decision for an add-on with driver csr. Until the agent has stored
// the certificate, the add-on may work with its token, and for a while its Pods may still
// have that.
func decideCertified(addOn *addonv1beta1.ManagedClusterAddOn, now time.Time) decision {
	switch {
	case !certified(addOn):
		return decision{action: retain}
	case condition(addOn) == nil:
		return decision{action: remove}
	}
	v := decision{action: retain}
	stored := apimeta.FindStatusCondition(addOn.Status.Conditions, names.ConditionCertificateRotated)
	if stored.Status != metav1.ConditionTrue {
		// Nothing says since when the add-on has it, so that we have to remember.
		v.condition = notReady(names.ReasonTokensRetained, "The add-on has a certificate; its ServiceAccount is removed within minutes")
		stored = retained(addOn, now)
	}
	if v.until = driver.SwitchGraceLeft(stored, now); v.until > 0 {
		return v
	}
	return decision{action: remove}
}

// certified reports whether the agent has stored the certificate of the kubeClient
// registration. The condition is about all certificates of an add-on.
func certified(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	stored := apimeta.FindStatusCondition(addOn.Status.Conditions, names.ConditionCertificateRotated)
	return stored != nil && (stored.Status == metav1.ConditionTrue || othersFail(addOn, stored.Message))
}

// othersFail reports whether the condition about all certificates of an add-on is False for
// others than that of the kubeClient registration.
func othersFail(addOn *addonv1beta1.ManagedClusterAddOn, message string) bool {
	if _, mine := driver.SummaryPart(message, string(addonv1beta1.KubeClient)); mine {
		return false
	}
	return slices.ContainsFunc(addOn.Status.Registrations, func(r addonv1beta1.RegistrationConfig) bool {
		if r.CustomSigner == nil {
			return false
		}
		_, found := driver.SummaryPart(message, r.CustomSigner.SignerName)
		return found
	})
}

// retained is a condition that is True since this controller has seen the certificate.
func retained(addOn *addonv1beta1.ManagedClusterAddOn, now time.Time) *metav1.Condition {
	since := metav1.NewTime(now)
	if c := condition(addOn); c.Reason == names.ReasonTokensRetained {
		since = c.LastTransitionTime
	}
	return &metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: since}
}

func decideSubject(addOn *addonv1beta1.ManagedClusterAddOn, user string) decision {
	namespace, account, ok := names.ParseServiceAccountUser(user)
	if !ok {
		// Another driver's subject, which the agent replaces with its second write.
		return decision{action: retain, condition: waiting(addOn)}
	}
	allowed := names.AddOnServiceAccounts(addOn.Namespace, addOn.Name)
	if namespace != addOn.Namespace || !slices.Contains(allowed, account) {
		return decision{action: retain, condition: notReady(names.ReasonServiceAccountNotAllowed,
			"The subject %q in status.registrations is not one of the allowed ServiceAccounts %s, so no token infrastructure was created; check the cluster's agent",
			user, strings.Join(users(addOn.Namespace, allowed), ", "))}
	}
	return decision{action: build, account: account}
}

// waiting returns the condition of an add-on that no longer has a ServiceAccount as
// subject. One without a condition needs none: the agent is about to set the subject.
func waiting(addOn *addonv1beta1.ManagedClusterAddOn) *metav1.Condition {
	for i := range addOn.Status.Conditions {
		if addOn.Status.Conditions[i].Type == names.ConditionTokenInfrastructureReady {
			return notReady(names.ReasonWaitingForSubject, "Waiting for the agent of cluster %s to set the add-on's ServiceAccount in status.registrations", addOn.Namespace)
		}
	}
	return nil
}

func users(namespace string, accounts []string) []string {
	out := make([]string, len(accounts))
	for i, account := range accounts {
		out[i] = names.ServiceAccountUser(namespace, account)
	}
	return out
}

func accepted(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil && cluster.Spec.HubAcceptsClient
}

// kubeClient is the first kubeClient registration, the only one that tokens are for.
func kubeClient(addOn *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.KubeClientConfig {
	for i := range addOn.Status.Registrations {
		if registration := &addOn.Status.Registrations[i]; registration.Type == addonv1beta1.KubeClient {
			if registration.KubeClient == nil {
				return &addonv1beta1.KubeClientConfig{}
			}
			return registration.KubeClient
		}
	}
	return nil
}

func notReady(reason, format string, args ...any) *metav1.Condition {
	return &metav1.Condition{
		Type: names.ConditionTokenInfrastructureReady, Status: metav1.ConditionFalse,
		Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func ready(account names.TokenServiceAccount) metav1.Condition {
	return metav1.Condition{
		Type: names.ConditionTokenInfrastructureReady, Status: metav1.ConditionTrue,
		Reason: names.ReasonTokenInfrastructureReady, Message: account.Message(),
	}
}
