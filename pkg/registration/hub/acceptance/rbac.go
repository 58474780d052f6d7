package acceptance

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/rbac"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/record"
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

// ensureRBAC gives the recorded agent the rights of an accepted cluster. Without
// an agent there is nobody to have them.
func (r *Reconciler) ensureRBAC(ctx context.Context, cluster string, agent record.Record) error {
	if !agent.Known() {
		return r.dropBindings(ctx, r.Client, cluster)
	}
	// A binding can be made only while what it binds to exists.
	if err := sharedrole.Ensure(ctx, r.Client, r.Labels); err != nil {
		return err
	}
	if err := r.ensureClusterRole(ctx, cluster, acceptedRules(cluster), agent); err != nil {
		return err
	}
	registration := r.binding(cluster, agent)
	registration.Namespace, registration.Name, registration.Role = cluster, names.RegistrationRoleBinding(cluster), names.ClusterRoleRegistration
	for _, binding := range []rbac.Binding{registration, r.workBinding(cluster, agent)} {
		if err := rbac.EnsureBinding(ctx, r.Client, Owner, binding); err != nil {
			return err
		}
	}
	return nil
}

// binding is what all bindings of a cluster have in common.
func (r *Reconciler) binding(cluster string, agent record.Record) rbac.Binding {
	return rbac.Binding{Labels: rbac.Labels(cluster, r.Labels), Annotations: agent.Annotations(), Subjects: agent.Subjects(cluster)}
}

func (r *Reconciler) workBinding(cluster string, agent record.Record) rbac.Binding {
	work := r.binding(cluster, agent)
	work.Namespace, work.Name, work.Role = cluster, names.WorkRoleBinding(cluster), names.ClusterRoleWork
	work.Finalizers = []string{names.FinalizerManifestWork}
	return work
}

// ensureClusterRole makes the ClusterRole of a cluster and its binding.
func (r *Reconciler) ensureClusterRole(ctx context.Context, cluster string, rules []rbacv1.PolicyRule, agent record.Record) error {
	binding := r.binding(cluster, agent)
	binding.Name, binding.Role = names.ManagedClusterClusterRole(cluster), names.ManagedClusterClusterRole(cluster)
	if err := rbac.EnsureClusterRole(ctx, r.Client, Owner, rbac.Role{Name: binding.Role, Labels: binding.Labels, Rules: rules}); err != nil {
		return err
	}
	return rbac.EnsureBinding(ctx, r.Client, Owner, binding)
}

// reduceRBAC leaves the agent of a denied cluster the sight of its own
// ManagedCluster and nothing else, at once.
func (r *Reconciler) reduceRBAC(ctx context.Context, reader client.Reader, cluster string, agent record.Record) error {
	if !agent.Known() {
		return r.dropBindings(ctx, reader, cluster)
	}
	if err := r.ensureClusterRole(ctx, cluster, deniedRules(cluster), agent); err != nil {
		return err
	}
	return r.dropRoleBindings(ctx, reader, cluster)
}

// dropBindings takes every right away from whoever has one.
func (r *Reconciler) dropBindings(ctx context.Context, reader client.Reader, cluster string) error {
	if err := rbac.DeleteBinding(ctx, r.Client, reader, Owner, "", names.ManagedClusterClusterRole(cluster)); err != nil {
		return err
	}
	return r.dropRoleBindings(ctx, reader, cluster)
}

func (r *Reconciler) dropRoleBindings(ctx context.Context, reader client.Reader, cluster string) error {
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

// ensureRetiredWorkBinding makes the RoleBinding for work, deleted but for its
// finalizer, where a denial has taken it.
func (r *Reconciler) ensureRetiredWorkBinding(ctx context.Context, cluster string, agent record.Record) error {
	want := r.workBinding(cluster, agent)
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: want.Name}, &rbacv1.RoleBinding{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := rbac.EnsureBinding(ctx, r.Client, Owner, want); err != nil {
		return err
	}
	return rbac.RetireBinding(ctx, r.Client, r.Live, want.Namespace, want.Name)
}

func (r *Reconciler) deleteWorkBinding(ctx context.Context, reader client.Reader, cluster string) error {
	return rbac.DeleteBinding(ctx, r.Client, reader, Owner, cluster, names.WorkRoleBinding(cluster))
}
