package legacytoken

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Times of a migration.
const (
	answerInterval = 250 * time.Millisecond
	undoTimeout    = 15 * time.Second
)

// errAnswered says that the controller replaced a token in the last moment.
var errAnswered = errors.New("the controller replaced the token")

// NoAnswerError says that no controller replaced the token in a pull secret, which
// is as it was before.
type NoAnswerError struct {
	PullSecret PullSecret
	After      time.Duration
}

// Error implements error.
func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("no controller replaced the token in pull secret %s within %s; the pull secret was restored", e.PullSecret, e.After)
}

// HostsLostError says that the controller stores tokens for other registries than a
// pull secret had credentials for. The pull secret is as it was before.
type HostsLostError struct {
	PullSecret PullSecret
	Hosts      []string
}

// Error implements error.
func (e *HostsLostError) Error() string {
	return fmt.Sprintf("the controller stores no token for %s; pull secret %s was restored", strings.Join(e.Hosts, ", "), e.PullSecret)
}

// Migration hands pull secrets over to the pull secret controller.
type Migration struct {
	Client client.Client
	// Hosts are registries that the controller stores tokens for, in addition to
	// those which all pull secrets that it keeps have in common.
	Hosts []string
	// Patience is how long to wait for the controller, for each pull secret.
	Patience time.Duration

	// known are the results of managedHosts, by what was listed.
	known map[scope][]string
}

// scope is a kind of pull secrets, in a namespace or everywhere.
type scope struct {
	openShift bool
	namespace string
}

// handed is a pull secret before and after it was handed over.
type handed struct {
	before, after *corev1.Secret
	// account is the ServiceAccount as it was read, with the annotation in
	// accountAfter, which is nil if it was not changed.
	account, accountAfter *corev1.ServiceAccount
}

// Plan decides whether a pull secret that a token feeds is to be handed over.
func (m *Migration) Plan(ctx context.Context, t *Token, p PullSecret) (Plan, error) {
	_, plan, err := m.prepare(ctx, t, p)
	return plan, err
}

// prepare reads what a handover is about, and plans it.
func (m *Migration) prepare(ctx context.Context, t *Token, p PullSecret) (handed, Plan, error) {
	var account corev1.ServiceAccount
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.ServiceAccount}, &account)
	if apierrors.IsNotFound(err) || err == nil && t.accountUID != "" && account.UID != t.accountUID {
		return handed{}, reject("the ServiceAccount %s is gone", t.ServiceAccount), nil
	}
	if err != nil {
		return handed{}, Plan{}, err
	}
	var secret corev1.Secret
	err = m.Client.Get(ctx, p.key(), &secret)
	if apierrors.IsNotFound(err) {
		return handed{}, nothing("the pull secret is gone"), nil
	}
	if err != nil {
		return handed{}, Plan{}, err
	}
	plan, err := m.check(ctx, t, &secret, &account)
	if err != nil || plan.Action != ActionApply {
		return handed{}, plan, err
	}
	h := handed{before: &secret, after: handOver(&secret, t, &account), account: &account}
	if openShift(&secret) && account.Annotations[names.AnnotationOpenShiftPullSecret] == "" {
		h.accountAfter = account.DeepCopy()
		metav1.SetMetaDataAnnotation(&h.accountAfter.ObjectMeta, names.AnnotationOpenShiftPullSecret, secret.Name)
	}
	return h, plan, nil
}

// check decides whether a pull secret can be handed over.
func (m *Migration) check(ctx context.Context, t *Token, secret *corev1.Secret, account *corev1.ServiceAccount) (Plan, error) {
	if bound(secret) {
		return nothing("it has a bound token"), nil
	}
	if reason := rejection(secret, t, account); reason != "" {
		return reject("%s", reason), nil
	}
	unknown, err := m.unknownHosts(ctx, secret)
	if err != nil {
		return Plan{}, err
	}
	if len(unknown) > 0 {
		return reject("it is unknown whether the controller stores tokens for %s; confirm it with --registry", strings.Join(unknown, ", ")), nil
	}
	return Plan{Action: ActionApply}, nil
}

