package names

import (
	"crypto/sha256"
	"encoding/hex"
)

// Reasons and messages of the conditions of a ManifestWork and of its manifests. The
// condition types and the reasons of a manifest's condition Applied and of condition
// rules are in the OCM API package.
// See docs/reference/wire-contract.md#work-conditions.
const (
	MessageManifestApplied = "Apply manifest complete"

	ReasonWorkApplied      = "AppliedManifestWorkComplete"
	MessageWorkApplied     = "Apply manifest work complete"
	ReasonWorkApplyFailed  = "AppliedManifestWorkFailed"
	MessageWorkApplyFailed = "Failed to apply manifest work"

	ReasonResourceAvailable       = "ResourceAvailable"
	MessageResourceAvailable      = "Resource is available"
	ReasonResourceNotAvailable    = "ResourceNotAvailable"
	MessageResourceNotAvailable   = "Resource is not available"
	ReasonResourceFetchFailed     = "FetchingResourceFailed"
	ReasonResourceMetaIncomplete  = "IncompleteResourceMeta"
	MessageResourceMetaIncomplete = "Resource meta is incomplete"

	ReasonResourcesAvailable     = "ResourcesAvailable"
	MessageResourcesAvailable    = "All resources are available"
	ReasonResourcesNotAvailable  = "ResourcesNotAvailable"
	ReasonResourcesStatusUnknown = "ResourcesStatusUnknown"
	// MessageNoResourceAvailable ends with a space on the wire.
	MessageNoResourceAvailable = "cannot get any available resource "

	ReasonConditionRulesAggregated = "ConditionRulesAggregated"

	ReasonWorkDeleting  = "WorkDeleting"
	MessageWorkDeleting = "ManifestWork is being deleted"
)

// ConditionStatusFeedbackSynced, on a manifest of a ManifestWork, says whether the
// values that its feedback rules ask for were read.
// See docs/reference/wire-contract.md#work-feedback.
const (
	ConditionStatusFeedbackSynced  = "StatusFeedbackSynced"
	ReasonStatusFeedbackSynced     = "StatusFeedbackSynced"
	ReasonNoStatusFeedback         = "NoStatusFeedbackSynced"
	ReasonStatusFeedbackSyncFailed = "StatusFeedbackSyncFailed"
)

// ConditionReady, on a ManifestWork and on manifests whose objects say so, says whether
// what was applied is ready: OCM's condition Available says that objects exist.
// See docs/reference/wire-contract.md#readiness.
const (
	ConditionReady          = "Ready"
	ReasonResourceReady     = "ResourceReady"
	ReasonResourceNotReady  = "ResourceNotReady"
	ReasonResourceFinished  = "ResourceFinished"
	MessageResourceFinished = "Resource has finished and is gone"

	ReasonResourcesReady    = "ResourcesReady"
	MessageResourcesReady   = "All resources are ready"
	ReasonResourcesNotReady = "ResourcesNotReady"
)

// ReasonConditionRulePrefix begins the reason of every condition that a condition rule
// sets, and of no other.
// See docs/reference/wire-contract.md#work-condition-rules.
const ReasonConditionRulePrefix = "ConditionRule"

// HubHash identifies a hub by the address in its kubeconfig, as written there: another
// spelling of the same address is another hub.
// See docs/reference/wire-contract.md#applied-work.
func HubHash(host string) string {
	sum := sha256.Sum256([]byte(host))
	return hex.EncodeToString(sum[:])
}

// AppliedManifestWork is the name of the AppliedManifestWork of a ManifestWork.
// See docs/reference/wire-contract.md#applied-work.
func AppliedManifestWork(hubHash, work string) string { return hubHash + "-" + work }
