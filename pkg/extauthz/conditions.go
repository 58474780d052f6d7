package extauthz

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
)

const (
	// conditionWriters is how many objects get their conditions at a time: as many
	// as a hub has policies when the defaults are changed.
	conditionWriters = 4
	// conflictDelay is when a write that another replica preceded is looked at again.
	conflictDelay = time.Second
	// maxMessage bounds the message of a condition.
	maxMessage = 1024
	// fieldManager is in whose name the status is written.
	fieldManager = "token-authorizer"
)

// conditions writes what the configuration in force makes of each object with rules
// into its conditions. Replicas write the same; the resource version has them not
// overwrite each other. A configuration never waits for the conditions of the one before,
// which are a write for each policy.
type conditions struct {
	client client.Client
	// outdated are the objects whose turn it is.
	outdated chan event.GenericEvent

	mu sync.Mutex
	// results are those of the configuration in force.
	results map[types.NamespacedName]result
}

func newConditions(hub client.Client) *conditions {
	return &conditions{client: hub, outdated: make(chan event.GenericEvent)}
}

// add adds the controller to mgr.
func (c *conditions) add(mgr ctrl.Manager) error {
	everywhere := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named("extauthz.conditions").
		WatchesRawSource(source.Channel(c.outdated, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere, MaxConcurrentReconciles: conditionWriters}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("conditions of rules: %w", err)
	}
	return nil
}

// follow has the conditions follow a configuration that was made of objects, whose
// status it changes.
func (c *conditions) follow(ctx context.Context, objects config.Objects, current *config.Config) {
	clusters := make(map[string]*config.Cluster, len(current.Clusters))
	for i := range current.Clusters {
		clusters[current.Clusters[i].Name()] = &current.Clusters[i]
	}
	results := make(map[types.NamespacedName]result, len(objects.Policies)+1)
	var outdated []client.Object
	evaluate := func(object client.Object, status *v1alpha1.TokenExchangeStatus, r result) {
		r.uid, r.generation = object.GetUID(), object.GetGeneration()
		results[client.ObjectKeyFromObject(object)] = r
		if r.update(status) {
			outdated = append(outdated, object)
		}
	}
	for i := range objects.Policies {
		p := &objects.Policies[i]
		if cluster, ok := clusters[p.Namespace]; ok && p.Name == v1alpha1.Name {
			evaluate(p, &p.Status, resultOf(cluster))
		}
	}
	if d := objects.Defaults; d != nil {
		evaluate(d, &d.Status, result{findings: current.Defaults, rules: len(d.Spec.Allow), invalid: v1alpha1.ReasonInvalid})
	}
	c.mu.Lock()
	c.results = results
	c.mu.Unlock()
	for _, object := range outdated {
		select {
		case c.outdated <- event.GenericEvent{Object: object}:
		case <-ctx.Done():
			return
		}
	}
}

// Reconcile implements reconcile.Reconciler.
func (c *conditions) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object, status := ruleObject(req.Namespace)
	if err := c.client.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	c.mu.Lock()
	r := c.results[req.NamespacedName]
	c.mu.Unlock()
	if r.uid != object.GetUID() || r.generation != object.GetGeneration() {
		return reconcile.Result{}, nil // The configuration that is made of it has it come again.
	}
	before := clone(object)
	if !r.update(status) {
		return reconcile.Result{}, nil
	}
	err := writeStatus(ctx, c.client, object, before)
	if apierrors.IsConflict(err) {
		// Another replica was faster. What it wrote will be what we would.
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	return reconcile.Result{}, err
}

// result is what a configuration makes of an object.
type result struct {
	// uid and generation are those of the object that the configuration was made of.
	uid        types.UID
	generation int64
	findings   []policy.Finding
	// rules is how many are in force.
	rules int
	// invalid is the reason of the condition if it is False.
	invalid string
}

func resultOf(c *config.Cluster) result {
	out := result{findings: c.Findings, invalid: v1alpha1.ReasonInvalid}
	if c.Conflicting {
		out.invalid = v1alpha1.ReasonConflict
	}
	if c.Policy != nil {
		out.rules = len(c.Spec.Allow)
	}
	return out
}

// update brings a status up to date and reports whether it was not.
func (r result) update(status *v1alpha1.TokenExchangeStatus) bool {
	rules := int32(min(r.rules, 1<<10)) //nolint:gosec // bounded
	changed := status.Rules != rules
	status.Rules = rules
	for _, condition := range []metav1.Condition{r.accepted(), r.warnings()} {
		condition.ObservedGeneration = r.generation
		changed = apimeta.SetStatusCondition(&status.Conditions, condition) || changed
	}
	return changed
}

func (r result) accepted() metav1.Condition {
	out := metav1.Condition{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted,
		Message: fmt.Sprintf("The token authorizer decides by %d rules", r.rules),
	}
	if r.rules == 1 {
		out.Message = "The token authorizer decides by 1 rule"
	}
	if policy.Failed(r.findings) {
		out.Status, out.Reason = metav1.ConditionFalse, r.invalid
		out.Message = "Everything is denied: " + r.listed(policy.Error)
	}
	return out
}

func (r result) warnings() metav1.Condition {
	out := metav1.Condition{
		Type: v1alpha1.ConditionWarnings, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNone, Message: "There is nothing to warn of",
	}
	if text := r.listed(policy.Warning); text != "" {
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, v1alpha1.ReasonRisky, text
	}
	return out
}

// listed are the findings of a severity in one message, by their place in the object.
func (r result) listed(severity policy.Severity) string {
	var parts []string
	for _, f := range r.findings {
		if f.Severity == severity {
			if _, place, ok := strings.Cut(f.Path, ": "); ok {
				f.Path = place
			}
			parts = append(parts, f.String())
		}
	}
	text := strings.Join(parts, ". ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "... (kubectl ocm exchange policy lint shows all)"
	}
	return text
}

// ruleObject returns an object to read rules into: the policy of a cluster's namespace,
// and without a namespace the defaults.
func ruleObject(namespace string) (client.Object, *v1alpha1.TokenExchangeStatus) {
	if namespace == "" {
		defaults := &v1alpha1.TokenExchangeDefaults{}
		return defaults, &defaults.Status
	}
	own := &v1alpha1.TokenExchangePolicy{}
	return own, &own.Status
}

func clone(object client.Object) client.Object {
	out, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		panic("the copy of an object is none")
	}
	return out
}

// writeStatus writes a status over the one that was read, and no other.
func writeStatus(ctx context.Context, hub client.Client, object, before client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := hub.Status().Patch(ctx, object, patch, client.FieldOwner(fieldManager))
	return client.IgnoreNotFound(err)
}
