package names

// Names that OpenShift's controllers give pull secrets for the integrated image
// registry (https://github.com/openshift/enhancements,
// use-bound-tokens-for-image-registry-auth).
const (
	// AnnotationOpenShiftPullSecret, on a ServiceAccount, names its pull secret.
	AnnotationOpenShiftPullSecret = "openshift.io/internal-registry-pull-secret-ref"
	// AnnotationOpenShiftAccount, on a pull secret, names its ServiceAccount. The
	// enhancement spells it as AnnotationOpenShiftAcount: both are read.
	AnnotationOpenShiftAccount = "openshift.io/internal-registry-auth-token.service-account"
	AnnotationOpenShiftAcount  = "openshift.io/internal-registry-auth-token.service-acount"
	// AnnotationOpenShiftBinding, on a pull secret, is OpenShiftBound or
	// OpenShiftLegacy: the kind of token in it.
	AnnotationOpenShiftBinding = "openshift.io/internal-registry-auth-token.binding"
	OpenShiftBound             = "bound"
	OpenShiftLegacy            = "legacy"
	// OpenShiftLegacyToken is a label of legacy token Secrets, with the value
	// "true", and a finalizer of the pull secrets that are made from them.
	OpenShiftLegacyToken = "openshift.io/legacy-token"
	// AnnotationOpenShiftTokenSecret, on a legacy pull secret, names the Secret that
	// its token is from, and AnnotationOpenShiftTokenValue is that token.
	AnnotationOpenShiftTokenSecret = "openshift.io/token-secret.name"
	AnnotationOpenShiftTokenValue  = "openshift.io/token-secret.value"
	// AnnotationCreatedBy, on a legacy token Secret, has the value
	// OpenShiftDockercfg if OpenShift's controllers made it for a pull secret.
	AnnotationCreatedBy = "kubernetes.io/created-by"
	OpenShiftDockercfg  = "openshift.io/create-dockercfg-secrets"
)

// The Secret where OpenShift keeps the keys of bound ServiceAccount tokens, and its
// key with the public ones, in PEM.
const (
	OpenShiftSignerNamespace = "openshift-kube-apiserver"
	OpenShiftSignerSecret    = "bound-service-account-signing-key"
	OpenShiftSignerKey       = "service-account.pub"
)
