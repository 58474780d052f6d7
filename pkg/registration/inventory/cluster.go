package inventory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/census"
)

// Cluster is the stable schema of a managed cluster in the machine formats.
type Cluster struct {
	Name string `json:"name"`
	// State sums up the rest.
	State      census.State `json:"state"`
	Accepted   bool         `json:"accepted"`
	Joined     bool         `json:"joined"`
	Available  string       `json:"available"`
	ClusterSet string       `json:"clusterSet,omitempty"`
	CPU        string       `json:"cpu,omitempty"`
	Memory     string       `json:"memory,omitempty"`
	Version    string       `json:"kubernetesVersion,omitempty"`
	// Auth is how the cluster authenticates to the hub.
	Auth string `json:"auth"`
	// Identity is the one that a driver knows the cluster by, and Granted what the hub
	// recorded that it was granted.
	Identity string `json:"managedClusterARN,omitempty"`
	Granted  string `json:"roleARN,omitempty"`
	// CredentialExpires is when the agent's certificate ends.
	CredentialExpires *time.Time `json:"credentialExpires,omitempty"`
	Created           time.Time  `json:"created"`
	// Key is the fingerprint of the key that the hub last issued a certificate
	// for, while the cluster is accepted and the request is still on the hub.
	Key string `json:"key,omitempty"`
	// Reason is one sentence about what is missing; empty when nothing is.
	Reason string `json:"reason,omitempty"`
	// Requests are the requests of this cluster that are not settled.
	Requests []approval.Request `json:"requests,omitempty"`
	Labels   map[string]string  `json:"labels,omitempty"`
}

// Describe summarizes a cluster. known are the available registration drivers, requests
// the requests of this cluster.
func Describe(known driver.Catalog, obj *clusterv1.ManagedCluster, requests []approval.Request) Cluster {
	c := Cluster{
		Name: obj.Name, State: census.Of(obj), Accepted: obj.Spec.HubAcceptsClient,
		Joined:     apimeta.IsStatusConditionTrue(obj.Status.Conditions, clusterv1.ManagedClusterConditionJoined),
		Available:  status(obj.Status.Conditions, clusterv1.ManagedClusterConditionAvailable),
		ClusterSet: obj.Labels[names.LabelClusterSet],
		CPU:        quantity(obj.Status.Capacity, clusterv1.ResourceCPU),
		Memory:     quantity(obj.Status.Capacity, clusterv1.ResourceMemory),
		Version:    obj.Status.Version.Kubernetes,
		Auth:       string(driver.CSR),
		Created:    obj.CreationTimestamp.Time,
		Labels:     obj.Labels,
	}
	if by := known.Announced(obj); by != nil {
		c.Auth = string(by.Type())
		c.Identity, _ = by.AnnouncedID(obj) // The hub reports two that differ.
	}
	if certificate, ok := Certificate(known, obj, requests); ok {
		c.CredentialExpires = &certificate.NotAfter
	}
	for _, r := range requests {
		if r.State != approval.Issued && !r.Renewal {
			c.Requests = append(c.Requests, r)
		}
		if r.State == approval.Issued && c.Accepted {
			c.Key = r.Fingerprint // The newest is the last.
		}
	}
	c.Reason = reason(obj, c.Requests, c.conflict())
	return c
}

// PendingKeys are the different keys that wait for a decision.
func (c Cluster) PendingKeys() []string {
	var keys []string
	for _, r := range c.Requests {
		open := r.State == approval.Pending || r.State == approval.Approved
		if open && r.Rejection == "" && !slices.Contains(keys, r.Fingerprint) {
			keys = append(keys, r.Fingerprint)
		}
	}
	return keys
}

// conflict describes the requests that compete for the name of the cluster with
// each other or with an agent that has its credential; empty when none do.
func (c Cluster) conflict() string {
	keys := slices.DeleteFunc(c.PendingKeys(), func(key string) bool { return key == c.Key })
	switch {
	case len(keys) > 1:
		return fmt.Sprintf("conflicting requests with the keys %s; accept one by its fingerprint", strings.Join(keys, ", "))
	case len(keys) == 1 && (c.Joined || c.Key != ""):
		return fmt.Sprintf("conflicting request with the key %s; accept or deny it by its fingerprint", keys[0])
	}
	return ""
}

func status(conditions []metav1.Condition, kind string) string {
	if c := apimeta.FindStatusCondition(conditions, kind); c != nil {
		return string(c.Status)
	}
	return ""
}

func quantity(list clusterv1.ResourceList, name clusterv1.ResourceName) string {
	if q, ok := list[name]; ok {
		return q.String()
	}
	return ""
}

// reason says what a person has to decide, or the first thing that is missing on
// the way of a cluster.
func reason(obj *clusterv1.ManagedCluster, open []approval.Request, conflict string) string {
	conditions := obj.Status.Conditions
	accepted := apimeta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionHubAccepted)
	available := apimeta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case !obj.DeletionTimestamp.IsZero():
		return "being deleted: waits for " + strings.Join(obj.Finalizers, ", ")
	case conflict != "":
		return conflict
	case !obj.Spec.HubAcceptsClient && accepted != nil:
		return "denied"
	case !obj.Spec.HubAcceptsClient:
		return "waits to be accepted"
	case accepted == nil:
		return "accepted; the hub's controller has not acted on it"
	case accepted.Status != metav1.ConditionTrue:
		return accepted.Message
	case !apimeta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionJoined):
		return notJoined(open)
	case available == nil:
		return "joined; the agent has not reported yet"
	case available.Status != metav1.ConditionTrue:
		return available.Message
	}
	return late(conditions)
}

// late says what the agent of an available cluster is late with.
func late(conditions []metav1.Condition) string {
	for _, kind := range []string{names.ConditionCredentialOverdue, names.ConditionLeaseOverdue} {
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func notJoined(open []approval.Request) string {
	for _, r := range open {
		switch r.State {
		case approval.Approved:
			return "request " + r.Name + " is approved, not issued"
		case approval.Pending:
			return "request " + r.Name + " waits to be approved"
		default:
		}
	}
	return "accepted; waits for the agent to use its credential"
}

// Certificate returns the validity of the agent's certificate: of the one that the hub
// issued last while the request still exists, otherwise as the agent reports it. A
// cluster that a driver knows by another identity has none. requests are those of the
// cluster.
func Certificate(known driver.Catalog, cluster *clusterv1.ManagedCluster, requests []approval.Request) (credential.Validity, bool) {
	if known.Announced(cluster) != nil {
		return credential.Validity{}, false
	}
	for _, r := range slices.Backward(requests) {
		if r.State != approval.Issued || r.Object == nil {
			continue
		}
		if certs, err := pemutil.ParseCertificates(r.Object.Status.Certificate); err == nil {
			return credential.Validity{NotBefore: certs[0].NotBefore, NotAfter: certs[0].NotAfter}, true
		}
	}
	return csr.Reported(cluster.Status.Conditions)
}
