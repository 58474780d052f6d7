package clustermanager

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// inUseRecheck is the delay before checking again whether clusters still use a
// driver; the operator does not watch them.
const inUseRecheck = 10 * time.Second

// Reconciler reconciles ClusterManagers.
type Reconciler struct {
	operand.Operator

	config Config
}

// scope is one pass over one ClusterManager.
type scope struct {
	operand.Pass[manifests.Hub]

	cm *operatorv1.ClusterManager
}

// controllerPhase is the index of the first phase that needs the controllers'
// settings.
const controllerPhase = 3

// phases returns the phases in order. The admission policies precede the controllers,
// so that no hub runs without its rules.
func (r *Reconciler) phases() []operand.Phase[manifests.Hub] {
	return []operand.Phase[manifests.Hub]{
		{Name: "CRDs", Reason: operatorv1.ReasonClusterManagerCRDApplyFailed, Run: operand.Render(manifests.RenderHubCRDs)},
		{Name: "namespace and rights", Reason: ReasonHubResourceApplyFailed, Run: operand.Render(manifests.RenderHubBase)},
		{Name: "admission policies", Reason: operatorv1.ReasonWebhookApplyFailed, Run: operand.Render(manifests.RenderHubAdmission)},
		{Name: "controllers", Reason: operatorv1.ReasonRuntimeResourceApplyFailed, Run: operand.Render(manifests.RenderHubRuntime)},
		{Name: "deletion of former objects", Reason: ReasonHubResourceApplyFailed, Run: r.prune},
	}
}

// applied is the condition of a pass in which every phase succeeded.
func applied() metav1.Condition {
	return metav1.Condition{Reason: operatorv1.ReasonClusterManagerApplied, Message: "Components of cluster manager are applied"}
}

// Reconcile updates the hub to the state that the ClusterManager describes.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cm operatorv1.ClusterManager
	if err := r.Client.Get(ctx, req.NamespacedName, &cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	first, err := r.first(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	s := &scope{cm: &cm, Pass: operand.NewPass[manifests.Hub](&r.Operator, &cm, operand.Status(cm.Status))}
	settings := evaluateGates(&cm.Spec)
	s.Status.Set(settings.condition())
	if first != cm.Name {
		return ctrl.Result{}, r.yield(ctx, s, first)
	}
	if !cm.DeletionTimestamp.IsZero() {
		return r.clean(ctx, s, settings)
	}
	if rejection := operand.UnsupportedMode(cm.Spec.DeployOption.Mode); rejection != nil {
		return ctrl.Result{}, r.reject(ctx, s, settings, *rejection)
	}
	return r.apply(ctx, s, settings)
}

// apply runs the phases.
func (r *Reconciler) apply(ctx context.Context, s *scope, settings gateSettings) (ctrl.Result, error) {
	if err := r.EnsureFinalizer(ctx, s.cm); err != nil {
		return ctrl.Result{}, err
	}
	pull, err := operand.ReadPullSecret(ctx, r.Client, r.config.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.Values = r.values(s.cm, settings, r.Replicas.Count(ctx), pull)
	if s.Values.WebhookCA, err = r.webhookCA(ctx); err != nil {
		return ctrl.Result{}, err
	}
	phases, rejected, err := r.plan(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	result, err := s.Apply(ctx, applied(), rejected, func(ctx context.Context) { r.evaluateDeployments(ctx, s) }, phases...)
	if err == nil && rejected != nil && rejected.Reason == ReasonDriverInUse {
		result.RequeueAfter = inUseRecheck
	}
	return result, err
}

// reject reports why the ClusterManager is not applied, and the state of what runs.
func (r *Reconciler) reject(ctx context.Context, s *scope, settings gateSettings, because metav1.Condition) error {
	s.Values = r.values(s.cm, settings, 1, nil)
	var err error
	if s.Values.WebhookCA, err = r.webhookCA(ctx); err != nil {
		return err
	}
	s.Reject(because)
	r.evaluateDeployments(ctx, s)
	return s.Report(ctx)
}

// prune deletes what an earlier version or an earlier spec had applied and this
// pass did not.
func (r *Reconciler) prune(ctx context.Context, p *operand.Pass[manifests.Hub]) error {
	return r.owned(p.Values.Name, removable()).Prune(ctx, p.Changes)
}

// owned selects what the operator applied for a ClusterManager.
func (r *Reconciler) owned(name string, kinds []client.ObjectList) operand.Owned {
	return operand.Owned{
		Client: r.Client, Label: client.MatchingLabels{names.LabelCreatedByClusterManager: name},
		FieldManager: FieldManager, Kinds: kinds,
	}
}
