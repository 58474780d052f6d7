package clustermanager

import (
	"context"
	"errors"
	"time"

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

// retryInterval is how long to wait for what is being deleted. What is left in
// a namespace or of a CRD is not watched.
const retryInterval = 2 * time.Second

// inUseRecheck is how long to wait for clusters that keep a setting from being
// changed; the operator does not watch them.
const inUseRecheck = 10 * time.Second

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
	pass.Pass[manifests.Hub]

	cm *operatorv1.ClusterManager
}

// controllerPhase is the index of the first step that takes the controllers'
// settings.
const controllerPhase = 3

// phases lists the steps in order. The admission policies come before the
// controllers, so that there is no hub without its rules.
func (r *Reconciler) phases() []pass.Phase[manifests.Hub] {
	return []pass.Phase[manifests.Hub]{
		{Name: "CRDs", Reason: operatorv1.ReasonClusterManagerCRDApplyFailed, Run: pass.Render(manifests.RenderHubCRDs)},
		{Name: "namespace and rights", Reason: ReasonHubResourceApplyFailed, Run: pass.Render(manifests.RenderHubBase)},
		{Name: "admission policies", Reason: operatorv1.ReasonWebhookApplyFailed, Run: pass.Render(manifests.RenderHubAdmission)},
		{Name: "controllers", Reason: operatorv1.ReasonRuntimeResourceApplyFailed, Run: pass.Render(manifests.RenderHubRuntime)},
		{Name: "what is no longer needed", Reason: ReasonHubResourceApplyFailed, Run: r.prune},
	}
}

// applied is the condition of a pass that came to its end.
func applied() metav1.Condition {
	return metav1.Condition{Reason: operatorv1.ReasonClusterManagerApplied, Message: "Components of cluster manager are applied"}
}

// Reconcile brings the hub to what the ClusterManager says.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cm operatorv1.ClusterManager
	if err := r.client.Get(ctx, req.NamespacedName, &cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	first, err := r.first(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	s := &scope{cm: &cm}
	s.Applier = r.applier
	s.Status.ObservedGeneration = cm.Generation
	settings := evaluateGates(&cm.Spec)
	s.Status.Set(settings.condition())
	if first != cm.Name {
		return ctrl.Result{}, r.yield(ctx, s, first)
	}
	if !cm.DeletionTimestamp.IsZero() {
		return r.clean(ctx, s, settings)
	}
	if problem := unsupportedMode(&cm.Spec); problem != nil {
		return ctrl.Result{}, r.refuse(ctx, s, settings, *problem)
	}
	return r.apply(ctx, s, settings)
}

// apply runs the phases.
func (r *Reconciler) apply(ctx context.Context, s *scope, settings gateSettings) (ctrl.Result, error) {
	if err := pass.EnsureFinalizer(ctx, r.client, s.cm, names.FinalizerClusterManager, FieldManager); err != nil {
		return ctrl.Result{}, err
	}
	pull, err := pullsecret.Read(ctx, r.client, r.config.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.Values = r.values(s.cm, settings, r.replicas.Count(ctx), pull)
	if s.Values.WebhookCA, err = r.webhookCA(ctx); err != nil {
		return ctrl.Result{}, err
	}
	phases, refused, err := r.plan(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	applyErr := s.Run(ctx, liveStatus(s.cm), applied(), phases...)
	if applyErr == nil && refused != nil {
		s.RefuseSetting(*refused)
	}
	r.judgeDeployments(ctx, s)
	if terminating := new(apply.TerminatingError); errors.As(applyErr, &terminating) {
		// It is going away, and has to be made again once it is gone.
		return ctrl.Result{RequeueAfter: retryInterval}, r.report(ctx, s)
	}
	var result ctrl.Result
	if refused != nil && refused.Reason == ReasonDriverInUse {
		result.RequeueAfter = inUseRecheck
	}
	return result, errors.Join(applyErr, r.report(ctx, s))
}

// refuse reports what keeps the ClusterManager from being applied, and how what
// runs is doing meanwhile.
func (r *Reconciler) refuse(ctx context.Context, s *scope, settings gateSettings, because metav1.Condition) error {
	s.Values = r.values(s.cm, settings, 1, nil)
	var err error
	if s.Values.WebhookCA, err = r.webhookCA(ctx); err != nil {
		return err
	}
	s.Refuse(liveStatus(s.cm), because)
	r.judgeDeployments(ctx, s)
	return r.report(ctx, s)
}

// prune deletes what an earlier version or an earlier spec had applied and this
// pass did not.
func (r *Reconciler) prune(ctx context.Context, p *pass.Pass[manifests.Hub]) error {
	return r.made(p.Values.Name, removable()).Prune(ctx, p.Changes)
}

// made is what the operator made for a ClusterManager.
func (r *Reconciler) made(name string, kinds []client.ObjectList) prune.Owned {
	return prune.Owned{
		Client: r.client, Label: client.MatchingLabels{names.LabelCreatedByClusterManager: name},
		FieldManager: FieldManager, Kinds: kinds,
	}
}

// report writes the status. A ClusterManager that went away in the meantime
// needs none.
func (r *Reconciler) report(ctx context.Context, s *scope) error {
	err := r.status.Write(ctx, s.cm.Name, liveStatus(s.cm), s.Status)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func liveStatus(cm *operatorv1.ClusterManager) report.Status {
	return report.Status{
		ObservedGeneration: cm.Status.ObservedGeneration,
		Conditions:         cm.Status.Conditions,
		Generations:        cm.Status.Generations,
		RelatedResources:   cm.Status.RelatedResources,
	}
}
