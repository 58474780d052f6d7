package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/pass"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/prune"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/pullsecret"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/replicas"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/report"
)

// cleanupRetry is how long to wait for what is being deleted. Only some of it
// is watched: the rest is found gone by looking again.
const cleanupRetry = time.Second

// Reconciler reconciles Klusterlets.
type Reconciler struct {
	config   Config
	client   client.Client
	uncached client.Reader
	applier  *apply.Applier
	replicas replicas.Rule
	status   report.Writer
}

// scope is one pass over one Klusterlet.
type scope struct {
	pass.Pass[manifests.Klusterlet]

	klusterlet *operatorv1.Klusterlet
}

func (r *Reconciler) newScope(k *operatorv1.Klusterlet) *scope {
	s := &scope{klusterlet: k}
	s.Applier = r.applier
	s.Status.ObservedGeneration = k.Generation
	return s
}

// agentPhase is the index of the first step that takes the agent's settings.
const agentPhase = 2

// phases lists the steps in order.
func (r *Reconciler) phases() []pass.Phase[manifests.Klusterlet] {
	return []pass.Phase[manifests.Klusterlet]{
		{Name: "CRDs", Reason: operatorv1.ReasonKlusterletCRDApplyFailed, Run: pass.Render(manifests.RenderKlusterletCRDs)},
		{Name: "namespaces and rights", Reason: operatorv1.ReasonManagedClusterResourceApplyFailed, Run: pass.Render(manifests.RenderKlusterletBase)},
		{Name: "agents", Reason: operatorv1.ReasonKlusterletApplyFailed, Run: pass.Render(manifests.RenderKlusterletRuntime)},
		{Name: "former namespaces", Reason: operatorv1.ReasonManagedClusterResourceApplyFailed, Run: r.removeFormerNamespaces},
		{Name: "former agents and rights", Reason: operatorv1.ReasonManagedClusterResourceApplyFailed, Run: r.prune},
	}
}

// applied is the condition of a pass that came to its end.
func applied() metav1.Condition {
	return metav1.Condition{Reason: operatorv1.ReasonKlusterletApplied, Message: "Klusterlet Component Applied"}
}

// Reconcile brings the cluster to what the Klusterlet says.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var klusterlet operatorv1.Klusterlet
	if err := r.client.Get(ctx, req.NamespacedName, &klusterlet); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	others, err := r.look(ctx, &klusterlet)
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
	if problem := unsupportedMode(&klusterlet); problem != nil {
		s.Values = r.values(&klusterlet, settings, r.replicas.Count(ctx), nil)
		s.Refuse(liveStatus(&klusterlet), *problem)
		r.judgeAgents(ctx, s)
		return ctrl.Result{}, r.report(ctx, s)
	}
	return r.apply(ctx, s, settings, others)
}

// apply runs the phases.
func (r *Reconciler) apply(ctx context.Context, s *scope, settings gateSettings, others others) (ctrl.Result, error) {
	if err := pass.EnsureFinalizer(ctx, r.client, s.klusterlet, names.FinalizerKlusterlet, FieldManager); err != nil {
		return ctrl.Result{}, err
	}
	pull, err := pullsecret.Read(ctx, r.client, r.config.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.Values = r.values(s.klusterlet, settings, r.replicas.Count(ctx), pull)
	phases, refused, err := r.plan(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !others.shares {
		s.Values.AddOnNamespace = false
		phases = phases[1:] // The CRDs.
	}
	applyErr := s.Run(ctx, liveStatus(s.klusterlet), applied(), phases...)
	if applyErr == nil && refused != nil {
		s.RefuseSetting(*refused)
	}
	r.judgeAgents(ctx, s)
	if terminating := new(apply.TerminatingError); errors.As(applyErr, &terminating) {
		// It is going away, and has to be made again once it is gone.
		return ctrl.Result{RequeueAfter: cleanupRetry}, r.report(ctx, s)
	}
	return ctrl.Result{}, errors.Join(applyErr, r.report(ctx, s))
}

// removeFormerNamespaces deletes the agent namespaces that were applied for this
// Klusterlet and are no longer its spec.namespace.
func (r *Reconciler) removeFormerNamespaces(ctx context.Context, p *pass.Pass[manifests.Klusterlet]) error {
	var list corev1.NamespaceList
	if err := r.client.List(ctx, &list, client.MatchingLabels{names.LabelKlusterlet: p.Values.Name}); err != nil {
		return err
	}
	for i := range list.Items {
		ns := &list.Items[i]
		if ns.Name == p.Values.Namespace || !ns.DeletionTimestamp.IsZero() || !apply.AppliedBy(ns, FieldManager) {
			continue
		}
		if err := client.IgnoreNotFound(r.client.Delete(ctx, ns)); err != nil {
			return fmt.Errorf("delete namespace %s: %w", ns.Name, err)
		}
	}
	return nil
}

// prune deletes what an earlier state of the Klusterlet needed.
func (r *Reconciler) prune(ctx context.Context, p *pass.Pass[manifests.Klusterlet]) error {
	made := prune.Owned{
		Client:       r.client,
		Label:        client.MatchingLabels{names.LabelCreatedByKlusterlet: p.Values.Name},
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
	return made.Prune(ctx, p.Changes)
}

// report writes the status. A Klusterlet that went away in the meantime needs none.
func (r *Reconciler) report(ctx context.Context, s *scope) error {
	err := r.status.Write(ctx, s.klusterlet.Name, liveStatus(s.klusterlet), s.Status)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func liveStatus(k *operatorv1.Klusterlet) report.Status {
	return report.Status{
		ObservedGeneration: k.Status.ObservedGeneration,
		Conditions:         k.Status.Conditions,
		Generations:        k.Status.Generations,
		RelatedResources:   k.Status.RelatedResources,
	}
}
