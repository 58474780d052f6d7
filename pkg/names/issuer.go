package names

// What a managed cluster publishes about its token issuer, so that the hub
// knows its keys without dialing it.
// The names are ours: OCM has nothing like it.
const (
	// IssuerConfigMap, in a cluster's namespace on the hub, holds that
	// cluster's issuer and key set under IssuerKeyIssuer and IssuerKeyJWKS. The
	// namespace, never the data, says which cluster it is.
	IssuerConfigMap = "ocm-issuer"
	// IssuerKeyIssuer is the exact "iss" of the cluster's tokens.
	IssuerKeyIssuer = "issuer"
	// IssuerKeyJWKS is the cluster's key set, a JSON Web Key Set (RFC 7517 §5).
	IssuerKeyJWKS = "jwks"
	// IssuerKeyProofs holds, one per line, a token for each key that the cluster
	// has proven to sign with; its audience is IssuerProofAudience.
	IssuerKeyProofs = "proofs"
	// IssuerKeyPublishedAt is when the data last changed, in RFC 3339.
	IssuerKeyPublishedAt = "publishedAt"

	// AnnotationPublishIssuer, set to "true" on a Klusterlet, has its agent
	// publish the cluster's issuer; "false" has it take back what was published.
	AnnotationPublishIssuer = "open-cluster-management.io/publish-issuer"
	// AnnotationTokenAuthorizer, set to "true" on a ClusterManager, has the hub
	// run a token authorizer.
	AnnotationTokenAuthorizer = "open-cluster-management.io/token-authorizer"
	// AnnotationTokenService, on the same ClusterManager and set to "true", has
	// it exchange tokens by RFC 8693 as well.
	AnnotationTokenService = "open-cluster-management.io/token-service"
	// AnnotationTokenAuthorizerTLS, on the same ClusterManager, names a TLS
	// Secret in HubNamespace that the token authorizer serves with. Without it
	// the operator issues TokenAuthorizerServingCertSecret.
	AnnotationTokenAuthorizerTLS = "open-cluster-management.io/token-authorizer-tls-secret"
)

// IssuerProofPrefix begins the audience of every proof. Nothing takes a token with
// such an audience for anything else.
const IssuerProofPrefix = "urn:open-cluster-management:issuer-proof:"

// IssuerProofAudience is the audience of the tokens that prove to the hub which keys a
// cluster signs with. The UID of its ManagedCluster belongs to one hub and to one
// membership.
func IssuerProofAudience(cluster, uid string) string { return IssuerProofPrefix + cluster + ":" + uid }

// ConditionIssuerTrusted reports, on a ManagedCluster, whether the hub trusts the keys
// that the cluster publishes; a cluster that publishes none lacks it.
const (
	ConditionIssuerTrusted = "IssuerTrusted"

	// ReasonKeysTrusted is used with True, the others and ReasonClusterNotAccepted with
	// False.
	ReasonKeysTrusted = "KeysTrusted"
	// ReasonKeysShared: another cluster has proven that it signs with the same
	// key, which counts for neither.
	ReasonKeysShared = "KeysShared"
	// ReasonKeysUnproven: the cluster has proven of no key that it signs with it.
	ReasonKeysUnproven = "KeysUnproven"
	// ReasonClusterNotJoined: what a cluster publishes counts once it has joined.
	ReasonClusterNotJoined = "ClusterNotJoined"
	// ReasonKeysInvalid: the published data cannot be used.
	ReasonKeysInvalid = "KeysInvalid"
)

// ConditionIssuerPublished reports, on a Klusterlet, whether the agent publishes the
// cluster's issuer. It is absent if publishing is not enabled.
const (
	ConditionIssuerPublished = "IssuerPublished"

	// ReasonIssuerPublished is used with True, the others with False.
	ReasonIssuerPublished = "IssuerPublished"
	// ReasonKeysNotServed: the cluster's API server does not serve its keys.
	ReasonKeysNotServed = "KeysNotServed"
	// ReasonSelfTestFailed: the keys that the API server shows are not those
	// that it signs with.
	ReasonSelfTestFailed = "SelfTestFailed"
	// ReasonIssuerUnreadable: the cluster could not be asked.
	ReasonIssuerUnreadable = "IssuerUnreadable"
	// ReasonHubRefusesIssuer: the hub could not be written to.
	ReasonHubRefusesIssuer = "HubRefusesIssuer"
)

// The token authorizer on the hub.
const (
	// TokenAuthorizer names its Deployment, Service and ServiceAccount in
	// HubNamespace, and is its app label.
	TokenAuthorizer = "token-authorizer"
	// TokenAuthorizerPort serves Envoy's gRPC protocol.
	TokenAuthorizerPort = 9001
	// TokenAuthorizerHTTPPort serves the HTTP protocol of ext_authz.
	TokenAuthorizerHTTPPort = 9002

	// LabelTokenAuthorizerClient, with the value "true" on a namespace, lets what
	// runs there reach the token authorizer; on a Pod in HubNamespace, that Pod.
	LabelTokenAuthorizerClient = "open-cluster-management.io/token-authorizer-client"

	// TokenAuthorizerServingCertSecret is the token authorizer's serving certificate,
	// unless AnnotationTokenAuthorizerTLS names something else.
	TokenAuthorizerServingCertSecret = "token-authorizer-serving-cert"
	// TokenAuthorizerSignerSecret holds the CA that signed it.
	TokenAuthorizerSignerSecret = "token-authorizer-signer"
	// TokenAuthorizerCAConfigMap has the CAs that proxies trust, under KeyCABundle.
	TokenAuthorizerCAConfigMap = "token-authorizer-ca"
)
