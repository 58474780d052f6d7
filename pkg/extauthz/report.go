package extauthz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// How often decisions are reported. They are counts for users, so a replica
// writes no object more often than every reportEvery, and no more than maxReports
// objects per reportCheck: 1,000 busy clusters cost a hub less than one write per
// second and replica.
const (
	reportEvery = 5 * time.Minute
	reportCheck = 30 * time.Second
	maxReports  = 20
	// conflictDelay is when a write that another replica preceded is looked at again.
	conflictDelay = time.Second
)

// maxMessage bounds the message of a condition.
const maxMessage = 1024

// fieldManager is in whose name the status is written.
const fieldManager = "token-authorizer"

// reporter writes the status of the rules on the hub: conditions when they have
// changed, and counts now and then. Replicas write the same conditions and add to
// the same counts; the resource version has them not overwrite each other.
type reporter struct {
	// client is set before anything is reported.
	client client.Client
	clock  clock.WithTicker

	mu     sync.Mutex
	counts map[string]v1alpha1.Decisions
	// last is the cluster that was reported last: the next round begins behind it,
	// so that each has its turn.
	last string
}

func newReporter(clock clock.WithTicker) *reporter {
	return &reporter{clock: clock, counts: map[string]v1alpha1.Decisions{}}
}

// counting is an auditor that also counts for the reporter.
type counting struct {
	authorizer.Auditor

	reports *reporter
}

// Record implements authorizer.Auditor.
func (c counting) Record(e authorizer.Event) {
	if cluster := e.Decision.Identity.Cluster; cluster != "" {
		c.reports.count(cluster, e.Err)
	}
	if c.Auditor != nil {
		c.Auditor.Record(e)
	}
}

