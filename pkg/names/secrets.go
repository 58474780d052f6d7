package names

// Secrets on the managed cluster and the hub.
const (
	// BootstrapHubKubeconfigSecret holds the kubeconfig an agent joins with.
	// See docs/reference/wire-contract.md#bootstrap-secret.
	BootstrapHubKubeconfigSecret = "bootstrap-hub-kubeconfig"
	// HubKubeconfigSecret holds the credential an agent was given by the hub.
	// See docs/reference/wire-contract.md#hub-kubeconfig-secret.
	HubKubeconfigSecret = "hub-kubeconfig-secret"
	// PendingCredentialSecret holds the private key of a certificate that was
	// requested and not issued yet, so that a restart does not request another.
	// It is ours: upstream agents keep the key in memory.
	PendingCredentialSecret = "hub-kubeconfig-pending"
	// ImagePullSecret is synced from OperatorNamespace to the component namespaces.
	// See docs/reference/wire-contract.md#pull-secret.
	ImagePullSecret = "open-cluster-management-image-pull-credentials"
)

// What the webhooks of the hub serve with, in HubNamespace.
// See docs/reference/wire-contract.md#webhook-certificates.
const (
	// SignerSecret holds the CA that signs their certificates.
	SignerSecret = "signer-secret"
	// AddOnWebhookServingCertSecret holds the certificate of the webhook that
	// converts add-ons.
	AddOnWebhookServingCertSecret = "addon-webhook-serving-cert"
	// CABundleConfigMap has the CAs to trust, under KeyCABundle.
	CABundleConfigMap = "ca-bundle-configmap"
	KeyCABundle       = "ca-bundle.crt"
)

// Keys of the kubeconfig Secrets.
const (
	KeyKubeconfig  = "kubeconfig"
	KeyTLSCert     = "tls.crt"
	KeyTLSKey      = "tls.key"
	KeyClusterName = "cluster-name"
	KeyAgentName   = "agent-name"
	// KeyPendingHub is the kubeconfig.Hub.Digest of the hub that the data in
	// PendingCredentialSecret are for.
	KeyPendingHub = "hub"
)

// Names inside the kubeconfigs that agents and add-ons are given.
// See docs/reference/wire-contract.md#kubeconfig-shape.
const (
	// KubeconfigUser is the user entry of a hub kubeconfig.
	KubeconfigUser = "default-auth"
	// KubeconfigContext is the context entry of a hub kubeconfig.
	KubeconfigContext = "default-context"
	// KubeconfigContextNamespace is the namespace of that context.
	KubeconfigContextNamespace = "configuration"
	// BootstrapKubeconfigCluster is the cluster entry of a bootstrap
	// kubeconfig. The hub kubeconfig keeps it, and an agent takes a different
	// entry name for a different hub.
	BootstrapKubeconfigCluster = "hub"
	// BootstrapKubeconfigUser is the user and context entry of a bootstrap kubeconfig.
	BootstrapKubeconfigUser = "bootstrap"
)

// Bootstrap tokens that "get token" prints. Each is bound to a Secret in
// OperatorNamespace, which does not contain the token: the API server rejects a bound
// token whose Secret is gone, so deleting the Secret revokes the token. They are ours:
// upstream's tokens cannot be listed.
const (
	// SecretTypeJoinToken is the type of those Secrets.
	SecretTypeJoinToken = "open-cluster-management.io/join-token"
	// JoinTokenSecretPrefix precedes the token's id in the Secret's name.
	JoinTokenSecretPrefix = "join-token-"
	// LabelJoinToken marks those Secrets.
	LabelJoinToken = "open-cluster-management.io/join-token"
	// AnnotationTokenExpires holds the RFC 3339 time at which the token expires.
	AnnotationTokenExpires = "open-cluster-management.io/token-expires-at"
)

// CredentialKeys are the keys of a kubeconfig Secret for the credentials of all
// drivers, the files that its kubeconfig refers to.
func CredentialKeys() []string { return []string{KeyTLSCert, KeyTLSKey, KeyToken} }
