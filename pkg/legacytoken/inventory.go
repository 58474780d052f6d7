package legacytoken

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Where the API server says since when it records the use of tokens.
const (
	trackingConfigMap = "kube-apiserver-legacy-service-account-token-tracking"
	trackingKey       = "since"
)

// kindAccounts is the plural of ServiceAccount.
const kindAccounts = "ServiceAccounts"

// Scope says where to look.
type Scope struct {
	// Namespaces are the namespaces to search; none means all.
	Namespaces []string
	// Selector selects among the legacy token Secrets by their labels.
	Selector labels.Selector
}

// Inventory is the result of a search.
type Inventory struct {
	Observation

	// Tokens are the legacy token Secrets, by namespace and name.
	Tokens []*Token
}

// Gather finds legacy token Secrets and what is known about each. Kinds that the
// user may not list are in Unlisted; without Secrets there is no inventory.
func Gather(ctx context.Context, reader client.Reader, scope Scope, now time.Time, recent int) (*Inventory, error) {
	g := &gatherer{reader: reader, tokens: map[client.ObjectKey]*Token{}, sums: map[sum][]*Token{}}
	namespaces := scope.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		if err := g.gather(ctx, namespace, scope.Selector); err != nil {
			return nil, err
		}
	}
	since, err := trackedSince(ctx, reader)
	if err != nil {
		return nil, err
	}
	inventory := &Inventory{Observation: Observation{Now: now, Recent: recent, TrackedSince: since, Unlisted: g.unlisted}}
	for _, token := range g.tokens {
		token.tidy()
		inventory.Evaluate(token)
		inventory.Tokens = append(inventory.Tokens, token)
	}
	slices.SortFunc(inventory.Tokens, func(a, b *Token) int { return strings.Compare(a.String(), b.String()) })
	return inventory, nil
}

// tidy sorts what was joined to a token, each once.
func (t *Token) tidy() {
	t.UsedBy = slices.Compact(slices.Sorted(slices.Values(t.UsedBy)))
	slices.SortFunc(t.PullSecrets, func(a, b PullSecret) int { return strings.Compare(a.String(), b.String()) })
	t.PullSecrets = slices.CompactFunc(t.PullSecrets, func(a, b PullSecret) bool { return a.String() == b.String() })
}

// trackedSince returns the date since which the API server records the use of
// tokens, empty if it does not or if the user may not know.
func trackedSince(ctx context.Context, reader client.Reader) (string, error) {
	var tracking corev1.ConfigMap
	err := reader.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: trackingConfigMap}, &tracking)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read since when the API server records the use of tokens: %w", err)
	}
	if _, err := time.Parse(time.DateOnly, tracking.Data[trackingKey]); err != nil {
		return "", nil //nolint:nilerr // a date that cannot be read says nothing
	}
	return tracking.Data[trackingKey], nil
}

// gatherer joins what it reads, page by page, to the tokens.
type gatherer struct {
	reader   client.Reader
	tokens   map[client.ObjectKey]*Token
	sums     map[sum][]*Token
	unlisted []string
}

func (g *gatherer) gather(ctx context.Context, namespace string, selector labels.Selector) error {
	in := client.InNamespace(namespace)
	options := []client.ListOption{in, ofType(corev1.SecretTypeServiceAccountToken)}
	if selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	if err := pages.Each(ctx, g.reader, &corev1.SecretList{}, g.token, options...); err != nil {
		return fmt.Errorf("list the legacy token Secrets: %w", err)
	}
	if len(g.tokens) == 0 {
		return nil
	}
	for _, kind := range []corev1.SecretType{corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson} {
		if err := pages.Each(ctx, g.reader, &corev1.SecretList{}, g.pullSecret, in, ofType(kind)); err != nil {
			return fmt.Errorf("list the pull secrets: %w", err)
		}
	}
	return g.others(ctx, in)
}