// unknownHosts returns the hosts of a pull secret for which the controller may
// store no token.
func (m *Migration) unknownHosts(ctx context.Context, secret *corev1.Secret) ([]string, error) {
	config, err := readDockerConfig(secret)
	if err != nil {
		return nil, err
	}
	missing := func(known []string) []string {
		return slices.DeleteFunc(config.hosts(), func(host string) bool { return slices.Contains(known, host) })
	}
	if len(missing(m.Hosts)) == 0 {
		return nil, nil
	}
	managed, err := m.managedHosts(ctx, secret)
	return missing(slices.Concat(m.Hosts, managed)), err
}

// managedHosts returns the registries that the pull secrets of a kind have in common which
// the controller keeps: what it stores tokens for. Those of other namespaces count as far as
// the user may list them.
func (m *Migration) managedHosts(ctx context.Context, like *corev1.Secret) ([]string, error) {
	for _, in := range []scope{{openShift(like), metav1.NamespaceAll}, {openShift(like), like.Namespace}} {
		hosts, listed := m.known[in]
		if listed {
			return hosts, nil
		}
		hosts, err := listHosts(ctx, m.Client, in)
		if apierrors.IsForbidden(err) && in.namespace == metav1.NamespaceAll {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the pull secrets of the controller: %w", err)
		}
		if m.known == nil {
			m.known = map[scope][]string{}
		}
		m.known[in] = hosts
		return hosts, nil
	}
	return nil, nil
}

// listHosts reads the hosts that the pull secrets with bound tokens have in common, in more
// than half of the namespaces that have such. A user of a namespace can create a Secret that
// looks like the controller's: it decides for that namespace only. If the controller stores no
// token for a host, the migration of a pull secret fails and is taken back.
func listHosts(ctx context.Context, reader client.Reader, in scope) ([]string, error) {
	selected := client.ListOption(client.MatchingLabels{names.LabelManagedBy: names.ManagedByImagePull})
	if in.openShift {
		selected = ofType(corev1.SecretTypeDockercfg)
	}
	common := map[string][]string{}
	err := pages.Each(ctx, reader, &corev1.SecretList{}, func(secret *corev1.Secret) {
		config, ok := readBound(secret)
		if openShift(secret) != in.openShift || !ok {
			return
		}
		if known, ok := common[secret.Namespace]; ok {
			common[secret.Namespace] = slices.DeleteFunc(known, func(host string) bool { _, ok := config.auths[host]; return !ok })
		} else {
			common[secret.Namespace] = config.hosts()
		}
	}, selected, client.InNamespace(in.namespace))
	return ofMost(common), err
}

// ofMost returns the hosts that more than half of the namespaces have.
func ofMost(byNamespace map[string][]string) []string {
	count := map[string]int{}
	for _, hosts := range byNamespace {
		for _, host := range hosts {
			count[host]++
		}
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return 2*n <= len(byNamespace) })
	return slices.Sorted(maps.Keys(count))
}

// Migrate hands a pull secret over and waits until the controller has replaced the
// token in it. Where that fails, it takes the pull secret back. Until then the old
// token works.
func (m *Migration) Migrate(ctx context.Context, t *Token, p PullSecret) error {
	h, err := m.begin(ctx, t, p)
	if err != nil {
		return err
	}
	return m.finish(ctx, h, p)
}

// Try hands a pull secret over through a connection that keeps no write, and waits
// for nothing.
func (m *Migration) Try(ctx context.Context, t *Token, p PullSecret) error {
	_, err := m.begin(ctx, t, p)
	return err
}

// begin hands a pull secret over if that is still what is planned.
func (m *Migration) begin(ctx context.Context, t *Token, p PullSecret) (handed, error) {
	h, plan, err := m.prepare(ctx, t, p)
	if err != nil {
		return handed{}, err
	}
	if plan.Action != ActionApply {
		return handed{}, ErrChanged
	}
	return h, m.handOver(ctx, &h)
}

// handOver writes the ServiceAccount before the pull secret: one that names
// another pull secret, or none, would have the controller delete this one.
func (m *Migration) handOver(ctx context.Context, h *handed) error {
	if h.accountAfter != nil {
		if err := m.patch(ctx, h.accountAfter, h.account); err != nil {
			return fmt.Errorf("annotate ServiceAccount %s with the pull secret: %w", h.account.Name, changed(err))
		}
	}
	err := m.patch(ctx, h.after, h.before)
	if err != nil {
		return errors.Join(fmt.Errorf("hand the pull secret over: %w", changed(err)), m.restoreAccount(ctx, *h))
	}
	return nil
}

