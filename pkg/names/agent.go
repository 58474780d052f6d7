package names

// AgentIdentityConfigMap has, in the agent namespace, the generated cluster and agent
// names under KeyClusterName and KeyAgentName, so that both survive a restart, and the
// cluster's the loss of the Secret. The agent's is removed when the credential is
// stored. It is ours: upstream stores them in the hub kubeconfig Secret only.
const AgentIdentityConfigMap = "registration-agent-identity"

// AnnotationDetached names, on the hub kubeconfig Secret, the digest of the
// bootstrap kubeconfig with which the agent must not register the cluster again,
// because the hub detached it on purpose. It is ours.
const AnnotationDetached = "agent.open-cluster-management.io/detached"

// The condition in which a Klusterlet reports its connection to the hub, and its
// reasons. When it is True its reason is a bootstrap reason and a hub reason, separated
// by a comma.
// See docs/reference/wire-contract.md#hub-connection.
const (
	ConditionHubConnectionDegraded = "HubConnectionDegraded"

	ReasonHubConnectionFunctional = "HubConnectionFunctional"

	ReasonBootstrapSecretMissing      = "BootstrapSecretMissing"
	ReasonBootstrapSecretError        = "BootstrapSecretError"
	ReasonBootstrapSecretUnauthorized = "BootstrapSecretUnauthorized"
	ReasonBootstrapSecretFunctional   = "BootstrapSecretFunctional"

	ReasonHubKubeConfigSecretMissing = "HubKubeConfigSecretMissing"
	ReasonHubKubeConfigMissing       = "HubKubeConfigMissing"
	ReasonHubKubeConfigError         = "HubKubeConfigError"
	ReasonHubKubeConfigUnauthorized  = "HubKubeConfigUnauthorized"
)

// Reasons of the events that a registration agent records in its namespace.
// See docs/reference/wire-contract.md#agent-events.
const (
	EventCSRCreated            = "CSRCreated"
	EventCertificateCreated    = "ClientCertificateCreated"
	EventNoValidCertificate    = "NoValidCertificateFound"
	EventRotationStarted       = "CertificateRotationStarted"
	EventSecretSave            = "SecretSave"
	EventHubClientConfigReady  = "HubClientConfigReady"
	EventManagedClusterCreated = "ManagedClusterCreated"
)

// Formats of messages that the agent writes into ManagedCluster conditions, as in OCM.
// See docs/reference/wire-contract.md#certificate-condition.
const (
	MessageCertificateRotated   = "client certificate rotated starting from %s to %s"
	MessageCertificateFailed    = "Failed to rotated client certificate %s"
	MessageCertificateHalted    = "Stop creating csr since there are too many csr created already on hub"
	MessageAPIServerUnavailable = "The kube-apiserver is not ok, status code: %d, %v"
)

// API groups and resources whose permissions are reviewed by name.
const (
	GroupCluster                = "cluster.open-cluster-management.io"
	GroupCertificates           = "certificates.k8s.io"
	ResourceManagedClusters     = "managedclusters"
	ResourceCertificateRequests = "certificatesigningrequests"
)
