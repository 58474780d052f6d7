package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// userPrefix precedes NAMESPACE:NAME in the user name of a ServiceAccount.
const userPrefix = "system:serviceaccount:"

// byReview asks the cluster about each token.
func byReview(clients kubernetes.Interface, audience string) check {
	return func(ctx context.Context, token string) (account, error) {
		review, err := clients.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
		}, metav1.CreateOptions{})
		switch {
		case err != nil:
			return account{}, err
		case !review.Status.Authenticated:
			return account{}, fmt.Errorf("not authenticated: %s", review.Status.Error)
		case !slices.Contains(review.Status.Audiences, audience):
			return account{}, errors.New("the cluster does not check audiences")
		}
		return parse(review.Status.User.Username)
	}
}

// byKeys checks tokens by the keys that the cluster publishes, which it reads
// once. The clock runs ahead of time.
func byKeys(ctx context.Context, clients kubernetes.Interface, audience string, ahead time.Duration) (check, error) {
	var document struct {
		Issuer string `json:"issuer"`
	}
	var keys jose.JSONWebKeySet
	if err := read(ctx, clients, "/.well-known/openid-configuration", &document); err != nil {
		return nil, err
	}
	if err := read(ctx, clients, "/openid/v1/jwks", &keys); err != nil {
		return nil, err
	}
	return func(_ context.Context, token string) (account, error) {
		parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
		if err != nil {
			return account{}, err
		}
		var claims jwt.Claims
		if err := parsed.Claims(keys, &claims); err != nil {
			return account{}, err
		}
		if claims.Expiry == nil {
			return account{}, errors.New("the token never expires")
		}
		now := clock.RealClock{}.Now().Add(ahead)
		expected := jwt.Expected{Issuer: document.Issuer, AnyAudience: jwt.Audience{audience}, Time: now}
		if err := claims.ValidateWithLeeway(expected, time.Second); err != nil {
			return account{}, err
		}
		return parse(claims.Subject)
	}, nil
}

// read reads a JSON document from the API server.
func read(ctx context.Context, clients kubernetes.Interface, path string, into any) error {
	data, err := clients.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "*/*").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return json.Unmarshal(data, into)
}

// parse returns the ServiceAccount that has a user name.
func parse(user string) (account, error) {
	rest, found := strings.CutPrefix(user, userPrefix)
	namespace, name, ok := strings.Cut(rest, ":")
	if !found || !ok {
		return account{}, fmt.Errorf("%q is no ServiceAccount", user)
	}
	return account{namespace: namespace, name: name}, nil
}
