package token

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Owner is the field manager of the data of pull secrets.
const Owner client.FieldOwner = "ocm.pullsecret.token"

// Hosts is the list of registry hosts.
type Hosts interface {
	List() []content.Host
}

// Keys knows the cluster's signing keys.
type Keys interface {
	// Retired reports whether tokens that are signed with a key must be replaced.
	Retired(keyID string) bool
	// Signed notes the key of a token that was just issued.
	Signed(keyID string)
}

// Reconciler keeps a good token in every pull secret.
type Reconciler struct {
	// Client writes, and reads from the cache, which has Summaries for data.
	Client client.Client
	// Live reads from the API server, before something is deleted.
	Live client.Reader
	// Clock is the time.
	Clock clock.PassiveClock
	// Form is the form of pull secrets.
	Form owner.Form
	// Spec specifies the tokens.
	Spec Spec
	// Hosts are the registries of the tokens.
	Hosts Hosts
	// Keys are the cluster's signing keys.
	Keys Keys
	// Limit bounds how fast tokens are replaced. The first one of a Secret does
	// not wait: pods do.
	Limit flowcontrol.RateLimiter
	// Events says on ServiceAccounts what fails.
	Events events.EventRecorder
	// Metrics counts.
	Metrics *Metrics

	memory *memory
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var secret corev1.Secret
	if err := r.Client.Get(ctx, req.NamespacedName, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ref, ok := r.Form.Of(&secret)
	if !ok || secret.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	account, err := owner.Account(ctx, r.Client, secret.Namespace, ref)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case account == nil:
		return ctrl.Result{}, r.deleteOrphan(ctx, &secret, ref)
	case r.Form.Superseded(&secret, account): // Pods may still list it: its token just expires.
		return ctrl.Result{}, nil
	}
	return r.ensure(ctx, &secret, ref)
}

// ensure replaces the token if needed, and requeues the Secret for its next renewal.
func (r *Reconciler) ensure(ctx context.Context, secret *corev1.Secret, account metav1.OwnerReference) (ctrl.Result, error) {
	hosts := r.Hosts.List()
	if len(hosts) == 0 { // Paused; a change of the list wakes everything.
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	facts := inspect(secret, r.want(account, hosts))
	need, due := credential.Due().Evaluate(facts, now)
	if !due {
		return ctrl.Result{RequeueAfter: facts.RenewAt.Sub(now)}, nil
	}
	switch wait, stale := r.memory.blocks(key(secret), secret.UID, secret.ResourceVersion, now); {
	case stale:
		return ctrl.Result{}, nil
	case wait > 0:
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	limit := r.Limit
	if need.Reason == credential.Missing {
		limit = flowcontrol.NewFakeAlwaysRateLimiter()
	}
	err := r.refresh(ctx, secret, account, hosts, limit)
	if expected(err) {
		return ctrl.Result{}, nil
	}
	r.Metrics.refreshed(need.Reason, err)
	if err != nil {
		r.failed(secret.Namespace, account, err)
		return ctrl.Result{}, err
	}
	klog.FromContext(ctx).V(1).Info("Refreshed the pull secret", "reason", need.Reason)
	return ctrl.Result{}, nil // The write comes back as an event.
}

func (r *Reconciler) want(account metav1.OwnerReference, hosts []content.Host) wanted {
	return wanted{Spec: r.Spec, hosts: hosts, account: string(account.UID), retired: r.Keys.Retired}
}

// refresh stores new tokens, one for each audience, which thus are due together.
func (r *Reconciler) refresh(ctx context.Context, secret *corev1.Secret, account metav1.OwnerReference, hosts []content.Host, limit flowcontrol.RateLimiter) error {
	byAudience := map[string][]string{}
	for _, host := range hosts {
		byAudience[host.Audience] = append(byAudience[host.Audience], host.Name)
	}
	var credentials []content.Credential
	for _, audience := range slices.Sorted(maps.Keys(byAudience)) {
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		token, err := r.mint(ctx, secret, account, audience)
		if err != nil {
			return err
		}
		credentials = append(credentials, content.Credential{Hosts: byAudience[audience], Username: r.Spec.Username, Token: token})
	}
	written, summary, err := r.write(ctx, secret, credentials)
	if err != nil {
		return err
	}
	r.memory.note(key(secret), written)
	for _, t := range summary.Tokens {
		r.Keys.Signed(t.KeyID)
	}
	return nil
}

// expected reports whether an error only says that the Secret, its ServiceAccount
// or its namespace is going, which events report.
func expected(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// deleteOrphan deletes the pull secret of a ServiceAccount that is gone, if the API
// server says the same. The garbage collector does that as well, where it runs and
// where the owner reference is as it was.
func (r *Reconciler) deleteOrphan(ctx context.Context, secret *corev1.Secret, account metav1.OwnerReference) error {
	live, err := owner.Account(ctx, r.Live, secret.Namespace, account)
	if live != nil || err != nil {
		return err
	}
	err = r.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the pull secret %s, whose ServiceAccount is gone: %w", key(secret), err)
	}
	r.Metrics.orphans.Inc()
	return nil
}

func (r *Reconciler) failed(namespace string, account metav1.OwnerReference, err error) {
	r.Events.Eventf(owner.Reference(namespace, account), nil, corev1.EventTypeWarning, names.ReasonPullSecretFailed, "RefreshPullSecret", "%s", err.Error())
}

// rank is the place of a Secret in the queue.
func (r *Reconciler) rank(ctx context.Context, req ctrl.Request) rank {
	var secret corev1.Secret
	if err := r.Client.Get(ctx, req.NamespacedName, &secret); err != nil {
		return rank{idle: true}
	}
	facts, ok := r.facts(ctx, &secret)
	if !ok {
		return rank{idle: true}
	}
	need, due := credential.Due().Evaluate(facts, r.Clock.Now())
	return rank{idle: !due, urgency: need.Reason.Urgency(), expires: facts.Validity.NotAfter}
}
