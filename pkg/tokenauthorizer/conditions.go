package tokenauthorizer

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
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

const (
	// conditionWriters is how many objects get their conditions at a time: as many
	// as a hub has policies when the defaults are changed.
	conditionWriters = 4
	// conflictDelay is the delay before retrying a write that another replica preceded.
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
	// keys returns the status of the keys of a cluster with a source of its own.
	keys func(cluster string) (jwks.Status, bool)

	mu sync.Mutex
	// results are the results of the configuration in force.
	results map[types.NamespacedName]result
	// queue receives the objects that are due, and early contains those from before it
	// runs.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	early []reconcile.Request
}

func newConditions(keys func(string) (jwks.Status, bool)) *conditions { return &conditions{keys: keys} }

// add adds the controller to mgr.
func (c *conditions) add(mgr ctrl.Manager) error {
	everywhere := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named("extauthz.conditions").
		WatchesRawSource(source.Func(c.begin)).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere, MaxConcurrentReconciles: conditionWriters}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("conditions of rules: %w", err)
	}
	return nil
}

// begin takes over the queue of the controller.
func (c *conditions) begin(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = queue
	for _, request := range c.early {
		queue.Add(request)
	}
	c.early = nil
	return nil
}

// outdate has an object get its conditions. It does not wait.
func (c *conditions) outdate(object types.NamespacedName) {
	request := reconcile.Request{NamespacedName: object}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		c.early = append(c.early, request)
		return
	}
	c.queue.Add(request)
}

// policyOf is the policy of a cluster.
func policyOf(cluster string) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster, Name: v1alpha1.Name}
}

// follow has the conditions follow a configuration that was made of objects, whose
// status it changes.
func (c *conditions) follow(objects config.Objects, current *config.Config) {
	clusters := make(map[string]*config.Cluster, len(current.Clusters))
	for i := range current.Clusters {
		clusters[current.Clusters[i].Name()] = &current.Clusters[i]
	}
	results := make(map[types.NamespacedName]result, len(objects.Policies)+1)
	var outdated []types.NamespacedName
	evaluate := func(object client.Object, status *v1alpha1.TokenExchangeStatus, r result) {
		r.uid, r.generation = object.GetUID(), object.GetGeneration()
		key := client.ObjectKeyFromObject(object)
		results[key] = r
		if c.update(key, r, status) {
			outdated = append(outdated, key)
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
		c.outdate(object)
	}
}

// update updates a status and reports whether it changed.
func (c *conditions) update(object types.NamespacedName, r result, status *v1alpha1.TokenExchangeStatus) bool {
	changed := r.update(status)
	if !r.fetched {
		return apimeta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionKeysLoaded) || changed
	}
	known, ok := c.keys(object.Namespace)
	if !ok || !known.Tried {
		return changed // The source is read at this moment.
	}
	loaded := keysLoaded(known)
	loaded.ObservedGeneration = r.generation
	last := apimeta.FindStatusCondition(status.Conditions, loaded.Type)
	if last != nil && last.ObservedGeneration == r.generation && last.Reason == loaded.Reason && known.Err != nil {
		return changed // The same failure may have other words, such as the port of a connection.
	}
	return apimeta.SetStatusCondition(&status.Conditions, loaded) || changed
}

// keysLoaded is ConditionKeysLoaded of keys whose source was read.
func keysLoaded(known jwks.Status) metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionKeysLoaded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonKeysUnavailable}
	switch {
	case len(known.KeyIDs) > 0 && known.Err == nil:
		out.Status, out.Reason = metav1.ConditionTrue, v1alpha1.ReasonKeysLoaded
		out.Message = fmt.Sprintf("The token authorizer has %d keys", len(known.KeyIDs))
		if len(known.KeyIDs) == 1 {
			out.Message = "The token authorizer has 1 key"
		}
	case len(known.KeyIDs) > 0:
		out.Status, out.Reason = metav1.ConditionTrue, v1alpha1.ReasonKeysKept
		out.Message = fmt.Sprintf("The keys of %s are used: %v", known.LastSuccess.UTC().Format(time.RFC3339), known.Err)
	case len(known.Shared) > 0:
		out.Reason, out.Message = v1alpha1.ReasonConflict, "Everything is denied: "+known.Shared[0].Error()
	case known.Err != nil:
		out.Message = "Everything is denied: " + known.Err.Error()
	default:
		out.Message = "Everything is denied: the source has no key that can be used. " + strings.Join(known.Ignored, "; ")
	}
	out.Message = bounded(out.Message, "")
	return out
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
	if !c.update(req.NamespacedName, r, status) {
		return reconcile.Result{}, nil
	}
	err := writeStatus(ctx, c.client, object, before)
	if apierrors.IsConflict(err) {
		// Another replica was faster. What it wrote will be what we would.
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	return reconcile.Result{}, err
}

// result is the result of a configuration for an object.
type result struct {
	// uid and generation identify the object that the configuration was made from.
	uid        types.UID
	generation int64
	findings   []policy.Finding
	// rules is how many are in force.
	rules int
	// invalid is the reason of the condition if it is False.
	invalid string
	// fetched is set if the keys are fetched from a URL.
	fetched bool
}

func resultOf(c *config.Cluster) result {
	keys := c.Keys.Source
	out := result{findings: c.Findings, invalid: v1alpha1.ReasonInvalid, fetched: !c.Unkeyed && (keys.URI != "" || keys.Discovery != nil)}
	if c.Conflicting {
		out.invalid = v1alpha1.ReasonConflict
	}
	if c.Policy != nil {
		out.rules = len(c.Spec.Allow)
	}
	return out
}

// update updates a status and reports whether it changed.
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
	return bounded(strings.Join(parts, ". "), " (kubectl ocm exchange policy lint shows all)")
}

// bounded is a message that is not too long for a condition, and says where the rest is.
func bounded(text, rest string) string {
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..." + rest
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
