package names

// Annotations of a ClusterManager about registration by AWS IAM, for which its
// spec has no fields. They are ours.
const (
	// AnnotationAWSIdentityMapping is how the roles of clusters are mapped to users
	// of the hub: access-entry, aws-auth or auto, which is the default.
	AnnotationAWSIdentityMapping = "open-cluster-management.io/aws-identity-mapping"
	// AnnotationAWSIdentityCreator is the ARN of the IAM role of the registration
	// controller, where its name differs from the default.
	AnnotationAWSIdentityCreator = "open-cluster-management.io/aws-identity-creator-role-arn"
	// AnnotationAWSPodIdentity, set to "true", lets agents assume their roles with
	// sessions of EKS Pod Identity.
	AnnotationAWSPodIdentity = "open-cluster-management.io/aws-pod-identity"
)
