package manifests

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Pod has the configurable fields of the pods of a component.
type Pod struct {
	// Image runs the component: our binary is its entrypoint.
	Image string
	// Replicas is the number of pods.
	Replicas int32
	// Annotations are put on the pods; other ones replace the pods.
	Annotations map[string]string
	// Resources are the requests and limits of the one container.
	Resources corev1.ResourceRequirements
	// NodeSelector and Tolerations place the pods.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// PriorityClassName must exist; empty means none.
	PriorityClassName string
	// HostAliases are entries for the pods' hosts file.
	HostAliases []corev1.HostAlias
}

// ArgSyncLabels is the argument of an operator that copies the labels of its resource.
const ArgSyncLabels = "--enable-sync-labels"

// HubOperator is the values of what init installs.
type HubOperator struct {
	// SkipNamespace leaves the operator namespace to the user.
	SkipNamespace bool
	// Version is written onto the CRD, so that an older release leaves it alone.
	Version string
	// Operator is the operator's own pods.
	Operator Pod
	// OperatorFlags are further flags of the operator, such as ArgSyncLabels.
	OperatorFlags []string
	// DockerConfig is the .dockerconfigjson of the image pull secret; nil is an empty one.
	DockerConfig []byte
	// BootstrapToken, if set, is the secret part (16 characters) of a
	// Kubernetes bootstrap token that clusters join with. Empty means that
	// they join with tokens of the bootstrap ServiceAccount.
	BootstrapToken string
	// System are the permissions in kube-system that the operator grants, as in Hub.System.
	System []rbacv1.PolicyRule
	// Spec is the spec of the ClusterManager.
	Spec operatorv1.ClusterManagerSpec
	// Labels are the labels of the ClusterManager.
	Labels map[string]string
}

// KlusterletOperator is the values of what join installs.
type KlusterletOperator struct {
	// SkipNamespace leaves the operator namespace to the user.
	SkipNamespace bool
	// Version is written onto the CRD, so that an older release leaves it alone.
	Version string
	// Operator is the operator's own pods.
	Operator Pod
	// OperatorFlags are further flags of the operator, such as ArgSyncLabels.
	OperatorFlags []string
	// DockerConfig is the .dockerconfigjson of the image pull secret; nil is an empty one.
	DockerConfig []byte
	// Name is the Klusterlet's name; empty means names.KlusterletName.
	Name string
	// BootstrapKubeconfig is the kubeconfig to join with; nil leaves the Secret out.
	BootstrapKubeconfig []byte
	// Work is the permissions that the operator may grant the work agent; empty omits
	// the agent.
	Work names.WorkPermissions
	// Spec is the spec of the Klusterlet. Its namespace must be set.
	Spec operatorv1.KlusterletSpec
	// Labels are the labels of the Klusterlet.
	Labels map[string]string
}

// Hub is the values of what the ClusterManager operator applies.
type Hub struct {
	// Name is the ClusterManager's.
	Name string
	// Namespace is where the components run.
	Namespace string
	// Version is written onto the CRDs, so that an older release leaves them alone.
	Version string
	// Labels are put onto everything.
	Labels map[string]string
	// DockerConfig is the .dockerconfigjson of the image pull secret.
	DockerConfig []byte
	// Registration is the pods of the registration controller and RegistrationArgs
	// their arguments behind the role's name.
	Registration     Pod
	RegistrationArgs []string
	// RegistrationAnnotations are the annotations of its ServiceAccount.
	RegistrationAnnotations map[string]string
	// IdentityAnnotations are the annotations that identify a ManagedCluster to
	// registration drivers. Admission rejects changes of them while the hub accepts the
	// cluster; without any, there is nothing to reject.
	IdentityAnnotations []string
	// System are permissions in kube-system that registration drivers need.
	System []rbacv1.PolicyRule
	// AddOnManager is the add-on manager; nil leaves it out.
	AddOnManager *Component
	// AddOnWebhook is the pods of the webhook that converts add-ons.
	AddOnWebhook Pod
	// TokenAuthorizer is the token authorizer; nil leaves it out.
	TokenAuthorizer *TokenAuthorizer
	// NilExecutorValidating has admission ask for the right to write ManifestWorks
	// without an executor, which run with the permissions of the work agent.
	NilExecutorValidating bool
	// ReplicaSets lets the registration controller make the ManifestWorks of
	// ManifestWorkReplicaSets.
	ReplicaSets bool
	// WebhookCA is the PEM bundle of the CAs with which the API server verifies the
	// webhook. Without one, requests that need conversion fail.
	WebhookCA []byte
}

// TokenAuthorizer is the values of the hub's token authorizer.
type TokenAuthorizer struct {
	Component

	// TLSSecret is the Secret with what it serves with; empty means the one that
	// the operator issues.
	TLSSecret string
	// TokenService enables its token exchange endpoint (RFC 8693).
	TokenService bool
}

// Component is a part of the hub that can be left out.
type Component struct {
	// Pod configures its pods.
	Pod Pod
	// Args are its arguments behind the role's name.
	Args []string
}

// ImagePull is the values of the image pull secret controller.
type ImagePull struct {
	// SkipNamespace leaves the controller's namespace to the user.
	SkipNamespace bool
	// DockerConfig is the .dockerconfigjson for the controller's own image; nil is
	// an empty one.
	DockerConfig []byte
	// Controller is the controller's pods and arguments.
	Controller Component
	// Namespaces are the namespaces that it may work in; empty means all.
	Namespaces []string
	// OnlyUsed allows it to see which ServiceAccounts workloads use.
	OnlyUsed bool
	// ConfigMap is the one with registry hosts, if there is one.
	ConfigMap types.NamespacedName
	// LooksUp is true if it looks up hosts in Services or Routes.
	LooksUp bool
}

// Klusterlet is the values of what the Klusterlet operator applies.
type Klusterlet struct {
	// Name is the Klusterlet's.
	Name string
	// Namespace is where the agents run.
	Namespace string
	// Version is written onto the CRDs, so that an older release leaves them alone.
	Version string
	// Labels are put onto everything.
	Labels map[string]string
	// DockerConfig is the .dockerconfigjson of the image pull secret.
	DockerConfig []byte
	// AddOnNamespace creates names.AddOnNamespace for add-ons.
	AddOnNamespace bool
	// AddOnManagement grants the agent what it needs to manage add-ons.
	AddOnManagement bool
	// PublishIssuer grants the agent what it needs to test the cluster's keys
	// before it publishes them.
	PublishIssuer bool
	// Registration is the pods of the registration agent and RegistrationArgs
	// their arguments behind the role's name.
	Registration     Pod
	RegistrationArgs []string
	// RegistrationAnnotations are the annotations of the agents' ServiceAccounts.
	RegistrationAnnotations map[string]string
	// Work is the work agent; nil leaves it out.
	Work *WorkAgent
}

// WorkAgent is the values of the work agent.
type WorkAgent struct {
	Component

	// Permissions are its permissions on the cluster.
	Permissions names.WorkPermissions
}
