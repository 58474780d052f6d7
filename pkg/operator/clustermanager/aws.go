package clustermanager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

// awsArgs are the registration controller's flags for the driver awsirsa.
func awsArgs(cm *operatorv1.ClusterManager) []string {
	aws, ok := hubspec.Of(cm)
	if !ok {
		return nil
	}
	args := []string{"--" + hubspec.FlagCluster + "=" + aws.Cluster}
	for _, list := range []struct {
		flag   string
		values []string
	}{{hubspec.FlagApproved, aws.Approved}, {hubspec.FlagTags, aws.Tags}} {
		if len(list.values) > 0 {
			args = append(args, "--"+list.flag+"="+operand.FlagList(list.values...))
		}
	}
	for _, single := range [][2]string{{hubspec.FlagMapping, aws.Mapping}, {hubspec.FlagPodIdentity, aws.PodIdentity}} {
		if single[1] != "" {
			args = append(args, "--"+single[0]+"="+single[1])
		}
	}
	return args
}

// accountAnnotations are those of the registration controller's ServiceAccount: on
// EKS, the IAM role that its pods get. A pod that EKS Pod Identity gives a role has
// that one instead.
func accountAnnotations(cm *operatorv1.ClusterManager) map[string]string {
	aws, ok := hubspec.Of(cm)
	if !ok {
		return nil
	}
	role, err := aws.Role(hubspec.FieldNames())
	if err != nil {
		return nil // Such a ClusterManager is rejected.
	}
	return map[string]string{names.AnnotationAWSRole: role.String()}
}

// retainAWSAuth retains the access to aws-auth of a controller that retains its
// settings, which depend on it.
func (r *Reconciler) retainAWSAuth(ctx context.Context, s *scope) error {
	var roles rbacv1.RoleList
	err := r.Uncached.List(ctx, &roles, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{names.LabelCreatedByClusterManager: s.cm.Name})
	if err != nil {
		return fmt.Errorf("list the Roles in %s: %w", metav1.NamespaceSystem, err)
	}
	s.Values.AWSAuth = len(roles.Items) > 0
	return nil
}

// droppedDriver returns the rejection of a ClusterManager that removes the driver
// awsirsa, or the hub's EKS cluster, while clusters have AWS roles by it; else nil.
// Those clusters would lose the hub, and no controller would delete their roles in
// AWS.
func (r *Reconciler) droppedDriver(ctx context.Context, s *scope) (*metav1.Condition, error) {
	// The cache may be stale, and has no grants.
	flags, running, err := operand.RunningFlags(ctx, r.Uncached, registrationDeployment(s))
	if err != nil || !running {
		return nil, err
	}
	const prefix = "--" + hubspec.FlagCluster + "="
	i := slices.IndexFunc(flags, func(flag string) bool { return strings.HasPrefix(flag, prefix) })
	if i < 0 || slices.Contains(s.Values.RegistrationArgs, flags[i]) {
		return nil, nil
	}
	clusters, err := driver.GrantedClusters(ctx, r.Uncached, s.Values.Namespace, driver.AWSIRSA)
	if err != nil || len(clusters) == 0 {
		return nil, err
	}
	return operand.Rejection(ReasonDriverInUse, "Clusters have AWS roles by the driver awsirsa of the hub %s: %s. "+
		"They would lose the hub, and their roles would stay in AWS: join them again with csr, or deny or delete them, before you change the driver",
		strings.TrimPrefix(flags[i], prefix), listed(clusters)), nil
}

// listedClusters is the number of clusters that a condition names.
const listedClusters = 10

// listed returns the names of the first clusters and the number of the others.
func listed(clusters []string) string {
	if more := len(clusters) - listedClusters; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(clusters[:listedClusters], ", "), more)
	}
	return strings.Join(clusters, ", ")
}
