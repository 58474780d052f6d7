package names

// Reasons and messages of ManagedCluster conditions that upstream peers and
// users' tooling match on. The condition types are in the OCM API package.
const (
	ReasonHubAccepted  = "HubClusterAdminAccepted"
	MessageHubAccepted = "Accepted by hub cluster admin"
	ReasonHubDenied    = "HubClusterAdminDenied"
	MessageHubDenied   = "Denied by hub cluster admin"
	ReasonHubError     = "Error"

	ReasonJoined  = "ManagedClusterJoined"
	MessageJoined = "Managed cluster joined"

	ReasonAvailable             = "ManagedClusterAvailable"
	MessageAvailable            = "Managed cluster is available"
	ReasonAPIServerUnavailable  = "ManagedClusterKubeAPIServerUnavailable"
	ReasonLeaseUpdateStopped    = "ManagedClusterLeaseUpdateStopped"
	MessageLeaseUpdateStopped   = "Registration agent stopped updating its lease."
	ReasonClockSynced           = "ManagedClusterClockSynced"
	MessageClockSynced          = "The clocks of the hub and the managed cluster agree"
	ReasonClockOutOfSync        = "ManagedClusterClockOutOfSync"
	ConditionCertificateRotated = "ClusterCertificateRotated"
	ReasonCertificateUpdated    = "ClientCertificateUpdated"
	ReasonCertificateFailed     = "ClientCertificateUpdateFailed"
)

// Conditions of a ManagedCluster that are ours.
const (
	// ConditionHubApprovedJoin says the same as HubAcceptedManagedCluster.
	ConditionHubApprovedJoin = "HubApprovedJoin"
	// ConditionClusterIDConflict is True while a cluster has joined under
	// several names. One that never did has no such condition.
	ConditionClusterIDConflict = "ClusterIDConflict"
	ReasonJoinedTwice          = "JoinedUnderSeveralNames"
	ReasonJoinedOnce           = "JoinedOnce"
)

// Reason and message with which the hub approves CSRs by itself.
const (
	ReasonAutoApproved  = "AutoApprovedByHubCSRApprovingController"
	MessageAutoApproved = "Auto approving Managed cluster agent certificate after SubjectAccessReview."
)
