package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// SelfTestAudience is the audience of the tokens that keys are tried on. No
// server is called so, and none should be: such a token opens nothing.
const SelfTestAudience = "urn:open-cluster-management:issuer-self-test"

// selfTestSeconds is the shortest life that an API server gives a token.
const selfTestSeconds = 600

// Paths of an API server.
const (
	pathDiscovery = "/.well-known/openid-configuration"
	pathKeys      = "/openid/v1/jwks"
)

// Why a cluster's issuer cannot be determined. Read wraps one of these where it knows
// the reason; any other error is of the way to the API server.
var (
	// ErrNotServed: the API server does not show its keys.
	ErrNotServed = errors.New("the API server does not serve its public keys")
	// ErrSelfTest: what the API server shows does not fit what it signs.
	ErrSelfTest = errors.New("the API server does not sign with the keys that it serves")
	// ErrUnusable: the served keys cannot be used.
	ErrUnusable = errors.New("the keys that the API server serves cannot be used")
)

// Issuer is a cluster's description of its tokens.
type Issuer struct {
	// Name is the exact "iss" of the cluster's tokens.
	Name string
	// KeySet holds every key that the API server serves; during a rotation that
	// is the old one and the new one.
	KeySet KeySet
	// Tested is the id of the key that signed the token of the self-test; empty
	// if there was none.
	Tested string
	// Proof is that token, if it was made for the hub. It must not be logged.
	Proof string
}

// Source is a cluster whose issuer is read.
type Source struct {
	// paths asks the API server for paths.
	paths rest.Interface
	// tokens requests tokens, by connections that dialer has closed after each.
	tokens corev1client.ServiceAccountsGetter
	dialer *connrotation.Dialer
	// Account is the ServiceAccount whose tokens the keys are tried on. Without a
	// name there is no self-test, and discovery must say the issuer.
	Account types.NamespacedName
}

// NewSource returns the source for a connection.
func NewSource(config *rest.Config, account types.NamespacedName) (*Source, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	s := &Source{Account: account, dialer: newDialer(config.Dial)}
	own := rest.CopyConfig(config)
	own.Dial = s.dialer.DialContext
	tokens, err := corev1client.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("prepare to request tokens of the cluster: %w", err)
	}
	s.tokens = tokens
	config.AcceptContentTypes = "" // A key set has a media type of its own.
	config.NegotiatedSerializer = kubescheme.Codecs.WithoutConversion()
	if s.paths, err = rest.UnversionedRESTClientFor(config); err != nil {
		return nil, fmt.Errorf("prepare to read the cluster's issuer: %w", err)
	}
	return s, nil
}

// newDialer returns a dialer whose connections can be closed. Where several API
// servers stand behind one address, each self-test may meet another one, so that
// the proof of a new key does not wait for the server of one open connection.
func newDialer(dial connrotation.DialFunc) *connrotation.Dialer {
	if dial == nil {
		dial = (&net.Dialer{Timeout: requestTimeout}).DialContext
	}
	return connrotation.NewDialer(dial)
}

// Read returns the cluster's issuer and keys, after the self-test: a token that
// the cluster makes now verifies with one of the keys.
func (s *Source) Read(ctx context.Context) (Issuer, error) { return s.read(ctx, SelfTestAudience) }

// errAccount says that the hub would not accept the proofs of this agent.
var errAccount = fmt.Errorf("%w: the hub accepts no proof by this ServiceAccount; run as one in the namespace %s", ErrSelfTest, names.AgentNamespace)

// Prove is Read with a token that proves to the hub that cluster signs with the
// key that was tested.
func (s *Source) Prove(ctx context.Context, cluster keytrust.Cluster) (Issuer, error) {
	if !keytrust.IsAgent(s.Account.Namespace, s.Account.Name) {
		return Issuer{}, errAccount
	}
	return s.read(ctx, cluster.Audience())
}

func (s *Source) read(ctx context.Context, audience string) (Issuer, error) {
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
	return s.test(ctx, issuer, audience)
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
func (s *Source) test(ctx context.Context, issuer Issuer, audience string) (Issuer, error) {
	text, err := s.mint(ctx, audience)
	if err != nil {
		return Issuer{}, err
	}
	token, err := jwk.ParseToken(text)
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || token.UnverifiedClaims(&claims) != nil || claims.Issuer == "" {
		return Issuer{}, fmt.Errorf("%w: the API server issued a token in an unknown form", ErrSelfTest)
	}
	if issuer.Name == "" {
		issuer.Name = claims.Issuer
	}
	if issuer.Name != claims.Issuer {
		return Issuer{}, fmt.Errorf("%w: its discovery document names the issuer %q, and its tokens name %q: "+
			"the issuer of the keys elsewhere must be trusted by its own address", ErrSelfTest, issuer.Name, claims.Issuer)
	}
	i := slices.IndexFunc(issuer.KeySet.Keys, func(k jwk.Key) bool { return k.ID == token.KeyID() })
	if i < 0 {
		return Issuer{}, fmt.Errorf("%w: tokens are signed with key %q, and it serves %s: "+
			"where a provider signs elsewhere, add the cluster on the hub with the provider's key set", ErrSelfTest, token.KeyID(), strings.Join(ids(issuer.KeySet.Keys), ", "))
	}
	if err := issuer.KeySet.Keys[i].Verify(token); err != nil {
		return Issuer{}, fmt.Errorf("%w: key %q: %w", ErrSelfTest, token.KeyID(), err)
	}
	issuer.Tested, issuer.Proof = token.KeyID(), text
	return issuer, nil
}

// mint requests a token that is worth nothing outside this test.
func (s *Source) mint(ctx context.Context, audience string) (string, error) {
	defer s.dialer.CloseAll()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: new(int64(selfTestSeconds)),
	}}
	made, err := s.tokens.ServiceAccounts(s.Account.Namespace).CreateToken(ctx, s.Account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token of ServiceAccount %s for the self-test: %w", s.Account, err)
	}
	return made.Status.Token, nil
}

func (s *Source) path(ctx context.Context, path string) ([]byte, error) {
	result := s.paths.Get().AbsPath(path).Do(ctx)
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
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = key.ID
	}
	return out
}
