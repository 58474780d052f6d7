package inventory

import (
	"time"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// State is how far a registration came.
type State string

// The states of a registration.
const (
	Ready   State = "Ready"
	Waiting State = "Waiting" // another actor has to act, nothing went wrong
	Failing State = "Failing" // an attempt failed
	Overdue State = "Overdue" // the credential should have been renewed
	Expired State = "Expired"
)

// Registration is the stable schema of one registration of an add-on on one
// cluster.
type Registration struct {
	Cluster string `json:"cluster"`
	AddOn   string `json:"addOn"`
	// Type is kubeClient or customSigner; empty when the add-on has none yet.
	Type       string `json:"type,omitempty"`
	SignerName string `json:"signerName,omitempty"`
	// Driver is csr or token; empty until the agent has declared it.
	Driver string   `json:"driver,omitempty"`
	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Namespace and Secret are where the agent keeps the credential: on the
	// managed cluster, or on HostingCluster if there is one.
	Namespace      string `json:"namespace,omitempty"`
	Secret         string `json:"secret,omitempty"`
	HostingCluster string `json:"hostingCluster,omitempty"`
	// Expires and Refreshed are the agent's report on its credential; a certificate's
	// lifetime begins five minutes before it was refreshed.
	Expires   *time.Time `json:"expires,omitempty"`
	Refreshed *time.Time `json:"refreshed,omitempty"`
	// OpenRequest is the CSR that is not approved or signed yet.
	OpenRequest string `json:"openRequest,omitempty"`
	State       State  `json:"state"`
	// Reason is one word, Message one sentence; both are empty when Ready.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Label names the registration among those of its add-on.
func (r Registration) Label() string {
	if r.SignerName != "" {
		return r.SignerName
	}
	return r.Type
}

// wait says what a registration waits for.
func (r *Registration) wait(state State, reason, message string) {
	r.State, r.Reason, r.Message = state, reason, message
}

// AddOn is the stable schema of an add-on on one cluster.
type AddOn struct {
	Cluster   string `json:"cluster"`
	Name      string `json:"name"`
	Available string `json:"available"`
	// Driver, Expires and Refreshed are the values of the kubeClient registration.
	Driver    string     `json:"driver,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	Refreshed *time.Time `json:"refreshed,omitempty"`
	State     State      `json:"state"`
	// Reason and Message describe the first missing part.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Conditions are the statuses of the conditions by their types.
	Conditions    map[string]string `json:"conditions,omitempty"`
	Created       time.Time         `json:"created"`
	Registrations []Registration    `json:"registrations"`

	// Object is the add-on itself.
	Object *addonv1beta1.ManagedClusterAddOn `json:"-"`
}

// KubeClient returns the first kubeClient registration of an add-on, which is the one
// with a driver. It is nil if there is none.
func KubeClient(obj *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.KubeClientConfig {
	for i := range obj.Status.Registrations {
		if r := &obj.Status.Registrations[i]; r.Type == addonv1beta1.KubeClient {
			if r.KubeClient == nil {
				return &addonv1beta1.KubeClientConfig{}
			}
			return r.KubeClient
		}
	}
	return nil
}

// InstallNamespace is where an add-on's agent runs.
func InstallNamespace(obj *addonv1beta1.ManagedClusterAddOn) string {
	if obj.Status.Namespace != "" {
		return obj.Status.Namespace
	}
	if namespace := obj.Annotations[names.AnnotationInstallNamespace]; namespace != "" {
		return namespace
	}
	return names.AddOnNamespace
}

// Lifetime is how long the credential is valid in all; 0 when that is unknown.
func (r Registration) Lifetime() time.Duration {
	if r.Expires == nil || r.Refreshed == nil {
		return 0
	}
	return max(r.Expires.Sub(*r.Refreshed), 0)
}
