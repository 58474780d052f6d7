package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// SelfTestAudience is the audience of the tokens that keys are tried on. No
// server is called so, and none should be: such a token opens nothing.
const SelfTestAudience = "urn:open-cluster-management:issuer-self-test"

// selfTestSeconds is the shortest life that an API server gives a token.
const selfTestSeconds = 600

// Paths of an API server (tokens.md 1.9, discovery).
const (
	pathDiscovery = "/.well-known/openid-configuration"
	pathKeys      = "/openid/v1/jwks"
)

// Why a cluster's issuer cannot be told. Read wraps one of these where it knows
// the reason; any other error is of the way to the API server.
var (
	// ErrNotServed: the API server shows its keys to nobody.
	ErrNotServed = errors.New("the API server does not serve its public keys")
	// ErrSelfTest: what the API server shows does not fit what it signs.
	ErrSelfTest = errors.New("the API server does not sign with the keys that it serves")
	// ErrUnusable: the served keys cannot be used.
	ErrUnusable = errors.New("the keys that the API server serves cannot be used")
)

// Issuer is what a cluster says about its tokens.
type Issuer struct {
	// Name is the exact "iss" of the cluster's tokens.
	Name string
	// KeySet holds every key that the API server serves; during a rotation that
	// is the old one and the new one.
	KeySet KeySet
	// Tested is the id of the key that signed the token of the self-test; empty
	// if there was none.
	Tested string
}

// Source is a cluster that is asked for its issuer.
type Source struct {
	// REST asks the API server for paths.
	REST rest.Interface
	// Client requests tokens.
	Client client.Client
	// Account is the ServiceAccount whose tokens the keys are tried on. Without a
	// name there is no self-test, and discovery must say the issuer.
	Account types.NamespacedName
}

// NewSource returns the source that a connection leads to.
func NewSource(config *rest.Config, c client.Client, account types.NamespacedName) (*Source, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.AcceptContentTypes = "" // A key set has a media type of its own.
	config.NegotiatedSerializer = kubescheme.Codecs.WithoutConversion()
	paths, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare to read the cluster's issuer: %w", err)
	}
	return &Source{REST: paths, Client: c, Account: account}, nil
}

// Read returns the cluster's issuer and keys, after the self-test: a token that
// the cluster makes now verifies with one of the keys.
func (s *Source) Read(ctx context.Context) (Issuer, error) {
	discovered, err := s.discover(ctx)
	if err != nil {
		return Issuer{}, err
	}
	data, err := s.path(ctx, pathKeys)
	if apierrors.IsNotFound(err) {
		return Issuer{}, fmt.Errorf("%w: it does so only where its flag --service-account-issuer is an https URL", ErrNotServed)
	}
	if err != nil {
		return Issuer{}, err
	}
	set, err := Canonical(data)
	if err != nil {
		return Issuer{}, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	issuer := Issuer{Name: discovered, KeySet: set}
	if s.Account.Name == "" {
		if issuer.Name == "" {
			return Issuer{}, fmt.Errorf("%w: it does not say the issuer of its tokens, and there is no token to read it from", ErrNotServed)
		}
		return issuer, nil
	}
	return s.test(ctx, issuer)
}

// discover returns the issuer that the discovery document names, and an empty
// one where there is no such document.
func (s *Source) discover(ctx context.Context) (string, error) {
	data, err := s.path(ctx, pathDiscovery)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var document struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(data, &document); err != nil || document.Issuer == "" {
		return "", fmt.Errorf("%w: its %s names no issuer", ErrUnusable, pathDiscovery)
	}
	return document.Issuer, nil
}

// test makes a token and verifies it with the keys that are to be published.
func (s *Source) test(ctx context.Context, issuer Issuer) (Issuer, error) {
	text, err := s.mint(ctx)
	if err != nil {
		return Issuer{}, err
	}
	token, err := parseOwn(text)
	if err != nil {
		return Issuer{}, fmt.Errorf("%w: %w", ErrSelfTest, err)
	}
	if issuer.Name == "" {
		issuer.Name = token.issuer
	}
	if issuer.Name != token.issuer {
		return Issuer{}, fmt.Errorf("%w: its discovery document names the issuer %q, and its tokens name %q: "+
			"the issuer of the keys elsewhere must be trusted by its own address", ErrSelfTest, issuer.Name, token.issuer)
	}
	i := slices.IndexFunc(issuer.KeySet.Keys, func(k jwk.Key) bool { return k.ID == token.keyID })
	if i < 0 {
		return Issuer{}, fmt.Errorf("%w: tokens are signed with key %q, and it serves %s: "+
			"where a provider signs elsewhere (EKS), add the cluster on the hub with the provider's key set", ErrSelfTest, token.keyID, strings.Join(ids(issuer.KeySet.Keys), ", "))
	}
	if err := issuer.KeySet.Keys[i].Verify(token.algorithm, token.signed, token.signature); err != nil {
		return Issuer{}, fmt.Errorf("%w: key %q: %w", ErrSelfTest, token.keyID, err)
	}
	issuer.Tested = token.keyID
	return issuer, nil
}

// mint requests a token that is worth nothing outside this test.
func (s *Source) mint(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Account.Namespace, Name: s.Account.Name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{SelfTestAudience}, ExpirationSeconds: new(int64(selfTestSeconds)),
	}}
	if err := s.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("request a token of ServiceAccount %s for the self-test: %w", s.Account, err)
	}
	return request.Status.Token, nil
}

func (s *Source) path(ctx context.Context, path string) ([]byte, error) {
	result := s.REST.Get().AbsPath(path).Do(ctx)
	data, err := result.Raw()
	var status int
	result.StatusCode(&status)
	switch {
	case status == http.StatusNotFound:
		return nil, apierrors.NewNotFound(corev1.Resource("paths"), path)
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	return data, nil
}

func ids(keys []jwk.Key) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.ID
	}
	return names
}