// others reads what the user may list.
func (g *gatherer) others(ctx context.Context, in client.InNamespace) error {
	read := func(plural string, list client.ObjectList, visit func(client.Object)) error {
		err := pages.Each(ctx, g.reader, list, visit, in)
		if apierrors.IsForbidden(err) {
			if !slices.Contains(g.unlisted, plural) {
				g.unlisted = append(g.unlisted, plural)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", plural, err)
		}
		return nil
	}
	if err := g.accounts(in, read); err != nil {
		return err
	}
	for _, w := range workloads() {
		if err := read(w.kind+"s", w.list, func(o client.Object) { g.user(w, o) }); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) accounts(in client.InNamespace, read func(string, client.ObjectList, func(client.Object)) error) error {
	of := map[client.ObjectKey][]*Token{}
	for _, token := range g.tokens {
		if in == "" || string(in) == token.Namespace {
			key := client.ObjectKey{Namespace: token.Namespace, Name: token.ServiceAccount}
			of[key] = append(of[key], token)
		}
	}
	err := read(kindAccounts, &corev1.ServiceAccountList{}, func(o client.Object) {
		account, ok := o.(*corev1.ServiceAccount)
		if !ok {
			return
		}
		for _, token := range of[client.ObjectKeyFromObject(account)] {
			token.join(account)
		}
	})
	if err != nil || slices.Contains(g.unlisted, kindAccounts) {
		return err
	}
	for _, tokens := range of {
		for _, token := range tokens {
			if token.ServiceAccountState == AccountUnknown {
				token.ServiceAccountState = AccountMissing
			}
		}
	}
	return nil
}

// join adds the facts of a ServiceAccount of the right name. The API server uses its
// list of Secrets to distinguish generated ones.
func (t *Token) join(account *corev1.ServiceAccount) {
	if t.accountUID != "" && account.UID != t.accountUID {
		return
	}
	t.ServiceAccountState, t.accountUID = AccountExists, account.UID
	for _, entry := range account.Secrets {
		if entry.Name == t.Name && !t.AutoGenerated {
			t.AutoGenerated, t.origin = true, "Kubernetes created it: its ServiceAccount lists it in secrets"
		}
	}
}

// token notes a legacy token Secret.
func (g *gatherer) token(secret *corev1.Secret) {
	token := newToken(secret)
	if g.tokens[token.Key()] != nil { // A list that takes too long is restarted.
		return
	}
	g.tokens[token.Key()] = token
	if token.sum != (sum{}) {
		g.sums[token.sum] = append(g.sums[token.sum], token)
	}
}

// pullSecret records the tokens in a pull secret.
func (g *gatherer) pullSecret(secret *corev1.Secret) {
	config, err := readDockerConfig(secret)
	if err != nil { // It may still name its token Secret.
		config = dockerConfig{}
	}
	found := PullSecret{Namespace: secret.Namespace, Name: secret.Name, Hosts: config.hosts()}
	for token := range g.feeding(secret, config) {
		token.PullSecrets = append(token.PullSecrets, found)
	}
}

// feeding returns the tokens that a pull secret is fed by: what its annotation
// names, and what is in it.
func (g *gatherer) feeding(secret *corev1.Secret, config dockerConfig) sets.Set[*Token] {
	found := sets.New[*Token]()
	if token := g.tokens[client.ObjectKey{Namespace: secret.Namespace, Name: tokenSecretOf(secret)}]; token != nil {
		found.Insert(token)
	}
	for _, a := range config.auths {
		for _, value := range []string{a.password(), a.IdentityToken, a.RegistryToken} {
			found.Insert(g.sums[sumOf([]byte(value))]...)
		}
	}
	return found
}

// tokenSecretOf is the name of the token Secret that OpenShift made a pull secret
// from; empty for one that has bound tokens since, and for all others.
func tokenSecretOf(secret *corev1.Secret) string {
	if secret.Annotations[names.AnnotationOpenShiftBinding] == names.OpenShiftBound {
		return ""
	}
	return secret.Annotations[names.AnnotationOpenShiftTokenSecret]
}

// user notes the Secrets that a Pod or workload uses.
func (g *gatherer) user(w workload, o client.Object) {
	spec := specOf(o)
	if spec == nil {
		return
	}
	for name := range references(spec) {
		if token := g.tokens[client.ObjectKey{Namespace: o.GetNamespace(), Name: name}]; token != nil {
			token.UsedBy = append(token.UsedBy, w.kind+"/"+o.GetName())
		}
	}
}

func ofType(kind corev1.SecretType) client.ListOption {
	return client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", string(kind))}
}
