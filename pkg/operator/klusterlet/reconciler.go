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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
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
	klusterlet *operatorv1.Klusterlet
	values     manifests.Klusterlet
	changes    apply.ChangeSet
	status     report.Status
}

// phase is one step of a pass. An error ends the pass; the failure reason goes
// into the condition Applied.
type phase struct {
	name   string
	reason string
	run    func(context.Context, *scope) error
}

func (r *Reconciler) phases() []phase {
	return []phase{
		{"CRDs", operatorv1.ReasonKlusterletCRDApplyFailed, r.render(manifests.RenderKlusterletCRDs)},
		{"namespaces and rights", operatorv1.ReasonManagedClusterResourceApplyFailed, r.render(manifests.RenderKlusterletBase)},
		{"agents", operatorv1.ReasonKlusterletApplyFailed, r.render(manifests.RenderKlusterletRuntime)},
		{"former namespaces", operatorv1.ReasonManagedClusterResourceApplyFailed, r.removeFormerNamespaces},
		{"former agents and rights", operatorv1.ReasonManagedClusterResourceApplyFailed, r.prune},
	}
}

// Reconcile brings the cluster to what the Klusterlet says.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var klusterlet operatorv1.Klusterlet
	if err := r.client.Get(ctx, req.NamespacedName, &klusterlet); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !klusterlet.DeletionTimestamp.IsZero() {
		return r.clean(ctx, &klusterlet)
	}
	s := &scope{klusterlet: &klusterlet}
	s.status.ObservedGeneration = klusterlet.Generation
	settings := evaluateGates(&klusterlet)
	s.status.Set(settings.condition())
	if problem := unsupported(&klusterlet); problem != nil {
		s.status.Set(*problem)
		s.keepLists()
		return ctrl.Result{}, r.report(ctx, s)
	}
	if err := r.ensureFinalizer(ctx, &klusterlet); err != nil {
		return ctrl.Result{}, err
	}
	pull, err := pullsecret.Read(ctx, r.client, r.config.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.values = r.values(&klusterlet, settings, r.replicas.Count(ctx), pull)
	applyErr := r.apply(ctx, s)
	r.judgeAgents(ctx, s)
	if terminating := new(apply.TerminatingError); errors.As(applyErr, &terminating) {
		// It is going away, and has to be made again once it is gone.
		return ctrl.Result{RequeueAfter: cleanupRetry}, r.report(ctx, s)
	}
	return ctrl.Result{}, errors.Join(applyErr, r.report(ctx, s))
}

// apply runs the phases and says in the condition Applied how that went.
func (r *Reconciler) apply(ctx context.Context, s *scope) error {
	for _, p := range r.phases() {
		if err := p.run(ctx, s); err != nil {
			s.status.Set(metav1.Condition{
				Type: operatorv1.ConditionKlusterletApplied, Status: metav1.ConditionFalse,
				Reason: p.reason, Message: fmt.Sprintf("%s: %v", p.name, err),
			})
			s.keepLists()
			return fmt.Errorf("klusterlet %s: %s: %w", s.klusterlet.Name, p.name, err)
		}
	}
	s.status.Set(metav1.Condition{
		Type: operatorv1.ConditionKlusterletApplied, Status: metav1.ConditionTrue,
		Reason: operatorv1.ReasonKlusterletApplied, Message: "Klusterlet Component Applied",
	})
	s.status.RelatedResources, s.status.Generations = report.Related(r.client.RESTMapper(), s.changes)
	return nil
}

// keepLists leaves the lists of applied objects as they were: a pass that did
// not come to its end does not know them all.
func (s *scope) keepLists() {
	s.status.RelatedResources, s.status.Generations = s.klusterlet.Status.RelatedResources, s.klusterlet.Status.Generations
}

// render makes a phase that applies what a manifest function returns.
func (r *Reconciler) render(render func(manifests.Klusterlet) ([]*unstructured.Unstructured, error)) func(context.Context, *scope) error {
	return func(ctx context.Context, s *scope) error {
		rendered, err := render(s.values)
		if err != nil {
			return err
		}
		changes, err := r.applier.Apply(ctx, apply.Objects(rendered)...)
		s.changes = append(s.changes, changes...)
		return err
	}
}

// removeFormerNamespaces deletes the agent namespaces of this Klusterlet that
// are no longer its spec.namespace.
func (r *Reconciler) removeFormerNamespaces(ctx context.Context, s *scope) error {
	var list corev1.NamespaceList
	if err := r.client.List(ctx, &list, client.MatchingLabels{names.LabelKlusterlet: s.klusterlet.Name}); err != nil {
		return err
	}
	for i := range list.Items {
		ns := &list.Items[i]
		if ns.Name == s.values.Namespace || !ns.DeletionTimestamp.IsZero() {
			continue
		}
		if err := client.IgnoreNotFound(r.client.Delete(ctx, ns)); err != nil {
			return fmt.Errorf("delete namespace %s: %w", ns.Name, err)
		}
	}
	return nil
}

// prune deletes what an earlier state of the Klusterlet needed.
func (r *Reconciler) prune(ctx context.Context, s *scope) error {
	made := prune.Owned{
		Client: r.client,
		Label:  client.MatchingLabels{names.LabelCreatedByKlusterlet: s.klusterlet.Name},
		Kinds: []client.ObjectList{
			&appsv1.DeploymentList{},
			&rbacv1.RoleBindingList{},
			&rbacv1.RoleList{},
			&rbacv1.ClusterRoleBindingList{},
			&rbacv1.ClusterRoleList{},
			&corev1.ServiceAccountList{},
		},
	}
	return made.Prune(ctx, s.changes)
}

// ensureFinalizer makes sure, before anything is made, that it will be removed.
func (r *Reconciler) ensureFinalizer(ctx context.Context, klusterlet *operatorv1.Klusterlet) error {
	patch := client.MergeFromWithOptions(klusterlet.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if !controllerutil.AddFinalizer(klusterlet, names.FinalizerKlusterlet) {
		return nil
	}
	if err := r.client.Patch(ctx, klusterlet, patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("add finalizer to Klusterlet %s: %w", klusterlet.Name, err)
	}
	return nil
}

// report writes the status. A Klusterlet that went away in the meantime needs none.
func (r *Reconciler) report(ctx context.Context, s *scope) error {
	err := r.status.Write(ctx, s.klusterlet.Name, liveStatus(s.klusterlet), s.status)
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
