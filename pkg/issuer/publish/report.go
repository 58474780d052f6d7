package publish

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Teller reports the state of publishing to users of a managed cluster: in events about
// the publisher's ServiceAccount and, if there is one, in a condition of the cluster's
// Klusterlet. It writes only changes.
type Teller struct {
	// Klusterlet is the name of the Klusterlet that shows it; empty for none.
	Klusterlet string
	// Reader and Writer reach the managed cluster; Reader does not cache.
	Reader client.Reader
	Writer client.Client
	// Events record.
	Events events.EventRecorder
	// Account is whom events are about.
	Account client.ObjectKey
	// Clock dates the condition.
	Clock clock.PassiveClock
	// Log gets what could not be written.
	Log logr.Logger

	mu       sync.Mutex
	reported metav1.Condition
}

// Report implements Reporter.
func (t *Teller) Report(ctx context.Context, c metav1.Condition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reported.Status == c.Status && t.reported.Reason == c.Reason && t.reported.Message == c.Message {
		return
	}
	if t.reported.Reason != c.Reason {
		kind := corev1.EventTypeNormal
		if c.Status != metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		t.event(kind, c.Reason, "Publish", c.Message)
	}
	if err := t.condition(ctx, c); err != nil {
		t.Log.Info("The Klusterlet does not show the issuer", "reason", err.Error())
		c.Message = "" // The next look tries again.
	}
	t.reported = c
}

// Withdrawn implements Reporter.
func (t *Teller) Withdrawn(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reported = metav1.Condition{}
	if err := t.clear(ctx); err != nil {
		t.Log.Info("The Klusterlet still shows the issuer", "reason", err.Error())
	}
}

func (t *Teller) event(kind, reason, action, message string) {
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "ServiceAccount", Namespace: t.Account.Namespace, Name: t.Account.Name}
	t.Events.Eventf(about, nil, kind, reason, action, "%s", message)
}

// condition writes a condition that the Klusterlet does not have yet.
func (t *Teller) condition(ctx context.Context, c metav1.Condition) error {
	live, err := t.live(ctx)
	if err != nil || live == nil {
		return err
	}
	c.LastTransitionTime = metav1.NewTime(t.Clock.Now())
	conditions := live.Status.Conditions
	if !apimeta.SetStatusCondition(&conditions, c) {
		return nil
	}
	// Setting it in a copy found out whether its transition time is to be kept.
	if set := apimeta.FindStatusCondition(conditions, c.Type); set != nil {
		c = *set
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	return t.apply(ctx, live.Name, []any{raw})
}

// clear takes the condition away, if the Klusterlet has it.
func (t *Teller) clear(ctx context.Context) error {
	live, err := t.live(ctx)
	if err != nil || live == nil || apimeta.FindStatusCondition(live.Status.Conditions, names.ConditionIssuerPublished) == nil {
		return err
	}
	return t.apply(ctx, live.Name, []any{})
}

// live returns the Klusterlet, nil if there is none or it may not be read: a publisher
// can be run without the operator.
func (t *Teller) live(ctx context.Context) (*operatorv1.Klusterlet, error) {
	if t.Klusterlet == "" {
		return nil, nil
	}
	var live operatorv1.Klusterlet
	err := t.Reader.Get(ctx, client.ObjectKey{Name: t.Klusterlet}, &live)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apimeta.IsNoMatchError(err) {
		return nil, nil
	}
	return &live, err
}

// apply makes conditions those of the Klusterlet's that are ours.
func (t *Teller) apply(ctx context.Context, klusterlet string, conditions []any) error {
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	object.SetGroupVersionKind(schema.GroupVersion(operatorv1.GroupVersion).WithKind("Klusterlet"))
	object.SetName(klusterlet)
	return t.Writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(FieldManager), client.ForceOwnership)
}
