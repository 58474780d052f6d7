package identity

import "github.com/kubectl-ocm/kubectl-ocm/pkg/names"

// Annotations of a ManagedCluster. OCM's agents write the first two.
// See docs/reference/wire-contract.md#aws-annotations.
const (
	// AnnotationCluster names the EKS cluster that registers, and AnnotationSuffix is the
	// end of the names of its IAM roles.
	AnnotationCluster = names.AnnotationAgentPrefix + "managed-cluster-arn"
	AnnotationSuffix  = names.AnnotationAgentPrefix + "managed-cluster-iam-role-suffix"
	// AnnotationClusterOld and AnnotationClusterBare are other spellings of
	// AnnotationCluster, which are read.
	AnnotationClusterOld  = names.AnnotationAgentPrefix + AnnotationClusterBare
	AnnotationClusterBare = "eks-managed-cluster-arn"
)

// AnnotationRole names, on a ServiceAccount, the IAM role that its pods get on EKS (IAM
// roles for service accounts).
const AnnotationRole = "eks.amazonaws.com/role-arn"

// Annotations are the annotations of a ManagedCluster that the driver reads.
func Annotations() []string {
	return []string{AnnotationCluster, AnnotationSuffix, AnnotationClusterOld, AnnotationClusterBare}
}
