package acceptance

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/rbac"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/sharedrole"
)

// acceptedRules are what an accepted agent may do outside its namespace.
func acceptedRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rbac.Rule(certificatesv1.GroupName, "certificatesigningrequests", "create", "get", "list", "watch"),
		rbac.Rule(names.RegisterGroup, names.ResourceClientCertificates, "renew"),
		rbac.Named(rbac.Rule(clusterv1.GroupName, "managedclusters", "get", "list", "update", "watch"), cluster),
		rbac.Named(rbac.Rule(clusterv1.GroupName, "managedclusters/status", "patch", "update"), cluster),
	}
}

// deniedRules let the agent of a denied cluster see that it is denied.
func deniedRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rbac.Named(rbac.Rule(clusterv1.GroupName, "managedclusters", "get", "list", "watch"), cluster),
	}
}

// subjects are the groups of a cluster's agent, however it got its credential.
func subjects(cluster string) []rbacv1.Subject {
	return rbac.Groups(names.ClusterGroup(cluster), names.ClusterGroupAWS(cluster))
}

func (r *Reconciler) ensureRBAC(ctx context.Context, cluster string) error {
	// A binding can be made only while what it binds to exists.
	if err := sharedrole.Ensure(ctx, r.Client, r.Labels); err != nil {
		return err
	}
	if err := r.ensureClusterRole(ctx, cluster, acceptedRules(cluster)); err != nil {
		return err
	}
	labels := rbac.Labels(cluster, r.Labels)
	for _, binding := range []rbac.Binding{
		{
			Namespace: cluster, Name: names.RegistrationRoleBinding(cluster), Labels: labels,
			Role: names.ClusterRoleRegistration, Subjects: subjects(cluster),
		},
		{
			Namespace: cluster, Name: names.WorkRoleBinding(cluster), Labels: labels,
			Role: names.ClusterRoleWork, Subjects: subjects(cluster), Finalizers: []string{names.FinalizerManifestWork},
		},
	} {
		if err := rbac.EnsureBinding(ctx, r.Client, Owner, binding); err != nil {
			return err
		}
	}
	return nil
}

// ensureClusterRole makes the ClusterRole of a cluster and its binding.
func (r *Reconciler) ensureClusterRole(ctx context.Context, cluster string, rules []rbacv1.PolicyRule) error {
	name, labels := names.ManagedClusterClusterRole(cluster), rbac.Labels(cluster, r.Labels)
	if err := rbac.EnsureClusterRole(ctx, r.Client, Owner, rbac.Role{Name: name, Labels: labels, Rules: rules}); err != nil {
		return err
	}
	return rbac.EnsureBinding(ctx, r.Client, Owner, rbac.Binding{Name: name, Labels: labels, Role: name, Subjects: subjects(cluster)})
}

// reduceRBAC leaves the agent of a denied cluster the sight of its own
// ManagedCluster and nothing else, at once.
func (r *Reconciler) reduceRBAC(ctx context.Context, reader client.Reader, cluster string) error {
	if err := r.ensureClusterRole(ctx, cluster, deniedRules(cluster)); err != nil {
		return err
	}
	if err := rbac.DeleteBinding(ctx, r.Client, reader, Owner, cluster, names.RegistrationRoleBinding(cluster)); err != nil {
		return err
	}
	return r.deleteWorkBinding(ctx, reader, cluster)
}

// retireRBAC deletes the RBAC of a cluster that is being detached. The
// RoleBinding for work stays until its finalizer is removed.
func (r *Reconciler) retireRBAC(ctx context.Context, reader client.Reader, cluster string) error {
	name := names.ManagedClusterClusterRole(cluster)
	if err := rbac.DeleteBinding(ctx, r.Client, reader, Owner, "", name); err != nil {
		return err
	}
	if err := rbac.DeleteClusterRole(ctx, r.Client, reader, name); err != nil {
		return err
	}
	if err := rbac.DeleteBinding(ctx, r.Client, reader, Owner, cluster, names.RegistrationRoleBinding(cluster)); err != nil {
		return err
	}
	return rbac.RetireBinding(ctx, r.Client, reader, cluster, names.WorkRoleBinding(cluster))
}

func (r *Reconciler) deleteWorkBinding(ctx context.Context, reader client.Reader, cluster string) error {
	return rbac.DeleteBinding(ctx, r.Client, reader, Owner, cluster, names.WorkRoleBinding(cluster))
}
