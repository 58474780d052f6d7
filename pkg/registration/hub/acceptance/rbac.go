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

// acceptedRules are the permissions of an accepted agent outside its namespace.
func acceptedRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rbac.Rule(certificatesv1.GroupName, "certificatesigningrequests", "create", "get", "list", "watch"),
		rbac.Rule(names.RegisterGroup, names.ResourceClientCertificates, "renew"),
		rbac.Named(rbac.Rule(clusterv1.GroupName, "managedclusters", "get", "list", "update", "watch"), cluster),
		rbac.Named(rbac.Rule(clusterv1.GroupName, "managedclusters/status", "patch", "update"), cluster),
	}
}

// deniedRules let the agent of a denied cluster read that it is denied.
func deniedRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rbac.Named(rbac.Rule(clusterv1.GroupName, "managedclusters", "get", "list", "watch"), cluster),
	}
}

// grantee has the subjects of the bindings of a cluster, none if no agent is known.
type grantee struct {
	subjects    []rbacv1.Subject
	annotations map[string]string
}

// recorded returns the agent of a record as grantee.
func recorded(cluster string, agent record.Record) grantee {
	return grantee{subjects: agent.Subjects(cluster), annotations: agent.Annotations()}
}

// ensureRBAC gives the grantee the permissions of an accepted cluster.
func (r *Reconciler) ensureRBAC(ctx context.Context, cluster string, who grantee) error {
	if len(who.subjects) == 0 {
		return r.dropBindings(ctx, r.Client, cluster)
	}
	// RBAC escalation prevention: a role must exist before it can be bound.
	if err := sharedrole.Ensure(ctx, r.Client, r.Labels); err != nil {
		return err
	}
	if err := r.ensureClusterRole(ctx, cluster, acceptedRules(cluster), who); err != nil {
		return err
	}
	for _, binding := range []rbac.Binding{r.registrationBinding(cluster, who), r.workBinding(cluster, who)} {
		if err := rbac.EnsureBinding(ctx, r.Client, Owner, binding); err != nil {
			return err
		}
	}
	return nil
}

// bound reports whether a grantee has all bindings of a cluster according to the cache.
func (r *Reconciler) bound(ctx context.Context, cluster string, who grantee) (bool, error) {
	if len(who.subjects) == 0 {
		return false, nil
	}
	for _, want := range []rbac.Binding{r.clusterBinding(cluster, who), r.registrationBinding(cluster, who), r.workBinding(cluster, who)} {
		if has, err := rbac.HasBinding(ctx, r.Client, want); !has || err != nil {
			return false, err
		}
	}
	return true, nil
}

// binding returns the fields that all bindings of a cluster share.
func (r *Reconciler) binding(cluster string, who grantee) rbac.Binding {
	return rbac.Binding{Labels: rbac.Labels(cluster, r.Labels), Annotations: who.annotations, Subjects: who.subjects}
}

func (r *Reconciler) clusterBinding(cluster string, who grantee) rbac.Binding {
	own := r.binding(cluster, who)
	own.Name, own.Role = names.ManagedClusterClusterRole(cluster), names.ManagedClusterClusterRole(cluster)
	return own
}

func (r *Reconciler) registrationBinding(cluster string, who grantee) rbac.Binding {
	registration := r.binding(cluster, who)
	registration.Namespace, registration.Name, registration.Role = cluster, names.RegistrationRoleBinding(cluster), names.ClusterRoleRegistration
	return registration
}

func (r *Reconciler) workBinding(cluster string, who grantee) rbac.Binding {
	work := r.binding(cluster, who)
	work.Namespace, work.Name, work.Role = cluster, names.WorkRoleBinding(cluster), names.ClusterRoleWork
	work.Finalizers = []string{names.FinalizerManifestWork}
	return work
}

// ensureClusterRole creates or repairs the ClusterRole of a cluster and its binding.
func (r *Reconciler) ensureClusterRole(ctx context.Context, cluster string, rules []rbacv1.PolicyRule, who grantee) error {
	binding := r.clusterBinding(cluster, who)
	if err := rbac.EnsureClusterRole(ctx, r.Client, Owner, rbac.Role{Name: binding.Role, Labels: binding.Labels, Rules: rules}); err != nil {
		return err
	}
	return rbac.EnsureBinding(ctx, r.Client, Owner, binding)
}

// reduceRBAC removes all permissions of the agent of a denied cluster except to
// read its own ManagedCluster.
func (r *Reconciler) reduceRBAC(ctx context.Context, reader client.Reader, cluster string, who grantee) error {
	if len(who.subjects) == 0 {
		return r.dropBindings(ctx, reader, cluster)
	}
	if err := r.ensureClusterRole(ctx, cluster, deniedRules(cluster), who); err != nil {
		return err
	}
	return r.dropRoleBindings(ctx, reader, cluster)
}

// dropBindings removes all permissions of a cluster.
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

// ensureRetiredWorkBinding recreates the RoleBinding for work that a denial
// removed, and deletes it so that only its finalizer remains.
func (r *Reconciler) ensureRetiredWorkBinding(ctx context.Context, cluster string, who grantee) error {
	want := r.workBinding(cluster, who)
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
