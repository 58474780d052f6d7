package tokeninfra

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// action is what is to be done about an add-on's token infrastructure.
type action int

const (
	// keep leaves it as it is until the agent has said more.
	keep action = iota
	// build makes or repairs it.
	build
	// remove takes it away.
	remove
)

// verdict is what is right for an add-on as it is.
type verdict struct {
	action action
	// account is the ServiceAccount to build for.
	account string
	// condition says why there is none; nil leaves the condition of a kept
	// add-on alone, and takes that of a removed one away.
	condition *metav1.Condition
}

// judge decides. cluster is nil when the hub does not know it.
func judge(addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster) verdict {
	client := kubeClient(addOn)
	switch {
	case client == nil:
		return verdict{action: remove}
	case !accepted(cluster):
		return unaccepted(addOn, client)
	case client.Driver == "":
		// The agent has not declared yet, or somebody set the registrations
		// anew: it declares again in a moment.
		return verdict{action: keep}
	case client.Driver == string(driver.CSR) && !certified(addOn):
		// The add-on may still work with its token.
		return verdict{action: keep}
	case client.Driver != string(driver.Token):
		return verdict{action: remove}
	case addOn.DeletionTimestamp != nil && condition(addOn) == nil:
		return verdict{action: keep} // What goes needs no identity that it never had.
	}
	return judgeSubject(addOn, client.Subject.User)
}

// unaccepted is the verdict on the add-on of a cluster that is not accepted,
// whatever its agent wrote before: only who waits for tokens is told.
func unaccepted(addOn *addonv1beta1.ManagedClusterAddOn, client *addonv1beta1.KubeClientConfig) verdict {
	v := verdict{action: remove}
	if client.Driver == string(driver.Token) {
		v.condition = notReady(names.ReasonClusterNotAccepted,
			"The hub does not accept the cluster %s, so its add-ons have no identity: accept it", addOn.Namespace)
	}
	return v
}

// certified reports whether the agent has stored the certificates of an add-on.
func certified(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return apimeta.IsStatusConditionTrue(addOn.Status.Conditions, names.ConditionCertificateRotated)
}

func judgeSubject(addOn *addonv1beta1.ManagedClusterAddOn, user string) verdict {
	namespace, account, ok := names.ParseServiceAccountUser(user)
	if !ok {
		// Another driver's subject, which the agent replaces with its second write.
		return verdict{action: keep, condition: waiting(addOn)}
	}
	allowed := names.AddOnServiceAccounts(addOn.Namespace, addOn.Name)
	if namespace != addOn.Namespace || !slices.Contains(allowed, account) {
		return verdict{action: keep, condition: notReady(names.ReasonServiceAccountNotAllowed,
			"The subject in status.registrations is %q, and an add-on's agent may only be one of %s: nothing was made for it; check the cluster's agent",
			user, strings.Join(users(addOn.Namespace, allowed), ", "))}
	}
	return verdict{action: build, account: account}
}

// waiting is the condition of an add-on that was judged before and now has no
// ServiceAccount for a subject. One that never had a condition needs none: the
// agent is about to write the subject.
func waiting(addOn *addonv1beta1.ManagedClusterAddOn) *metav1.Condition {
	for i := range addOn.Status.Conditions {
		if addOn.Status.Conditions[i].Type == names.ConditionTokenInfrastructureReady {
			return notReady(names.ReasonWaitingForSubject, "Waiting until the agent of cluster %s names the add-on's ServiceAccount in status.registrations", addOn.Namespace)
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
