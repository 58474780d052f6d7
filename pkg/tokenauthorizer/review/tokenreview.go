package review

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// WorkloadCluster is the name of the only cluster if TokenReviews alone prove its
// tokens.
const WorkloadCluster = "workload"

// What an API server reports about a ServiceAccount's token in addition to its user
// (k8s.io/apiserver, pkg/authentication/serviceaccount).
const (
	extraPrefix     = "authentication.kubernetes.io/"
	extraPodName    = extraPrefix + "pod-name"
	extraPodUID     = extraPrefix + "pod-uid"
	extraNodeName   = extraPrefix + "node-name"
	extraNodeUID    = extraPrefix + "node-uid"
	extraCredential = extraPrefix + "credential-id"
	credentialJTI   = "JTI="
)

// TokenReview verifies tokens by asking the API server that issued them, the
// older way (--workload-kubeconfig). It is one call per request: no
// answer is remembered. It may be used by many goroutines.
type TokenReview struct {
	client *client
}

// NewTokenReview returns a TokenReview that asks the API server of config, which
// must allow creating TokenReviews. It makes no call.
func NewTokenReview(config *rest.Config) (*TokenReview, error) {
	c, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &TokenReview{client: c}, nil
}

// Verify returns the identity that token proves, of the cluster WorkloadCluster,
// or a denial.Error. As in tokensmith, a token counts that is for the API server
// itself.
func (v *TokenReview) Verify(ctx context.Context, token string) (subject.Identity, error) {
	switch {
	case token == "":
		return subject.Identity{}, denial.New(denial.MissingToken, "there is no token")
	case len(token) > subject.MaxTokenBytes:
		return subject.Identity{}, denial.New(denial.Malformed, "it has %d bytes, and %d are the limit", len(token), subject.MaxTokenBytes)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	id := subject.Identity{Cluster: WorkloadCluster}
	status, denied := v.client.review(ctx, WorkloadCluster, token, nil)
	if denied != nil {
		return id, denied
	}
	account, err := ParseServiceAccountIdentity(status.User)
	if err != nil {
		return id, denial.New(denial.ClaimsMismatch, "the API server says: %w", err)
	}
	id.Account = account
	id.Token = subject.Unverified(token)
	if credential := first(status.User, extraCredential); strings.HasPrefix(credential, credentialJTI) {
		id.Token.ID = strings.TrimPrefix(credential, credentialJTI)
	}
	id.Bound.Pod = subject.Object{Name: first(status.User, extraPodName), UID: first(status.User, extraPodUID)}
	id.Bound.Node = subject.Object{Name: first(status.User, extraNodeName), UID: first(status.User, extraNodeUID)}
	return id, nil
}

// ParseServiceAccountIdentity returns the ServiceAccount that user is. It has a
// UID, because a ServiceAccount of the same name may have been another one.
func ParseServiceAccountIdentity(user authenticationv1.UserInfo) (subject.Account, error) {
	namespace, name, ok := names.ParseServiceAccountUser(user.Username)
	if !ok {
		return subject.Account{}, fmt.Errorf("%q is no ServiceAccount", clip(user.Username))
	}
	if user.UID == "" {
		return subject.Account{}, errors.New("the ServiceAccount has no UID")
	}
	return subject.Account{Namespace: namespace, Name: name, UID: user.UID}, nil
}

// first returns the first value of an extra, empty if there is none.
func first(user authenticationv1.UserInfo, key string) string {
	if values := user.Extra[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}
