package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Labels, annotations and finalizers of add-ons.
const (
	// LabelAddOnTokenName names the add-on that a ServiceAccount, Role or
	// RoleBinding of the token driver is for.
	LabelAddOnTokenName = "addon.open-cluster-management.io/name"
	// LabelTokenInfrastructure, set to "true", marks these objects.
	LabelTokenInfrastructure = "addon.open-cluster-management.io/token-infrastructure"
	// AnnotationAddOnPrefix begins the annotations of a ManagedCluster that its
	// add-ons inherit.
	AnnotationAddOnPrefix = "addon.open-cluster-management.io"
	// AnnotationHostingCluster names the cluster that runs a hosted add-on's agent.
	// See docs/reference/wire-contract.md#addon-annotations.
	AnnotationHostingCluster = "addon.open-cluster-management.io/hosting-cluster-name"
	// AnnotationInstallNamespace carries the installNamespace of v1alpha1 in v1beta1.
	// See docs/reference/wire-contract.md#addon-versions.
	AnnotationInstallNamespace = "addon.open-cluster-management.io/v1alpha1-install-namespace"
	// AnnotationCarriesV1alpha1, on an add-on in v1beta1, holds what only v1alpha1
	// can express, and AnnotationCarriesV1beta1, on one in v1alpha1, what only
	// v1beta1 can. They are the conversion's, and lack AnnotationAddOnPrefix
	// because add-on managers take such annotations away.
	AnnotationCarriesV1alpha1 = "conversion.open-cluster-management.io/v1alpha1"
	AnnotationCarriesV1beta1  = "conversion.open-cluster-management.io/v1beta1"
	// AnnotationAddOnLifecycle says who manages a ClusterManagementAddOn: absent
	// or AddOnLifecycleManager means the add-on manager.
	AnnotationAddOnLifecycle = "addon.open-cluster-management.io/lifecycle"
	// AnnotationCopied lists, separated by commas, the annotations of an add-on that
	// were copied from its cluster, and are removed when the cluster loses them.
	AnnotationCopied = "applied.open-cluster-management.io/cluster-annotations"
	// AddOnLifecycleManager is the value that means the add-on manager.
	AddOnLifecycleManager = "addon-manager"
	// AnnotationRotate, on a ManagedClusterAddOn, holds an RFC 3339 time: a
	// credential issued before it is replaced at once. It is ours, and lacks
	// AnnotationAddOnPrefix because add-on managers take such annotations away.
	AnnotationRotate = "registration.open-cluster-management.io/rotate-credentials-issued-before"
)

// ReservedNoDefaultConfig is the name of a missing default configuration of a
// ClusterManagementAddOn in v1beta1: the add-on supports the kind of configuration and
// has no default for it.
// See docs/reference/wire-contract.md#addon-versions.
const ReservedNoDefaultConfig = "__reserved_no_default__"

// Conditions of a ManagedClusterAddOn that its registration sets, in addition to those
// in the API package. They are per driver, not per registration.
const (
	// ConditionTokenInfrastructureReady is set by the hub; its message names the
	// ServiceAccount and its UID, see TokenServiceAccount.Message.
	// See docs/reference/wire-contract.md#token-infrastructure.
	ConditionTokenInfrastructureReady = "TokenInfrastructureReady"
	ReasonTokenInfrastructureReady    = "TokenInfrastructureReady"
	ReasonTokenInfrastructureFailed   = "TokenInfrastructureApplyFailed"
	// ReasonServiceAccountNotAllowed: the subject is not one of AddOnServiceAccounts.
	ReasonServiceAccountNotAllowed = "ServiceAccountNotAllowed"
	// ReasonServiceAccountTaken: the subject's ServiceAccount has another owner.
	ReasonServiceAccountTaken = "ServiceAccountTaken"
	// ReasonClusterNotAccepted: the hub does not, or no longer, accept the cluster.
	ReasonClusterNotAccepted = "ClusterNotAccepted"
	// ReasonWaitingForSubject: the agent has removed its ServiceAccount from the
	// status and has not set another.
	ReasonWaitingForSubject = "WaitingForSubject"
	// ReasonTokensRetained: the add-on has a certificate, and its Pods may still have the token.
	ReasonTokensRetained = "TokensRetained"
	// ConditionAddOnTokenRefreshed is our name of the condition that the
	// agent sets, ConditionTokenRefreshed upstream's; both are written, with
	// equal content.
	// See docs/reference/wire-contract.md#token-condition.
	ConditionAddOnTokenRefreshed = "AddonTokenRefreshed"
	ConditionTokenRefreshed      = "TokenRefreshed"
	ReasonAddOnTokenRefreshed    = "AddonTokenRefreshed"
	ReasonTokenCreationFailed    = "TokenCreationFailed"
	// EventAddOnTokenRefreshed is the reason of the event about a new token.
	EventAddOnTokenRefreshed = "AddonTokenRefreshed"
)

