package agent

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	// fieldManager owns HubConnectionDegraded in the Klusterlet's status.
	fieldManager = "ocm.agent"
	// unreportable is when to retry without a Klusterlet or without permission to
	// write it: an agent can run without the operator.
	unreportable = 5 * time.Minute
)

// klusterletReporter writes the agent's Report into its Klusterlet.
type klusterletReporter struct {
	name     string
	reader   client.Reader
	writer   client.Client
	clock    clock.PassiveClock
	eventLog *eventLog
}

func (k *klusterletReporter) setup(mgr ctrl.Manager) error {
	req := reconcile.Request{NamespacedName: types.NamespacedName{Name: k.name}}
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.klusterlet").
		WatchesRawSource(k.eventLog.changed.source(req)).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
		}).
		Complete(k)
}

// Reconcile applies the condition if it differs from that of the Klusterlet.
func (k *klusterletReporter) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	condition := k.condition(k.eventLog.current())
	var klusterlet operatorv1.Klusterlet
	if err := k.reader.Get(ctx, req.NamespacedName, &klusterlet); err != nil {
		return k.tolerate(err)
	}
	condition.ObservedGeneration = klusterlet.Generation
	conditions := klusterlet.Status.Conditions
	if !apimeta.SetStatusCondition(&conditions, condition) {
		return ctrl.Result{}, nil
	}
	// SetStatusCondition retained the transition time if the status did not change.
	if set := apimeta.FindStatusCondition(conditions, condition.Type); set != nil {
		condition = *set
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("encode condition: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{raw}}}}
	object.SetGroupVersionKind(schema.GroupVersion(operatorv1.GroupVersion).WithKind("Klusterlet"))
	object.SetName(req.Name)
	return k.tolerate(k.writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership))
}

func (k *klusterletReporter) tolerate(err error) (ctrl.Result, error) {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apimeta.IsNoMatchError(err) {
		return ctrl.Result{RequeueAfter: unreportable}, nil
	}
	return ctrl.Result{}, err
}

// condition returns the Report as the condition of OCM's agent.
func (k *klusterletReporter) condition(r Report) metav1.Condition {
	c := metav1.Condition{
		Type: names.ConditionHubConnectionDegraded, Status: metav1.ConditionFalse,
		Reason: names.ReasonHubConnectionFunctional, Message: "the hub accepts the cluster and the credential of the agent",
		LastTransitionTime: metav1.NewTime(k.clock.Now()),
	}
	if r.Degraded() {
		bootstrap := r.Bootstrap
		if bootstrap.Reason == "" {
			bootstrap = functional()
		}
		c.Status = metav1.ConditionTrue
		c.Reason = bootstrap.Reason + "," + r.Hub.Reason
		c.Message = bootstrap.Message + "\n" + r.Hub.Message
	}
	return c
}
