package bootstrap

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Limits of the lifetime of a bootstrap token.
const (
	// DefaultTTL is enough to run the printed command on another machine.
	DefaultTTL = time.Hour
	// MinTTL is the API server's own lower limit.
	MinTTL = 10 * time.Minute
	// MaxTTL is the longest lifetime that is requested. Every holder of a token can
	// request to join; a token of more than a day gets forgotten.
	MaxTTL = 24 * time.Hour
)

// CheckTTL returns an error if a token may not have a lifetime of ttl.
func CheckTTL(ttl time.Duration) error {
	switch {
	case ttl < MinTTL:
		return fmt.Errorf("--ttl must be at least %s", MinTTL)
	case ttl > MaxTTL:
		return fmt.Errorf("--ttl must be at most %s; print a new token when you need one", MaxTTL)
	}
	return nil
}

// Keys and type of Kubernetes bootstrap token Secrets.
const (
	bootstrapTokenID     = "token-id"
	bootstrapTokenSecret = "token-secret"
	bootstrapTokenExpiry = "expiration"
	bootstrapTokenGroups = "auth-extra-groups"
)

// ErrNoToken is the error for an unknown token id.
var ErrNoToken = errors.New("no such bootstrap token")

// TokenKind is the mechanism of a bootstrap token.
type TokenKind string

// The kinds of bootstrap tokens.
const (
	// ServiceAccountToken is a token of the bootstrap ServiceAccount, bound to
	// a Secret.
	ServiceAccountToken TokenKind = "serviceaccount"
	// BootstrapToken is a Kubernetes bootstrap token.
	BootstrapToken TokenKind = "bootstrap"
	// SecretToken is a token of the bootstrap ServiceAccount that is stored in a
	// Secret and never expires, as older releases of clusteradm use it.
	SecretToken TokenKind = "secret"
)

