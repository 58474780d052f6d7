package clustermanager

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// retryInterval is how long to wait for what is being deleted. What is left in
// a namespace or of a CRD is not watched.
const retryInterval = 2 * time.Second

// Reconciler reconciles ClusterManagers.
type Reconciler struct {
	config   Config
	client   client.Client
	uncached client.Reader
	applier  *apply.Applier
	replicas replicas.Rule
	status   report.Writer
}

// scope is one pass over one ClusterManager.
type scope struct {
	cm      *operatorv1.ClusterManager
	values  manifests.Hub
	changes apply.ChangeSet
	status  report.Status
}

// phase is one step of a pass. An error ends the pass; reason goes into the
// condition Applied.
type phase struct {
	name   string
	reason string
	run    func(context.Context, *scope) error
}

// phases lists the steps in order. The admission policies come before the
// controllers, so that there is no hub without its rules.
func (r *Reconciler) phases() []phase {
	return []phase{
		{"CRDs", operatorv1.ReasonClusterManagerCRDApplyFailed, r.render(manifests.RenderHubCRDs)},
		{"namespace and rights", ReasonHubResourceApplyFailed, r.render(manifests.RenderHubBase)},
		{"admission policies", operatorv1.ReasonWebhookApplyFailed, r.render(manifests.RenderHubAdmission)},
		{"controllers", operatorv1.ReasonRuntimeResourceApplyFailed, r.render(manifests.RenderHubRuntime)},
		{"what is no longer needed", ReasonHubResourceApplyFailed, r.prune},
	}
}

// Reconcile brings the hub to what the ClusterManager says.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cm operatorv1.ClusterManager
	if err := r.client.Get(ctx, req.NamespacedName, &cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{cm: &cm}
	s.status.ObservedGeneration = cm.Generation
	settings := evaluateGates(&cm.Spec)
	s.status.Set(settings.condition())
	if !cm.DeletionTimestamp.IsZero() {
		return r.clean(ctx, s, settings)
	}
	if problem := unsupported(&cm.Spec); problem != nil {
		s.status.Set(*problem)
		s.keepLists()
		return ctrl.Result{}, r.report(ctx, s)
	}
	if err := r.ensureFinalizer(ctx, &cm); err != nil {
		return ctrl.Result{}, err
	}
	pull, err := pullsecret.Read(ctx, r.client, r.config.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.values = r.values(&cm, settings, r.replicas.Count(ctx), pull)
	applyErr := r.apply(ctx, s)
	r.judgeDeployments(ctx, s)
	if terminating := new(apply.TerminatingError); errors.As(applyErr, &terminating) {
		// It is going away, and has to be made again once it is gone.
		return ctrl.Result{RequeueAfter: retryInterval}, r.report(ctx, s)
	}
	return ctrl.Result{}, errors.Join(applyErr, r.report(ctx, s))
}

// apply runs the phases and says in the condition Applied how that went.
func (r *Reconciler) apply(ctx context.Context, s *scope) error {
	for _, p := range r.phases() {
		if err := p.run(ctx, s); err != nil {
			s.status.Set(metav1.Condition{
				Type: operatorv1.ConditionClusterManagerApplied, Status: metav1.ConditionFalse,
				Reason: p.reason, Message: fmt.Sprintf("%s: %v", p.name, err),
			})
			s.keepLists()
			return fmt.Errorf("ClusterManager %s: %s: %w", s.cm.Name, p.name, err)
		}
	}
	s.status.Set(metav1.Condition{
		Type: operatorv1.ConditionClusterManagerApplied, Status: metav1.ConditionTrue,
		Reason: operatorv1.ReasonClusterManagerApplied, Message: "Components of cluster manager are applied",
	})
	s.status.RelatedResources, s.status.Generations = report.Related(r.client.RESTMapper(), s.changes)
	return nil
}

// keepLists leaves the lists of applied objects as they were: a pass that did
// not come to its end does not know them all.
func (s *scope) keepLists() {
	s.status.RelatedResources, s.status.Generations = s.cm.Status.RelatedResources, s.cm.Status.Generations
}

// render makes a phase that applies what a manifest function returns.
func (r *Reconciler) render(render func(manifests.Hub) ([]*unstructured.Unstructured, error)) func(context.Context, *scope) error {
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

// prune deletes what an earlier version or an earlier spec had applied and this
// pass did not.
func (r *Reconciler) prune(ctx context.Context, s *scope) error {
	return r.made(s.cm.Name, removable()).Prune(ctx, s.changes)
}

// made is what the operator made for a ClusterManager.
func (r *Reconciler) made(name string, kinds []client.ObjectList) prune.Owned {
	return prune.Owned{Client: r.client, Label: client.MatchingLabels{names.LabelCreatedByClusterManager: name}, Kinds: kinds}
}

// ensureFinalizer makes sure, before anything is made, that it will be removed.
func (r *Reconciler) ensureFinalizer(ctx context.Context, cm *operatorv1.ClusterManager) error {
	patch := client.MergeFromWithOptions(cm.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if !controllerutil.AddFinalizer(cm, names.FinalizerClusterManager) {
		return nil
	}
	if err := r.client.Patch(ctx, cm, patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("add finalizer to ClusterManager %s: %w", cm.Name, err)
	}
	return nil
}

// report writes the status. A ClusterManager that went away in the meantime
// needs none.
func (r *Reconciler) report(ctx context.Context, s *scope) error {
	err := r.status.Write(ctx, s.cm.Name, report.Status{
		ObservedGeneration: s.cm.Status.ObservedGeneration,
		Conditions:         s.cm.Status.Conditions,
		Generations:        s.cm.Status.Generations,
		RelatedResources:   s.cm.Status.RelatedResources,
	}, s.status)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