// Labels and annotations of the Secrets that the agent stores for add-ons. They are
// ours: upstream's Secrets have none, and are adopted.
const (
	// LabelAddOnCredential is the namespace of the agent, so that the agents of several
	// hubs on one cluster do not change each other's Secrets.
	LabelAddOnCredential = "registration.open-cluster-management.io/addon-credential-of"
	// AnnotationCredentialAddOn holds the name of the add-on.
	AnnotationCredentialAddOn = "registration.open-cluster-management.io/addon"
	// AnnotationCredentialObtained holds the RFC 3339 time at which the
	// credential was obtained; issuers date credentials back.
	AnnotationCredentialObtained = "registration.open-cluster-management.io/obtained-at"
	// AnnotationCredentialRotation holds the value of AnnotationRotate that the
	// credential answers.
	AnnotationCredentialRotation = "registration.open-cluster-management.io/rotation"
	// AnnotationCredentialPending, on a Secret with the pending data of a request,
	// names the Secret, as namespace/name, that the credential is for.
	AnnotationCredentialPending = "registration.open-cluster-management.io/pending-for"
)

// Reasons of the conditions in which the agent reports what an add-on's registration
// waits for, in addition to the drivers' own.
const (
	// ReasonAddOnDeclared waits for the hub to see the subject in the status.
	ReasonAddOnDeclared = "SubjectDeclared"
	// ReasonInstallNamespaceMissing waits for the add-on's install namespace.
	ReasonInstallNamespaceMissing = "InstallNamespaceMissing"
	// ReasonSecretsUnknown says that the agent cannot see the Secrets on its cluster.
	ReasonSecretsUnknown = "SecretsUnknown"
	// ReasonSecretTaken: another writer, such as the agent of another hub, changes the
	// Secret as well.
	ReasonSecretTaken = "SecretTaken"
	// ReasonHostedElsewhere says that the add-on's agent runs on a cluster that
	// this agent does not write to.
	ReasonHostedElsewhere = "HostedElsewhere"
	// ReasonDriverUnavailable: this agent does not support the registration.
	ReasonDriverUnavailable = "RegistrationDriverUnavailable"
	// EventAddOnCertificateRotated is the reason of the event about a new certificate.
	EventAddOnCertificateRotated = "AddonCertificateRotated"
)

// Messages of an add-on's conditions, as in OCM.
const (
	MessageAddOnTokenRefreshed = "Addon token refreshed, expires at %s"
	MessageTokenCreationFailed = "Failed to create token: %s"
	MessageAddOnAvailable      = "%s add-on is available."
	MessageAddOnUnavailable    = "%s add-on is not available."
	MessageAddOnUnknown        = "The status of %s add-on is unknown."
)

// Reasons of the condition Configured, which the add-on manager sets.
const (
	ReasonConfigurationsConfigured    = "ConfigurationsConfigured"
	ReasonConfigurationsNotConfigured = "ConfigurationsNotConfigured"
	// ReasonConfigurationUnsupported: a configuration of the add-on's spec is of
	// a kind that status.supportedConfigs does not list.
	ReasonConfigurationUnsupported = "ConfigurationUnsupported"
	// ReasonWaitingForManifestApplied and ReasonWaitingForHostingManifestApplied are
	// reasons of the condition Progressing in addition to those of the API package.
	ReasonWaitingForManifestApplied        = "WaitingForManifestApplied"
	ReasonWaitingForHostingManifestApplied = "WaitingForHostingManifestApplied"
)

// ConditionRolloutStrategySupported is False in an install progression of a
// ClusterManagementAddOn whose placement asks for a rollout that cannot be understood.
const (
	ConditionRolloutStrategySupported = "RolloutStrategySupported"
	ReasonRolloutStrategyInvalid      = "RolloutStrategyInvalid"
)

// Keys of an add-on's Secret in addition to those of a hub kubeconfig. Decisions depend
// on KeyToken only.
const (
	KeyToken              = "token"
	KeyExpiration         = "expiration"
	KeyServiceAccountUID  = "serviceaccount_uid"
	KeyServiceAccountName = "serviceaccount_name"
)

// AddOnHubKubeconfigSecret is the Secret in an add-on's install namespace that
// holds the credential of its kubeClient registration.
// See docs/reference/wire-contract.md#addon-secrets.
func AddOnHubKubeconfigSecret(addOn string) string { return addOn + "-hub-kubeconfig" }

