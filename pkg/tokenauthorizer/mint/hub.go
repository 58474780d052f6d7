package mint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// hub is the hub's API as far as minting needs it.
type hub struct {
	core     rest.Interface
	accounts metadata.Getter
	clock    clock.WithTicker
}

func newHub(given *rest.Config, clock clock.WithTicker) (*hub, error) {
	config := rest.CopyConfig(given)
	config.QPS, config.Burst = -1, 0
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	core, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), client)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return &hub{core: core.RESTClient(), accounts: meta.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")), clock: clock}, nil
}

// issued is a token with the UID of the ServiceAccount that it is for.
type issued struct {
	Token
	uid string
}

// request gets a token from the hub. If the hub rejects it because of too many
// requests, it has made no token, and request retries after the hub's delay for as long
// as ctx allows. An empty uid is no precondition.
func (h *hub) request(ctx context.Context, t policy.Target, uid string) (*authenticationv1.TokenRequestStatus, error) {
	for {
		status, err := h.requestOnce(ctx, t, uid)
		if !apierrors.IsTooManyRequests(err) || !pause.For(ctx, h.clock, retryAfter(err)) {
			return status, err
		}
	}
}

// requestOnce makes one TokenRequest, without client-go's retries: those would
// also repeat what the hub failed to do.
func (h *hub) requestOnce(ctx context.Context, t policy.Target, uid string) (*authenticationv1.TokenRequestStatus, error) {
	seconds := int64(t.Expiration / time.Second)
	request := &authenticationv1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
		Spec:       authenticationv1.TokenRequestSpec{Audiences: t.Audiences},
	}
	if seconds > 0 {
		request.Spec.ExpirationSeconds = &seconds
	}
	answer := &authenticationv1.TokenRequest{}
	err := h.core.Post().Namespace(t.Namespace).Resource("serviceaccounts").Name(t.Name).SubResource("token").
		MaxRetries(0).Body(request).Do(ctx).Into(answer)
	return &answer.Status, err
}

// mint makes one TokenRequest for the ServiceAccount with that UID; if the
// ServiceAccount was recreated meanwhile, a second one.
func (h *hub) mint(ctx context.Context, t policy.Target, uid string, now time.Time) (issued, error) {
	status, err := h.request(ctx, t, uid)
	if apierrors.IsConflict(err) {
		var live *metav1.PartialObjectMetadata
		if live, err = h.accounts.Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{}); err == nil {
			status, err = h.request(ctx, t, string(live.UID))
		}
	}
	if err != nil {
		return issued{}, denialOf(t, err)
	}
	return read(status, now)
}

// claims are the required claims of our own token.
type claims struct {
	ID         string `json:"jti"`
	IssuedAt   int64  `json:"iat"`
	Kubernetes struct {
		ServiceAccount struct {
			UID string `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// read takes the hub's answer. The token came over the hub's verified
// connection, so that its signature is not checked again.
func read(status *authenticationv1.TokenRequestStatus, now time.Time) (issued, error) {
	if status.Token == "" || status.ExpirationTimestamp.IsZero() {
		return issued{}, denial.New(denial.HubUnavailable, "the hub answered a TokenRequest without a token or its end")
	}
	token := issued{Token: Token{Value: status.Token, IssuedAt: now, Expires: status.ExpirationTimestamp.Time}}
	var c claims
	_ = jwk.UnverifiedClaims(status.Token, &c) // A token in another form is good too; we only learn less.
	token.ID, token.uid = c.ID, c.Kubernetes.ServiceAccount.UID
	if c.IssuedAt > 0 {
		token.IssuedAt = time.Unix(c.IssuedAt, 0)
	}
	return token, nil
}

// denialOf returns what an error of the hub means to the caller.
func denialOf(t policy.Target, err error) *denial.Error {
	account := "ServiceAccount " + t.Namespace + "/" + t.Name
	refused := &denial.Error{Reason: denial.HubUnavailable, RetryAfter: retryAfter(err), Err: err}
	switch {
	case apierrors.IsNotFound(err):
		refused.Reason, refused.Detail = denial.TargetMissing, "the hub has no "+account+"; create it, or change the rule that maps to it"
		refused.RetryAfter = denialLife
	case apierrors.IsForbidden(err):
		refused.Reason = denial.HubForbidden
		refused.Detail = fmt.Sprintf(
			"the hub does not let the authorizer mint for %s: a Role in namespace %s that allows create on serviceaccounts/token %q and get, list, watch on serviceaccounts is missing; print it with: kubectl ocm exchange rbac (%v)",
			account, t.Namespace, t.Name, err)
		refused.RetryAfter = denialLife
	case apierrors.IsConflict(err):
		refused.Detail = account + " is being recreated on the hub"
	case apierrors.IsUnauthorized(err):
		refused.Detail = fmt.Sprintf("the hub does not know the authorizer's own credential: %v", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		refused.Detail = fmt.Sprintf("the hub refuses the audiences or the life that the rule asks for %s: %v", account, err)
	case errors.Is(err, context.DeadlineExceeded):
		refused.Detail = "the hub did not answer a TokenRequest in time"
	default:
		refused.Detail = fmt.Sprintf("the hub made no token for %s: %v", account, err)
	}
	return refused
}

// retryAfter returns the delay that the hub requests, or a second.
func retryAfter(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code == http.StatusTooManyRequests {
		return 2 * time.Second
	}
	return time.Second
}
