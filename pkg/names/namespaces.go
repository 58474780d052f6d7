package names

// Namespaces that the operators and the components run in.
// See docs/reference/wire-contract.md#namespaces.
const (
	// OperatorNamespace holds both operators and the bootstrap ServiceAccount.
	OperatorNamespace = "open-cluster-management"
	// HubNamespace holds the hub components of a ClusterManager in Default mode.
	HubNamespace = "open-cluster-management-hub"
	// AgentNamespace is the default of Klusterlet spec.namespace.
	AgentNamespace = "open-cluster-management-agent"
	// AgentNamespacePrefix begins the name of every namespace that is OCM's; the
	// API asks for it in Klusterlet spec.namespace.
	AgentNamespacePrefix = "open-cluster-management-"
	// AddOnNamespace is where add-on agents are installed by default.
	AddOnNamespace = "open-cluster-management-agent-addon"
)

// Names of the custom resources that init and join create.
const (
	ClusterManagerName = "cluster-manager"
	KlusterletName     = "klusterlet"
)

// Names of the operators: the Deployment, the ServiceAccount, the ClusterRole
// and its binding are all called this, and so is the value of their app label.
// See docs/reference/wire-contract.md#operator-names.
const (
	ClusterManagerOperator = "cluster-manager"
	KlusterletOperator     = "klusterlet"
)

// Identities that a joining cluster may bootstrap with.
// See docs/reference/wire-contract.md#bootstrap-identity.
const (
	// BootstrapServiceAccount lives in OperatorNamespace.
	BootstrapServiceAccount = "agent-registration-bootstrap"
	// BootstrapClusterRole lists what a joining cluster may do on the hub.
	BootstrapClusterRole = "open-cluster-management:bootstrap"
	// BootstrapServiceAccountBinding binds BootstrapClusterRole to BootstrapServiceAccount.
	BootstrapServiceAccountBinding = "open-cluster-management:bootstrap:agent-registration"
	// BootstrapTokenBinding binds BootstrapClusterRole to BootstrapTokenGroup.
	BootstrapTokenBinding = "open-cluster-management:bootstrap:managedcluster"
	// BootstrapTokenGroup is the group of kubernetes bootstrap tokens made for joining.
	BootstrapTokenGroup = "system:bootstrappers:managedcluster"
	// BootstrapTokenID is the id of the token that init --use-bootstrap-token makes.
	BootstrapTokenID = "ocmhub"
	// BootstrapTokenSecretPrefix precedes a token id in the name of its Secret.
	BootstrapTokenSecretPrefix = "bootstrap-token-"
	// BootstrapTokenSecret is the Secret of that token in kube-system.
	BootstrapTokenSecret = BootstrapTokenSecretPrefix + BootstrapTokenID
)

// BootstrapServiceAccountUser is the user that BootstrapServiceAccount authenticates as.
const BootstrapServiceAccountUser = "system:serviceaccount:" + OperatorNamespace + ":" + BootstrapServiceAccount

// BootstrapTokenUser is the user that the bootstrap token authenticates as.
// Kubernetes builds it from the token id, not from the Secret's name.
// See docs/reference/wire-contract.md#bootstrap-identity.
const BootstrapTokenUser = "system:bootstrap:" + BootstrapTokenID

// Hub ServiceAccounts in HubNamespace. The gRPC server's name is hard-coded in
// addon-framework and clusteradm, so it cannot be chosen.
// See docs/reference/wire-contract.md#service-accounts.
const (
	HubRegistrationServiceAccount = "registration-controller-sa"
	HubAddOnManagerServiceAccount = "addon-manager-controller-sa"
	HubAddOnWebhookServiceAccount = "addon-webhook-sa"
	HubGRPCServerServiceAccount   = "grpc-server-sa"
)

// RegistrationAgentServiceAccount is the ServiceAccount of the registration
// agent of a Klusterlet. Trust policies that users keep at their provider name it.
func RegistrationAgentServiceAccount(klusterlet string) string {
	return klusterlet + "-registration-sa"
}

// WorkAgentServiceAccount is the ServiceAccount of the work agent of a Klusterlet.
func WorkAgentServiceAccount(klusterlet string) string { return klusterlet + "-work-sa" }

// WorkAgentDeployment is the Deployment of the work agent of a Klusterlet.
func WorkAgentDeployment(klusterlet string) string { return klusterlet + "-work-agent" }

// RegistrationAgentDeployment is the Deployment of the registration agent of a Klusterlet.
func RegistrationAgentDeployment(klusterlet string) string {
	return klusterlet + "-registration-agent"
}

// HubRegistrationDeployment is the Deployment of the hub registration
// controller of a ClusterManager.
func HubRegistrationDeployment(clusterManager string) string {
	return clusterManager + "-registration-controller"
}

// HubAddOnManagerDeployment is the Deployment of the add-on manager of a
// ClusterManager.
func HubAddOnManagerDeployment(clusterManager string) string {
	return clusterManager + "-addon-manager-controller"
}

// HubAddOnWebhookDeployment is the Deployment of the webhook that converts
// add-ons, of a ClusterManager, and the value of its app label.
func HubAddOnWebhookDeployment(clusterManager string) string {
	return clusterManager + "-addon-webhook"
}

// The Service in HubNamespace through which the API server reaches the webhook
// that converts add-ons. Its name does not depend on the ClusterManager's.
const (
	AddOnWebhookService = "cluster-manager-addon-webhook"
	AddOnWebhookPort    = 9443
)

// App label values of the component Deployments; clusteradm waits for them by these.
// See docs/reference/wire-contract.md#component-names.
const (
	AppHubRegistration   = "clustermanager-registration-controller"
	AppHubAddOnManager   = "clustermanager-addon-manager-controller"
	AppRegistrationAgent = "klusterlet-registration-agent"
	AppWorkAgent         = "klusterlet-manifestwork-agent"
)

// ClusterInfoNamespace and ClusterInfoConfigMap locate the public ConfigMap with the
// address and the CA of a cluster's API server.
// See docs/reference/wire-contract.md#cluster-info.
const (
	ClusterInfoNamespace = "kube-public"
	ClusterInfoConfigMap = "cluster-info"
)
