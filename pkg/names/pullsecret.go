package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Image pull secrets.
const (
	// AnnotationPullSecret, on a ServiceAccount or on a namespace, is "true" or
	// "false": whether it gets a pull secret. A ServiceAccount's own annotation
	// overrides that of its namespace.
	AnnotationPullSecret = "imagepull.open-cluster-management.io/pull-secret"
	// AnnotationPullSecretAccount, on a pull secret, names its ServiceAccount.
	AnnotationPullSecretAccount = "imagepull.open-cluster-management.io/service-account"
	// AnnotationPullSecretRefresh, on a pull secret, is a time (RFC 3339): tokens that
	// were issued before it are replaced.
	AnnotationPullSecretRefresh = "imagepull.open-cluster-management.io/refresh-issued-before"
	// LabelManagedBy is Kubernetes' label for what manages an object, and
	// ManagedByImagePull its value on pull secrets.
	LabelManagedBy     = "app.kubernetes.io/managed-by"
	ManagedByImagePull = "ocm-imagepull"
)

// Where the image pull secret controller runs.
const (
	ImagePullNamespace      = "ocm-imagepull"
	ImagePullServiceAccount = "imagepull"
	// ImagePullDeployment is also the value of the app label of its Pods.
	ImagePullDeployment = "imagepull"
	// ImagePullLease is held by the Pod that is at work.
	ImagePullLease = "ocm-imagepull"
	// ImagePullRole names the ClusterRole, or the Roles, of the controller and their
	// bindings; ImagePullRegistryRole and ImagePullLeaderRole those for the one
	// ConfigMap with registry hosts and for the lease.
	ImagePullRole         = "ocm-imagepull"
	ImagePullRegistryRole = "ocm-imagepull-registry"
	ImagePullLeaderRole   = "ocm-imagepull-leader"
	// LabelPartOf is Kubernetes' label for what an object belongs to, and
	// PartOfImagePull its value on all that the controller runs with. Pull secrets
	// do not have it.
	LabelPartOf     = "app.kubernetes.io/part-of"
	PartOfImagePull = "ocm-imagepull"
)

// CredentialProvider is the file name under which a kubelet runs this program as
// its credential provider plugin, and names the permission of nodes for that.
const CredentialProvider = "ocm-credential-provider"

// Reasons of events about pull secrets.
const (
	ReasonPullSecretContended = "PullSecretContended"
	ReasonPullSecretNameTaken = "PullSecretNameTaken"
	ReasonPullSecretFailed    = "PullSecretFailed"
)

// PullSecret is the name of a ServiceAccount's pull secret. It follows from the
// UID, so that nothing has to be remembered, and a recreated ServiceAccount gets
// a new one.
func PullSecret(account string, uid types.UID) string { return pullSecret(account, "-pull-", uid) }

// OpenShiftPullSecret is PullSecret with OpenShift's naming convention.
func OpenShiftPullSecret(account string, uid types.UID) string {
	return pullSecret(account, "-dockercfg-", uid)
}

func pullSecret(account, kind string, uid types.UID) string {
	const most = 253 // The longest name of a Secret.
	sum := sha256.Sum256([]byte(uid))
	suffix := kind + hex.EncodeToString(sum[:3])
	if len(account)+len(suffix) > most {
		account = strings.TrimRight(account[:most-len(suffix)], ".-")
	}
	return account + suffix
}