// count counts a decision. What could not be decided is none.
func (r *reporter) count(cluster string, err error) {
	denied := denial.Class(0)
	if err != nil {
		denied = denial.Of(err).Reason.Class()
	}
	if err != nil && denied == denial.Unavailable {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.counts[cluster]
	if err == nil {
		d.Allowed++
	} else {
		d.Denied++
	}
	r.counts[cluster] = d
}

// conditions brings the conditions of all objects up to date.
func (r *reporter) conditions(ctx context.Context, objects config.Objects, current *config.Config) error {
	var problems []error
	for i := range objects.Policies {
		p := &objects.Policies[i]
		if cluster, ok := current.Cluster(p.Namespace); ok && cluster.Name() == p.Namespace && p.Name == v1alpha1.Name {
			problems = append(problems, r.condition(ctx, p, &p.Status, cluster.Findings, rulesOf(cluster), invalid(cluster)))
		}
	}
	if d := objects.Defaults; d != nil {
		problems = append(problems, r.condition(ctx, d, &d.Status, current.Defaults, len(d.Spec.Allow), v1alpha1.ReasonInvalid))
	}
	return errors.Join(problems...)
}

// rulesOf is how many rules of a cluster are in force.
func rulesOf(c *config.Cluster) int {
	if c.Policy == nil {
		return 0
	}
	return len(c.Spec.Allow)
}

// condition writes the conditions of one object if they are others.
func (r *reporter) condition(
	ctx context.Context, object client.Object, status *v1alpha1.TokenExchangeStatus, findings []policy.Finding, rules int, invalid string,
) error {
	before, generation := clone(object), object.GetGeneration()
	was := status.DeepCopy()
	status.Rules = int32(min(rules, 1<<10)) //nolint:gosec // bounded
	for _, c := range []metav1.Condition{accepted(findings, rules, invalid), warnings(findings)} {
		c.ObservedGeneration = generation
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	if apiequality.Semantic.DeepEqual(was, status) {
		return nil
	}
	return r.write(ctx, object, before)
}

func clone(object client.Object) client.Object {
	out, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		panic("the copy of an object is none")
	}
	return out
}

// write writes a status over the one that was read, and no other.
func (r *reporter) write(ctx context.Context, object, before client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := r.client.Status().Patch(ctx, object, patch, client.FieldOwner(fieldManager))
	return client.IgnoreNotFound(err)
}

// invalid is the reason that the condition of a cluster has if it is False.
func invalid(c *config.Cluster) string {
	if c.Conflicting {
		return v1alpha1.ReasonConflict
	}
	return v1alpha1.ReasonInvalid
}

func accepted(findings []policy.Finding, rules int, invalid string) metav1.Condition {
	out := metav1.Condition{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted,
		Message: fmt.Sprintf("The token authorizer decides by %d rules", rules),
	}
	if rules == 1 {
		out.Message = "The token authorizer decides by 1 rule"
	}
	if policy.Failed(findings) {
		out.Status, out.Reason = metav1.ConditionFalse, invalid
		out.Message = "Everything is denied: " + listed(findings, policy.Error)
	}
	return out
}

func warnings(findings []policy.Finding) metav1.Condition {
	out := metav1.Condition{
		Type: v1alpha1.ConditionWarnings, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNone, Message: "There is nothing to warn of",
	}
	if text := listed(findings, policy.Warning); text != "" {
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, v1alpha1.ReasonRisky, text
	}
	return out
}

// listed are the findings of a severity in one message, by their place in the object.
func listed(findings []policy.Finding, severity policy.Severity) string {
	var parts []string
	for _, f := range findings {
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

// run reports counts until ctx ends.
func (r *reporter) run(ctx context.Context) error {
	for pause.For(ctx, r.clock, reportCheck) {
		r.flush(ctx)
	}
	return nil
}

// flush adds what was counted to the objects that are due. A write that fails is
// tried again with the next round.
func (r *reporter) flush(ctx context.Context) {
	written := 0
	for _, cluster := range r.turn() {
		if written == maxReports {
			return
		}
		done, err := r.add(ctx, cluster)
		if done {
			written++
			r.last = cluster
		}
		if err != nil && !apierrors.IsConflict(err) {
			return // The hub does not answer, or does not let us.
		}
	}
}

// turn are the clusters with counts, beginning behind the last one.
func (r *reporter) turn() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	clusters := slices.Sorted(maps.Keys(r.counts))
	i, found := slices.BinarySearch(clusters, r.last)
	if found {
		i++
	}
	return slices.Concat(clusters[i:], clusters[:i])
}

// add adds the count of one cluster, if its object is due, and reports whether it
// wrote. A cluster without an object of its own counts for the defaults.
func (r *reporter) add(ctx context.Context, cluster string) (bool, error) {
	object, status, err := r.object(ctx, cluster)
	if err != nil || object == nil {
		if object == nil && err == nil {
			r.counted(cluster, r.countOf(cluster)) // There is nowhere to write it.
		}
		return false, err
	}
	now := r.clock.Now()
	if d := status.Decisions; d != nil && now.Sub(d.LastUpdateTime.Time) < reportEvery {
		return false, nil
	}
	before := clone(object)
	if status.Decisions == nil {
		status.Decisions = &v1alpha1.Decisions{}
	}
	more := r.countOf(cluster)
	status.Decisions.Allowed += more.Allowed
	status.Decisions.Denied += more.Denied
	status.Decisions.LastUpdateTime = metav1.NewTime(now)
	if err := r.write(ctx, object, before); err != nil {
		return true, err
	}
	r.counted(cluster, more)
	return true, nil
}

func (r *reporter) countOf(cluster string) v1alpha1.Decisions {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[cluster]
}

// counted takes away what was written.
func (r *reporter) counted(cluster string, d v1alpha1.Decisions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.counts[cluster]
	left.Allowed -= d.Allowed
	left.Denied -= d.Denied
	if left == (v1alpha1.Decisions{}) {
		delete(r.counts, cluster)
		return
	}
	r.counts[cluster] = left
}

// object is what the decisions about a cluster are made by, nil if there is none.
func (r *reporter) object(ctx context.Context, cluster string) (client.Object, *v1alpha1.TokenExchangeStatus, error) {
	own := &v1alpha1.TokenExchangePolicy{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: v1alpha1.Name}, own)
	if err == nil {
		return own, &own.Status, nil
	}
	defaults := &v1alpha1.TokenExchangeDefaults{}
	if apierrors.IsNotFound(err) {
		err = r.client.Get(ctx, client.ObjectKey{Name: v1alpha1.Name}, defaults)
	}
	if err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	return defaults, &defaults.Status, nil
}