const signerSecretSuffix = "-client-cert"

// AddOnSignerSecret is the Secret in an add-on's install namespace that holds
// the certificate of a customSigner registration.
// See docs/reference/wire-contract.md#addon-secrets.
func AddOnSignerSecret(addOn, signer string) string {
	return addOn + "-" + strings.ReplaceAll(signer, "/", "-") + signerSecretSuffix
}

// IsAddOnSecret reports whether a Secret's name is one of those that store an add-on's
// credentials.
func IsAddOnSecret(addOn, secret string) bool {
	return secret == AddOnHubKubeconfigSecret(addOn) ||
		strings.HasPrefix(secret, addOn+"-") && strings.HasSuffix(secret, signerSecretSuffix)
}

// AddOnPendingSecret is the Secret in the agent's namespace with the pending data of a
// request for the credential in the given Secret of the install namespace.
func AddOnPendingSecret(namespace, secret string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + secret))
	return "addon-pending-" + hex.EncodeToString(sum[:10])
}

// AddOnUser is the user of an add-on's agent that holds a client certificate.
// The agent's name is the add-on's unless the add-on says otherwise.
// See docs/reference/wire-contract.md#addon-user.
func AddOnUser(cluster, addOn, agent string) string {
	return AddOnClusterGroup(cluster, addOn) + ":agent:" + agent
}

// AddOnTemplateAgent is the agent's name of an add-on that is made from an AddOnTemplate,
// in [AddOnUser].
// See docs/reference/wire-contract.md#addon-user.
func AddOnTemplateAgent(addOn string) string { return addOn + "-agent" }

// AddOnClusterGroup is the group of one add-on on one cluster.
func AddOnClusterGroup(cluster, addOn string) string {
	return userPrefix + "cluster:" + cluster + ":addon:" + addOn
}

// AddOnGroup is the group of one add-on on all clusters.
func AddOnGroup(addOn string) string { return userPrefix + "addon:" + addOn }

// AddOnDNSName is the only DNS name in an add-on's certificate.
// See docs/reference/wire-contract.md#addon-csr.
func AddOnDNSName(addOn string) string { return addOn + ".addon.open-cluster-management.io" }

// AddOnServiceAccount is the ServiceAccount in the cluster's namespace on the
// hub whose tokens an add-on gets.
func AddOnServiceAccount(cluster, addOn string) string { return cluster + "-" + addOn + "-agent" }

// AddOnServiceAccountUpstream is upstream's name of the same ServiceAccount.
// See docs/reference/wire-contract.md#addon-service-account.
func AddOnServiceAccountUpstream(addOn string) string { return addOn + "-agent" }

// AddOnServiceAccounts are the only ServiceAccounts that an add-on may be, ours
// first.
func AddOnServiceAccounts(cluster, addOn string) []string {
	return []string{AddOnServiceAccount(cluster, addOn), AddOnServiceAccountUpstream(addOn)}
}

// AddOnTokenRole is the Role, and the RoleBinding, that lets a cluster's agent
// request tokens for an add-on.
// See docs/reference/wire-contract.md#addon-service-account.
func AddOnTokenRole(addOn string) string { return addOn + "-token-role" }

// ParseServiceAccountUser is the inverse of ServiceAccountUser. It reports false
// unless both parts are there.
func ParseServiceAccountUser(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	if !ok || namespace == "" || name == "" || strings.Contains(name, ":") {
		return "", "", false
	}
	return namespace, name, true
}

// TokenServiceAccount is the ServiceAccount in the message of the condition
// TokenInfrastructureReady.
type TokenServiceAccount struct {
	Namespace string
	Name      string
	UID       string
}

// Message is the condition's message.
// See docs/reference/wire-contract.md#token-infrastructure.
func (s TokenServiceAccount) Message() string {
	return fmt.Sprintf("ServiceAccount %s/%s (UID: %s) is ready", s.Namespace, s.Name, s.UID)
}

// ParseTokenServiceAccount is the inverse of TokenServiceAccount.Message. It
// reports false when any of the three is missing.
func ParseTokenServiceAccount(message string) (TokenServiceAccount, bool) {
	rest, ok := strings.CutPrefix(message, "ServiceAccount ")
	if !ok {
		return TokenServiceAccount{}, false
	}
	account, rest, ok1 := strings.Cut(rest, " (UID: ")
	uid, _, ok2 := strings.Cut(rest, ")")
	namespace, name, ok3 := strings.Cut(account, "/")
	s := TokenServiceAccount{Namespace: namespace, Name: name, UID: uid}
	if !ok1 || !ok2 || !ok3 || s.Namespace == "" || s.Name == "" || s.UID == "" || strings.ContainsAny(account, " \n") || strings.Contains(name, "/") {
		return TokenServiceAccount{}, false
	}
	return s, true
}

