package names

import (
	"slices"
	"strings"
)

// Labels.
// See docs/reference/wire-contract.md#labels.
const (
	// LabelClusterName marks the namespace, the RBAC, the CSRs and the lease of a cluster.
	LabelClusterName = "open-cluster-management.io/cluster-name"
	// LabelAddOnName marks what belongs to an add-on; a CSR that carries it is
	// not a cluster's own registration.
	LabelAddOnName = "open-cluster-management.io/addon-name"
	// LabelClusterSet puts a cluster into a set.
	LabelClusterSet = "cluster.open-cluster-management.io/clusterset"
	// LabelFeatureAddOnPrefix precedes an add-on's name in the feature labels
	// of a ManagedCluster.
	LabelFeatureAddOnPrefix = "feature.open-cluster-management.io/addon-"
	// LabelCreatedByClusterManager names the ClusterManager that made an object.
	LabelCreatedByClusterManager = "open-cluster-management.io/created-by-clustermanager"
	// LabelCreatedByKlusterlet names the Klusterlet that made an object.
	LabelCreatedByKlusterlet = "open-cluster-management.io/created-by-klusterlet"
	// LabelKlusterlet marks the agent namespace of a Klusterlet.
	LabelKlusterlet = "operator.open-cluster-management.io/klusterlet"
	// LabelSpokeOnly keeps a ClusterClaim from being reported to the hub.
	LabelSpokeOnly = "open-cluster-management.io/spoke-only"
	// LabelSelfTest marks the requests with which init and check test whether a
	// hub issues client certificates. It is ours.
	LabelSelfTest = "open-cluster-management.io/self-test"
	// LabelGrant marks the ConfigMap that records a grant, and names the driver
	// that it was made by. It is ours.
	LabelGrant = "open-cluster-management.io/registration-grant"
	// LabelAddOnNamespace marks a namespace that the image pull secret is synced into.
	LabelAddOnNamespace = "addon.open-cluster-management.io/namespace"
)

// Values of the feature labels.
// See docs/reference/wire-contract.md#feature-labels.
const (
	FeatureAvailable   = "available"
	FeatureUnhealthy   = "unhealthy"
	FeatureUnreachable = "unreachable"
)

// Annotations.
// See docs/reference/wire-contract.md#annotations.
const (
	// AnnotationAutoAccepted holds the RFC 3339 time at which auto-approval
	// accepted a cluster. It is written once, so a later denial sticks.
	AnnotationAutoAccepted = "open-cluster-management.io/automatically-accepted-on"
	// AnnotationAgentPrefix is the only prefix that an agent may pass on from
	// its configuration to its ManagedCluster.
	// See docs/reference/wire-contract.md#agent-annotations.
	AnnotationAgentPrefix = "agent.open-cluster-management.io/"
	// AnnotationLeft, on a ManagedCluster, says that the cluster itself withdrew
	// the hub's acceptance: its agent and credential are gone. It is ours.
	AnnotationLeft = AnnotationAgentPrefix + "left"
	// AnnotationClusterID, on a ManagedCluster, identifies the cluster independent of
	// its name on the hub. It is ours.
	AnnotationClusterID = AnnotationAgentPrefix + "cluster-id"
	// AnnotationHubServer, on a ClusterManager, is the URL under which managed clusters
	// reach the hub, if it differs from the one in the administrator's kubeconfig. It
	// is ours.
	AnnotationHubServer = "open-cluster-management.io/hub-apiserver"
	// AnnotationSkipClockSync disables the check of a cluster's clock.
	AnnotationSkipClockSync = "registration.open-cluster-management.io/skip-clock-sync-check"
	// AnnotationCleanupPriority orders deletion in a cluster namespace, 0 to 100, lowest first.
	AnnotationCleanupPriority = "open-cluster-management.io/cleanup-priority"
	// AnnotationVersion is the version of the operator that last wrote a CRD;
	// an older operator leaves that CRD alone.
	AnnotationVersion = "operator.open-cluster-management.io/version"
	// AnnotationSharedMachine, set to "true" on a cluster's cluster-info, says that
	// this cluster and its peers run on one machine, where a loopback address is the
	// same server for all of them. It is ours and set by local clusters only.
	AnnotationSharedMachine = "open-cluster-management.io/shared-machine"
	// AnnotationForceDetach, set to "true" on a ManagedCluster that is being
	// deleted, declares its agent gone: the hub removes finalizers that wait for the
	// agent. It is ours; upstream has no force path.
	AnnotationForceDetach = "open-cluster-management.io/force-detach"
	// AnnotationAbandonGrants, set to "true" on a ManagedCluster that is being
	// deleted, allows its deletion although the grants of its registration driver
	// cannot be revoked; an administrator removes them manually. It is ours.
	AnnotationAbandonGrants = "open-cluster-management.io/abandon-grants"
	// AnnotationGrantedBy, on the record of a grant, names the user who made it with
	// credentials for the external service that the hub lacks. It is ours.
	AnnotationGrantedBy = "open-cluster-management.io/granted-by"
	// AnnotationAcceptedAgent and AnnotationAcceptedAgentAt, on the bindings of
	// an accepted cluster, name the agent that they are for and the RFC 3339
	// time at which its CertificateSigningRequest was approved. They are ours.
	AnnotationAcceptedAgent   = "registration.open-cluster-management.io/accepted-agent"
	AnnotationAcceptedAgentAt = "registration.open-cluster-management.io/accepted-agent-at"
)

// SameValues reports whether two sets of annotations or labels agree in these keys.
func SameValues(a, b map[string]string, keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool {
		before, had := a[key]
		after, has := b[key]
		return had != has || before != after
	})
}

// Finalizers.
// See docs/reference/wire-contract.md#finalizers.
const (
	// FinalizerGrants retains a ManagedCluster until the grants of its registration
	// driver outside the hub's API are revoked. It is ours.
	FinalizerGrants = "cluster.open-cluster-management.io/registration-grants"

	FinalizerRegistration        = "cluster.open-cluster-management.io/api-resource-cleanup"
	FinalizerResourceCleanup     = "cluster.open-cluster-management.io/resource-cleanup"
	FinalizerManifestWork        = "cluster.open-cluster-management.io/manifest-work-cleanup"
	FinalizerAppliedManifestWork = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
	FinalizerKlusterlet          = "operator.open-cluster-management.io/klusterlet-cleanup"
	FinalizerClusterManager      = "operator.open-cluster-management.io/cluster-manager-cleanup"
)

// ManagedClusterLease is the name of the Lease in a cluster namespace that the
// hub creates and the agent renews.
// See docs/reference/wire-contract.md#lease.
const ManagedClusterLease = "managed-cluster-lease"

// OfHub reports whether a label, taint or finalizer of ManagedClusters is one that the hub
// alone sets: all of OCM's domain are, and a joining cluster may not bring them.
// See docs/reference/operators.md#admission-rules.
func OfHub(key string) bool {
	domain, _, has := strings.Cut(key, "/")
	return has && (domain == "open-cluster-management.io" || strings.HasSuffix(domain, ".open-cluster-management.io"))
}
