package klusterlet

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// Reconciler reconciles Klusterlets.
type Reconciler struct {
	operand.Operator

	config Config
}

// scope is one pass over one Klusterlet.
type scope struct {
	operand.Pass[manifests.Klusterlet]

	klusterlet *operatorv1.Klusterlet
}

func (r *Reconciler) newScope(k *operatorv1.Klusterlet) *scope {
	return &scope{klusterlet: k, Pass: operand.NewPass[manifests.Klusterlet](&r.Operator, k, operand.Status(k.Status))}
}

// agentPhase is the index of the first phase that needs the agents' settings.
const agentPhase = 2

// The phases that a rejected setting leaves out.
const (
	phaseWork  = "work agent"
	phasePrune = "former agents and RBAC"
)

// phases returns the phases in order.
func (r *Reconciler) phases() []operand.Phase[manifests.Klusterlet] {
	return []operand.Phase[manifests.Klusterlet]{
		{Name: "CRDs", Reason: operatorv1.ReasonKlusterletCRDApplyFailed, Run: operand.Render(manifests.RenderKlusterletCRDs)},
		{Name: "namespaces and RBAC", Reason: operatorv1.ReasonManagedClusterResourceApplyFailed, Run: operand.Render(manifests.RenderKlusterletBase)},
		{Name: "registration agent", Reason: operatorv1.ReasonKlusterletApplyFailed, Run: operand.Render(manifests.RenderKlusterletRuntime)},
		// The work agent is last, so that a missing permission for it does not block
		// the others.
		{Name: phaseWork, Reason: operatorv1.ReasonKlusterletApplyFailed, Run: operand.Render(manifests.RenderKlusterletWork)},
		{Name: "former namespaces", Reason: operatorv1.ReasonManagedClusterResourceApplyFailed, Run: r.removeFormerNamespaces},
		{Name: phasePrune, Reason: operatorv1.ReasonManagedClusterResourceApplyFailed, Run: r.prune},
	}
}

// applied is the condition of a pass in which every phase succeeded.
func applied() metav1.Condition {
	return metav1.Condition{Reason: operatorv1.ReasonKlusterletApplied, Message: "Klusterlet Component Applied"}
}

// Reconcile updates the cluster to the state that the Klusterlet describes.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var klusterlet operatorv1.Klusterlet
	if err := r.Client.Get(ctx, req.NamespacedName, &klusterlet); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	others, err := r.others(ctx, &klusterlet)
	if err != nil {
		return ctrl.Result{}, err
	}
	s := r.newScope(&klusterlet)
	settings := evaluateGates(&klusterlet)
	s.Status.Set(settings.condition())
	s.Status.Set(addOnCondition(&klusterlet))
	if others.owner != klusterlet.Name {
		return ctrl.Result{}, r.yield(ctx, s, others.owner)
	}
	if !klusterlet.DeletionTimestamp.IsZero() {
		return r.clean(ctx, &klusterlet, others)
	}
	if rejection := operand.UnsupportedMode(klusterlet.Spec.DeployOption.Mode); rejection != nil {
		s.Values = r.values(&klusterlet, settings, r.Replicas.Count(ctx), nil)
		s.Reject(*rejection)
		r.evaluateAgents(ctx, s)
		return ctrl.Result{}, s.Report(ctx)
	}
	return r.apply(ctx, s, settings, others)
}

// apply runs the phases.
func (r *Reconciler) apply(ctx context.Context, s *scope, settings gateSettings, others others) (ctrl.Result, error) {
	if err := r.EnsureFinalizer(ctx, s.klusterlet); err != nil {
		return ctrl.Result{}, err
	}
	pull, err := operand.ReadPullSecret(ctx, r.Client, r.config.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.Values = r.values(s.klusterlet, settings, r.Replicas.Count(ctx), pull)
	phases, rejected, err := r.plan(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !others.shares {
		s.Values.AddOnNamespace = false
		phases = phases[1:] // The CRDs.
	}
	return s.Apply(ctx, applied(), rejected, func(ctx context.Context) { r.evaluateAgents(ctx, s) }, phases...)
}

// removeFormerNamespaces deletes the agent namespaces that were applied for this
// Klusterlet and are no longer its spec.namespace.
func (r *Reconciler) removeFormerNamespaces(ctx context.Context, p *operand.Pass[manifests.Klusterlet]) error {
	var list corev1.NamespaceList
	if err := r.Client.List(ctx, &list, client.MatchingLabels{names.LabelKlusterlet: p.Values.Name}); err != nil {
		return err
	}
	for i := range list.Items {
		ns := &list.Items[i]
		if ns.Name == p.Values.Namespace || !ns.DeletionTimestamp.IsZero() || !apply.AppliedBy(ns, FieldManager) {
			continue
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, ns)); err != nil {
			return fmt.Errorf("delete namespace %s: %w", ns.Name, err)
		}
	}
	return nil
}

// prune deletes what only an earlier spec of the Klusterlet needed.
func (r *Reconciler) prune(ctx context.Context, p *operand.Pass[manifests.Klusterlet]) error {
	return r.owned(p.Values.Name).Prune(ctx, p.Changes)
}

// owned selects what is applied for a Klusterlet and can be left out.
func (r *Reconciler) owned(klusterlet string) operand.Owned {
	return operand.Owned{
		Client:       r.Client,
		Label:        client.MatchingLabels{names.LabelCreatedByKlusterlet: klusterlet},
		FieldManager: FieldManager,
		Kinds: []client.ObjectList{
			&appsv1.DeploymentList{},
			&rbacv1.RoleBindingList{},
			&rbacv1.RoleList{},
			&rbacv1.ClusterRoleBindingList{},
			&rbacv1.ClusterRoleList{},
			&corev1.ServiceAccountList{},
		},
	}
}
