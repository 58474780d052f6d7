package names

// Reasons and messages of ManagedCluster conditions that upstream peers and
// users' tooling match on. The condition types are in the OCM API package.
// See docs/reference/wire-contract.md#acceptance.
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
	// ConditionLeaseOverdue is True while the agent has missed a renewal of its lease. A
	// cluster whose agent never did has no such condition.
	ConditionLeaseOverdue = "LeaseOverdue"
	ReasonLeaseNotRenewed = "LeaseNotRenewed"
	ReasonLeaseRenewed    = "LeaseRenewed"
	// ConditionCredentialOverdue is True while the agent's certificate is overdue for
	// renewal. A cluster whose certificate was never overdue has no such condition.
	ConditionCredentialOverdue = "CredentialOverdue"
	ReasonCredentialNotRenewed = "CredentialNotRenewed"
	ReasonCredentialEnding     = "CredentialEnding"
	ReasonCredentialExpired    = "CredentialExpired"
	ReasonCredentialRenewed    = "CredentialRenewed"
)

// ConditionRegistrationGranted reports whether the objects outside the hub's API that
// the identity of a cluster depends on, such as a role of a cloud provider, exist. A
// cluster that registers with certificates has no such condition. It is ours.
const ConditionRegistrationGranted = "RegistrationGranted"

// Reasons of ConditionRegistrationGranted.
const (
	ReasonGranted = "Granted"
	// ReasonGrantedByHand: a person granted it, and the hub itself has no right to.
	ReasonGrantedByHand = "GrantedByHand"
	ReasonGrantPending  = "GrantPending"
	ReasonGrantFailed   = "GrantFailed"
	// ReasonIdentifierConflict: another cluster registered with the same identifier before.
	ReasonIdentifierConflict = "IdentifierConflict"
	// ReasonInvalidRegistration: the annotations of the cluster cannot be used.
	ReasonInvalidRegistration = "InvalidRegistration"
	ReasonRevoked             = "Revoked"
	ReasonRevokeFailed        = "RevokeFailed"
	// ReasonDriverNotEnabled: the driver of a grant is not enabled to revoke it.
	ReasonDriverNotEnabled = "DriverNotEnabled"
)

// Reason and message with which the hub approves CSRs by itself.
// See docs/reference/wire-contract.md#csr-bootstrap-approval.
const (
	ReasonAutoApproved  = "AutoApprovedByHubCSRApprovingController"
	MessageAutoApproved = "Auto approving Managed cluster agent certificate after SubjectAccessReview."
)