// CredentialConditions are the types of the conditions of a ManagedClusterAddOn that
// report a credential, of all drivers.
func CredentialConditions() []string {
	return []string{ConditionCertificateRotated, ConditionTokenRefreshed, ConditionAddOnTokenRefreshed}
}

// LabelAddOnTemplate marks, with an empty value, what the hub has because of an
// AddOnTemplate.
// See docs/reference/wire-contract.md#addon-templates.
const LabelAddOnTemplate = "open-cluster-management.io/addon-template-name"

// ResourceAddOnTemplates are the AddOnTemplates. The configReferences of an add-on name
// one if the add-on is made from it.
// See docs/reference/wire-contract.md#addon-templates.
const ResourceAddOnTemplates = "addontemplates"

// LabelAddOnCluster names the cluster whose add-on a RoleBinding of an AddOnTemplate is
// for, which can be in any namespace. It is ours.
const LabelAddOnCluster = "addon.open-cluster-management.io/cluster"

// Reasons and messages of the conditions of add-ons made from AddOnTemplates that are not
// in the OCM API package.
// See docs/reference/wire-contract.md#addon-templates.
const (
	ReasonPermissionConfigPending = "PermissionConfigPending"
	ReasonHookCompleted           = "HookManifestIsCompleted"
	ReasonHookNotCompleted        = "HookManifestIsNotCompleted"
	MessageRegistrationApplied    = "Registration of the addon agent is configured"
	MessagePermissionFailed       = "Failed to set permission for hub agent: %v"
	MessageManifestsApplied       = "manifests of addon are applied successfully"
	MessageManifestsApplyFailed   = "failed to apply the manifests of addon"
	MessageAddOnAutoApproved      = "Auto approving addon agent certificate."
	MessageNoManifests            = "no manifest need to apply"
)

// The condition of an add-on made from an AddOnTemplate that says whether it may use the
// custom signers of its template. It is ours, and is there once the add-on was denied one.
// See docs/adr/0020-grants-for-templates.md.
const (
	ConditionCustomSignersGranted = "CustomSignersGranted"
	ReasonSignersGranted          = "SignersGranted"
	ReasonSignerNotGranted        = "SignerNotGranted"
)

// AddOnDeployWork is the n-th ManifestWork that deploys an add-on, from 0.
// See docs/reference/wire-contract.md#addon-works.
func AddOnDeployWork(addOn string, n int) string {
	return fmt.Sprintf("addon-%s-deploy-%d", addOn, n)
}

// AddOnPreDeleteWork is the ManifestWork that runs before an add-on is deleted.
// See docs/reference/wire-contract.md#addon-works.
func AddOnPreDeleteWork(addOn string) string { return "addon-" + addOn + "-pre-delete" }

// AddOnTemplateBinding is the RoleBinding that gives the agent of an add-on made from
// an AddOnTemplate a role of the given kind.
// See docs/reference/wire-contract.md#addon-templates.
func AddOnTemplateBinding(addOn, kind string) string {
	return fmt.Sprintf("open-cluster-management:%s:%s:agent", addOn, strings.ToLower(kind))
}

// HubPermissionGrant is the name in RBAC that lets the addon-manager bind a role of the
// given kind for one add-on: the verb bind on [ResourceHubPermissions].
// See docs/adr/0020-grants-for-templates.md.
func HubPermissionGrant(addOn, kind, role string) string {
	return addOn + ":" + strings.ToLower(kind) + ":" + role
}

// CustomSignerGrant is the name in RBAC that lets the addon-manager sign for one add-on
// with the Secret of a signer: the verb sign on [ResourceCustomSigners] in the
// namespace of that Secret. See docs/adr/0020-grants-for-templates.md.
func CustomSignerGrant(addOn, signer, secret string) string {
	return addOn + ":" + signer + ":" + secret
}

// Resources of the add-on API group that exist in RBAC only. Permissions on them are
// grants of what an AddOnTemplate may ask for.
const (
	// ResourceHubPermissions has a subresource for each type of hubPermissions.
	ResourceHubPermissions = "hubpermissions"
	// HubPermissionsCurrentCluster are permissions in the namespace of the add-on's
	// cluster.
	HubPermissionsCurrentCluster = "currentcluster"
	// HubPermissionsSingleNamespace are permissions in another namespace, which has the
	// grant.
	HubPermissionsSingleNamespace = "singlenamespace"
	// ResourceCustomSigners are the signers of type CustomSigner.
	ResourceCustomSigners = "customsigners"
)