// TokenInfo describes a bootstrap token and does not contain it.
type TokenInfo struct {
	ID      string     `json:"id"`
	Kind    TokenKind  `json:"type"`
	User    string     `json:"user"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	Expired bool       `json:"expired"`

	// Secret is the Secret to delete for revoking the token.
	Secret client.ObjectKey `json:"-"`
}

// Tokens creates, lists and revokes the bootstrap tokens of a hub.
//
// A token is bound to a Secret of type names.SecretTypeJoinToken that does not contain
// it. The API server rejects the token as soon as that Secret is gone, so the Secrets
// are the list of tokens, and deleting one revokes its token.
type Tokens struct {
	Client client.Client
	Clock  clock.PassiveClock
}

// Mint creates a token that is valid for ttl, and deletes the Secrets of expired ones.
func (t Tokens) Mint(ctx context.Context, ttl time.Duration) (Token, error) {
	if err := t.prune(ctx); err != nil {
		return Token{}, err
	}
	anchor := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    names.OperatorNamespace,
			GenerateName: names.JoinTokenSecretPrefix,
			Labels:       map[string]string{names.LabelJoinToken: "true"},
			Annotations:  map[string]string{names.AnnotationTokenExpires: t.expiry(ttl)},
		},
		Type: names.SecretTypeJoinToken,
	}
	if err := t.Client.Create(ctx, anchor); err != nil {
		return Token{}, fmt.Errorf("create bootstrap token: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(ttl / time.Second)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: anchor.Name, UID: anchor.UID,
		},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.OperatorNamespace, Name: names.BootstrapServiceAccount,
	}}
	if err := t.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return Token{}, errors.Join(fmt.Errorf("create bootstrap token: %w", err), t.Client.Delete(ctx, anchor))
	}
	token, err := ParseToken(request.Status.Token)
	if err != nil {
		return Token{}, err
	}
	token.Expires = request.Status.ExpirationTimestamp.Time
	return token, t.record(ctx, anchor, token.Expires)
}

// record stores the expiry that the API server granted if it is not the requested one.
func (t Tokens) record(ctx context.Context, anchor *corev1.Secret, expires time.Time) error {
	requested, err := time.Parse(time.RFC3339, anchor.Annotations[names.AnnotationTokenExpires])
	if err == nil && requested.Sub(expires).Abs() < time.Minute {
		return nil
	}
	patch := client.MergeFrom(anchor.DeepCopy())
	anchor.Annotations[names.AnnotationTokenExpires] = expires.UTC().Format(time.RFC3339)
	return t.Client.Patch(ctx, anchor, patch)
}

func (t Tokens) expiry(ttl time.Duration) string {
	return t.Clock.Now().Add(ttl).UTC().Format(time.RFC3339)
}

// prune deletes the Secrets of expired tokens.
func (t Tokens) prune(ctx context.Context) error {
	anchors, err := t.anchors(ctx)
	if err != nil {
		return err
	}
	for i := range anchors {
		if t.info(&anchors[i]).Expired {
			if err := client.IgnoreNotFound(t.Client.Delete(ctx, &anchors[i])); err != nil {
				return fmt.Errorf("delete expired bootstrap token: %w", err)
			}
		}
	}
	return nil
}

// List returns the tokens of the hub, the newest first.
func (t Tokens) List(ctx context.Context) ([]TokenInfo, error) {
	anchors, err := t.anchors(ctx)
	if err != nil {
		return nil, err
	}
	secrets, err := t.bootstrapSecrets(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := t.storedSecrets(ctx)
	if err != nil {
		return nil, err
	}
	var infos []TokenInfo
	for i := range anchors {
		infos = append(infos, t.info(&anchors[i]))
	}
	for i := range secrets {
		infos = append(infos, t.bootstrapInfo(&secrets[i]))
	}
	for i := range stored {
		infos = append(infos, TokenInfo{
			ID: stored[i].Name, Kind: SecretToken, User: names.BootstrapServiceAccountUser, Created: stored[i].CreationTimestamp.Time,
			Secret: client.ObjectKeyFromObject(&stored[i]),
		})
	}
	slices.SortFunc(infos, func(a, b TokenInfo) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return infos, nil
}

// Bootstrap returns the newest Kubernetes bootstrap token for joining, or ErrNoToken.
func (t Tokens) Bootstrap(ctx context.Context) (Token, error) {
	secrets, err := t.bootstrapSecrets(ctx)
	if err != nil {
		return Token{}, err
	}
	secrets = slices.DeleteFunc(secrets, func(s corev1.Secret) bool { return t.bootstrapInfo(&s).Expired })
	if len(secrets) == 0 {
		return Token{}, ErrNoToken
	}
	newest := slices.MaxFunc(secrets, func(a, b corev1.Secret) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return ParseToken(string(newest.Data[bootstrapTokenID]) + "." + string(newest.Data[bootstrapTokenSecret]))
}

// Revoke revokes a token by its id or the name of its Secret; API servers cache
// successful authentications for a few seconds. What is unknown is ErrNoToken.
func (t Tokens) Revoke(ctx context.Context, id string) (TokenInfo, error) {
	infos, err := t.List(ctx)
	if err != nil {
		return TokenInfo{}, err
	}
	i := slices.IndexFunc(infos, func(info TokenInfo) bool { return info.ID == id || info.Secret.Name == id })
	if i < 0 {
		return TokenInfo{}, fmt.Errorf("%w: %s", ErrNoToken, id)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: infos[i].Secret.Namespace, Name: infos[i].Secret.Name}}
	if err := client.IgnoreNotFound(t.Client.Delete(ctx, secret)); err != nil {
		return infos[i], fmt.Errorf("revoke bootstrap token %s: %w", id, err)
	}
	return infos[i], nil
}

func (t Tokens) anchors(ctx context.Context) ([]corev1.Secret, error) {
	var list corev1.SecretList
	err := t.Client.List(ctx, &list, client.InNamespace(names.OperatorNamespace),
		client.MatchingLabels{names.LabelJoinToken: "true"})
	if err != nil {
		return nil, fmt.Errorf("list bootstrap tokens: %w", err)
	}
	return list.Items, nil
}

// bootstrapSecrets lists the Kubernetes bootstrap tokens for joining: those that init
// and clusteradm labelled, and those in the group that may join. Without permission to
// read kube-system it returns none.
func (t Tokens) bootstrapSecrets(ctx context.Context) ([]corev1.Secret, error) {
	var list corev1.SecretList
	err := t.Client.List(ctx, &list, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingFields{"type": string(corev1.SecretTypeBootstrapToken)})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list Kubernetes bootstrap tokens: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(s corev1.Secret) bool {
		groups := strings.Split(string(s.Data[bootstrapTokenGroups]), ",")
		return s.Labels["app"] != names.ClusterManagerOperator && !slices.Contains(groups, names.BootstrapTokenGroup)
	}), nil
}

// storedSecrets lists the Secrets that hold a token of the bootstrap
// ServiceAccount.
func (t Tokens) storedSecrets(ctx context.Context) ([]corev1.Secret, error) {
	var list corev1.SecretList
	err := t.Client.List(ctx, &list, client.InNamespace(names.OperatorNamespace),
		client.MatchingFields{"type": string(corev1.SecretTypeServiceAccountToken)})
	if err != nil {
		return nil, fmt.Errorf("tokens in Secrets: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(s corev1.Secret) bool {
		return s.Annotations[corev1.ServiceAccountNameKey] != names.BootstrapServiceAccount
	}), nil
}

func (t Tokens) info(anchor *corev1.Secret) TokenInfo {
	info := TokenInfo{
		ID:      strings.TrimPrefix(anchor.Name, names.JoinTokenSecretPrefix),
		Kind:    ServiceAccountToken,
		User:    names.BootstrapServiceAccountUser,
		Created: anchor.CreationTimestamp.Time,
		Secret:  client.ObjectKeyFromObject(anchor),
	}
	info.expire(anchor.Annotations[names.AnnotationTokenExpires], t.Clock.Now())
	return info
}

func (t Tokens) bootstrapInfo(secret *corev1.Secret) TokenInfo {
	id := string(secret.Data[bootstrapTokenID])
	info := TokenInfo{
		ID: id, Kind: BootstrapToken, User: "system:bootstrap:" + id,
		Created: secret.CreationTimestamp.Time, Secret: client.ObjectKeyFromObject(secret),
	}
	info.expire(string(secret.Data[bootstrapTokenExpiry]), t.Clock.Now())
	return info
}

// expire records an RFC 3339 expiry and ignores one that cannot be parsed.
func (i *TokenInfo) expire(at string, now time.Time) {
	if expires, err := time.Parse(time.RFC3339, at); err == nil {
		i.Expires, i.Expired = &expires, !now.Before(expires)
	}
}

// NewTokenSecret returns the random secret part of a Kubernetes bootstrap token: 16
// characters, from 32 of the 36 allowed lower-case letters and digits.
func NewTokenSecret() string { return strings.ToLower(rand.Text()[:16]) }