// finish waits for the controller, and undoes the handover unless it answers.
func (m *Migration) finish(ctx context.Context, h handed, p PullSecret) error {
	config, err := m.await(ctx, h, p)
	if err != nil {
		return err
	}
	if lost := without(p.Hosts, config); len(lost) > 0 {
		return errors.Join(&HostsLostError{PullSecret: p, Hosts: lost}, m.undo(ctx, h, h.takeBackWithData))
	}
	return nil
}

// await returns the content that the controller wrote. Without any, the pull secret
// was taken back.
func (m *Migration) await(ctx context.Context, h handed, p PullSecret) (dockerConfig, error) {
	waiting, cancel := context.WithTimeout(ctx, m.Patience)
	defer cancel()
	config, err := m.answer(waiting, h)
	switch {
	case err == nil:
		return config, nil
	case apierrors.IsNotFound(err):
		return dockerConfig{}, fmt.Errorf("pull secret %s was deleted during the migration", p)
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err = &NoAnswerError{PullSecret: p, After: m.Patience}
	}
	undone := m.undo(ctx, h, h.takeBackUnanswered)
	if !errors.Is(undone, errAnswered) {
		return dockerConfig{}, errors.Join(err, undone)
	}
	late, cancelLate := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancelLate()
	return m.answer(late, h)
}

// without returns the hosts that a content has no credential for.
func without(hosts []string, config dockerConfig) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { _, ok := config.auths[host]; return ok })
}

// answer waits until the token in a pull secret is a bound one, and returns the
// content then.
func (m *Migration) answer(ctx context.Context, h handed) (config dockerConfig, err error) {
	var secret corev1.Secret
	err = wait.PollUntilContextCancel(ctx, answerInterval, true, func(ctx context.Context) (bool, error) {
		secret = corev1.Secret{}
		err := m.Client.Get(ctx, client.ObjectKeyFromObject(h.after), &secret)
		return secret.UID == h.after.UID && bound(&secret), err
	})
	if err != nil {
		return dockerConfig{}, err
	}
	return readDockerConfig(&secret)
}

// takeBackUnanswered returns a pull secret in which no token was replaced as it was
// before.
func (h handed) takeBackUnanswered(live *corev1.Secret) (*corev1.Secret, error) {
	if bound(live) {
		return nil, errAnswered
	}
	return takeBack(live, h.before, h.after)
}

// takeBackWithData returns a pull secret as it was before, with its content.
func (h handed) takeBackWithData(live *corev1.Secret) (*corev1.Secret, error) {
	back, err := takeBack(live, h.before, h.after)
	if err == nil {
		back.Data = h.before.Data
	}
	return back, err
}

// undo takes a pull secret back, also after ctx ended.
func (m *Migration) undo(ctx context.Context, h handed, takeBack func(live *corev1.Secret) (*corev1.Secret, error)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var live corev1.Secret
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(h.before), &live); err != nil {
			return client.IgnoreNotFound(err)
		}
		if live.UID != h.before.UID {
			return nil
		}
		back, err := takeBack(&live)
		if err != nil {
			return err
		}
		return m.patch(ctx, back, &live)
	})
	if err != nil {
		return fmt.Errorf("take the pull secret %s back from the controller: %w", client.ObjectKeyFromObject(h.before), err)
	}
	return m.restoreAccount(ctx, h)
}

// restoreAccount removes the annotation that a handover added.
func (m *Migration) restoreAccount(ctx context.Context, h handed) error {
	if h.accountAfter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var live corev1.ServiceAccount
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(h.account), &live); err != nil {
			return client.IgnoreNotFound(err)
		}
		if live.Annotations[names.AnnotationOpenShiftPullSecret] != h.before.Name {
			return nil
		}
		back := live.DeepCopy()
		delete(back.Annotations, names.AnnotationOpenShiftPullSecret)
		return m.patch(ctx, back, &live)
	})
}

// patch writes what makes an object different from another one, if that is how the
// object still is.
func (m *Migration) patch(ctx context.Context, object, from client.Object) error {
	patch := client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})
	return m.Client.Patch(ctx, object, patch, Owner)
}
