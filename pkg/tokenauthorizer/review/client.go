package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

const (
	// timeout ends one call. Callers mostly wait for less.
	timeout = 5 * time.Second
	// retryAfter is the delay that callers get when a call failed.
	retryAfter = 2 * time.Second
)

// client makes TokenReviews on one API server.
type client struct {
	api rest.Interface
}

// newClient connects to the API server of config.
func newClient(config *rest.Config) (*client, error) {
	if config.Insecure {
		return nil, errors.New("the kubeconfig switches off verification of the API server's certificate, " +
			"and tokens go to verified servers only; give it the server's CA")
	}
	if u, err := url.Parse(config.Host); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the server of the kubeconfig must begin with https://: tokens go to verified servers only")
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Timeout = timeout
	clients, err := authenticationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server of the reviews: %w", err)
	}
	return &client{api: clients.RESTClient()}, nil
}

// review asks the API server about token. cluster names the cluster in errors.
func (c *client) review(ctx context.Context, cluster, token string, audiences []string) (authenticationv1.TokenReviewStatus, *denial.Error) {
	var answer authenticationv1.TokenReview
	request := c.api.Post().Resource("tokenreviews").Body(&authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	})
	if err := request.Do(ctx).Into(&answer); err != nil {
		return answer.Status, failed(ctx, cluster, err)
	}
	switch status := answer.Status; {
	case !status.Authenticated:
		return status, denial.New(denial.Revoked, "the API server of the cluster %s refuses it: %s", cluster, clip(status.Error))
	case len(audiences) > 0 && !slices.ContainsFunc(status.Audiences, func(one string) bool { return slices.Contains(audiences, one) }):
		return status, denial.New(denial.WrongAudience, "the API server of the cluster %s confirms the audience %q, and one of %q is demanded",
			cluster, status.Audiences, audiences)
	}
	return answer.Status, nil
}

// failed finds the reason of a call that brought no answer.
func failed(ctx context.Context, cluster string, err error) *denial.Error {
	var denied *denial.Error
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		denied = denial.New(denial.Deadline, "the caller did not wait for the cluster %s: %w", cluster, err)
	case apierrors.IsUnauthorized(err):
		denied = denial.New(denial.ReviewUnavailable, "the cluster %s does not take the credential of the reviewer, renew it: %w", cluster, err)
	case apierrors.IsForbidden(err):
		denied = denial.New(denial.ReviewUnavailable,
			"the reviewer may not create TokenReviews in the cluster %s, bind it to the ClusterRole system:auth-delegator: %w", cluster, err)
	default:
		denied = denial.New(denial.ReviewUnavailable, "the cluster %s did not review it: %w", cluster, err)
	}
	denied.RetryAfter = retryAfter
	return denied
}

// clip bounds what is quoted of an answer.
func clip(text string) string { return excerpt.Of(cmp.Or(text, "no reason given"), 256) }
