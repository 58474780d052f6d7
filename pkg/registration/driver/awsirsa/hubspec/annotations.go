package hubspec

// Annotations of a ClusterManager about registration by AWS IAM, for which its
// spec has no fields. They are ours.
const (
	// AnnotationMapping is how the roles of clusters are mapped to users of the hub:
	// access-entry, aws-auth or auto, which is the default.
	AnnotationMapping = "open-cluster-management.io/aws-identity-mapping"
	// AnnotationCreator is the ARN of the IAM role of the registration controller,
	// where its name differs from the default.
	AnnotationCreator = "open-cluster-management.io/aws-identity-creator-role-arn"
	// AnnotationPodIdentity, set to "true", lets agents assume their roles with
	// sessions of EKS Pod Identity.
	AnnotationPodIdentity = "open-cluster-management.io/aws-pod-identity"
)
