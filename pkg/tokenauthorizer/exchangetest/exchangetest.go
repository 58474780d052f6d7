package exchangetest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/explanation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

const (
	// subjectLife is the lifetime of the subject token, the shortest that an API server
	// grants.
	subjectLife = 10 * time.Minute
	// patience bounds the answer of a running token authorizer.
	patience = 10 * time.Second
)

// Connect returns a client of an API server.
type Connect func(*rest.Config) (client.WithWatch, error)

// Test is the test of one exchange.
type Test struct {
	// Trace has the steps so far.
	Trace *explanation.Explanation

	account types.NamespacedName
	managed *rest.Config
	hub     *rest.Config
	connect Connect
}

// New returns the test of an exchange for a ServiceAccount of the managed cluster.
func New(account types.NamespacedName, managed, hub *rest.Config, connect Connect) *Test {
	return &Test{Trace: &explanation.Explanation{}, account: account, managed: managed, hub: hub, connect: connect}
}

// SubjectToken requests a token of the ServiceAccount, with an audience or without one for
// that of its own API server.
func (t *Test) SubjectToken(ctx context.Context, audience string) (string, error) {
	token, err := t.request(ctx, audience)
	if err != nil {
		return "", err
	}
	t.Trace.Record("mint", nil, fmt.Sprintf("a token of %s for %s, at %s", t.account, cmp.Or(audience, "its own API server"), t.managed.Host))
	return token, nil
}

// Audience returns the audience that the rules of a chain require of the cluster's tokens, or
// "": then the chain reports what is wrong, if anything is.
func (t *Test) Audience(ctx context.Context, chain *explanation.Chain) (string, error) {
	token, err := t.request(ctx, "")
	if err != nil {
		return "", err
	}
	return chain.Audience(ctx, token), nil
}

func (t *Test) request(ctx context.Context, audience string) (string, error) {
	c, err := t.connect(t.managed)
	if err != nil {
		return "", err
	}
	seconds := int64(subjectLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	in := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.account.Namespace, Name: t.account.Name}}
	if err = c.SubResource("token").Create(ctx, in, request); apierrors.IsNotFound(err) {
		return "", &NoAccountError{Host: t.managed.Host, Account: t.account}
	}
	return request.Status.Token, err
}

// Exchange exchanges a token with a chain. For rules on the hub it acts as the ServiceAccount
// of the token authorizer. The error about a denial is a *DeniedError.
func (t *Test) Exchange(ctx context.Context, chain *explanation.Chain, clk clock.WithTicker, token string) (string, error) {
	hub := t.hub
	if chain.Store().Hub() != nil {
		var err error
		if hub, err = t.asAuthorizer(ctx); err != nil {
			return "", err
		}
	}
	minter, err := mint.New(mint.Config{Hub: hub, Clock: clk})
	if err != nil {
		return "", err
	}
	earlier := t.Trace.Steps
	t.Trace = chain.ExplainWith(ctx, token, func(ctx context.Context, e *explanation.Explanation, r mint.Request) (mint.Token, error) {
		issued, _, err := minter.Mint(ctx, r)
		if err != nil {
			return issued, err
		}
		e.Record("exchange", nil, fmt.Sprintf("a token of %s/%s until %s",
			r.Target.Namespace, r.Target.Name, issued.Expires.UTC().Format(time.RFC3339)))
		return issued, nil
	})
	t.Trace.Steps = append(earlier, t.Trace.Steps...)
	if t.Trace.Err() != nil {
		return "", &DeniedError{Reason: t.Trace.Reason, Detail: t.Trace.Detail}
	}
	return t.Trace.Token().Value, nil
}

// asAuthorizer returns a connection to the hub with the permissions of the token authorizer.
func (t *Test) asAuthorizer(ctx context.Context) (*rest.Config, error) {
	self := rulestore.Self()
	c, err := t.connect(t.hub)
	if err != nil {
		return nil, err
	}
	may := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "impersonate", Resource: "serviceaccounts", Namespace: self.Namespace, Name: self.Name,
		},
	}}
	if err := c.Create(ctx, may); err != nil {
		return nil, fmt.Errorf("ask whether you may act as the token authorizer: %w", err)
	}
	if !may.Status.Allowed {
		return nil, &ImpersonationError{}
	}
	hub := rest.CopyConfig(t.hub)
	hub.Impersonate.UserName = names.ServiceAccountUser(self.Namespace, self.Name) // The API server adds its groups.
	return hub, nil
}

// Ask has a running token authorizer exchange a token, as a proxy does. The error about a
// denial is an *AnswerError.
func (t *Test) Ask(ctx context.Context, authorizer string, verifying *http.Client, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	address := strings.TrimSuffix(authorizer, "/") + server.AuthzPath + "exchange-test"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", &AddressError{Cause: err}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := verifying.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("read the answer of the token authorizer: %w", err)
	}
	issued, ok := strings.CutPrefix(response.Header.Get("Authorization"), "Bearer ")
	if response.StatusCode == http.StatusOK && ok {
		t.Trace.Allowed = true
		t.Trace.Record("authorizer", nil, authorizer+" allows it")
		return issued, nil
	}
	t.Trace.Status, t.Trace.Detail = response.StatusCode, strings.TrimSpace(string(body))
	t.Trace.Reason = response.Header.Get("X-Ocm-Reason") // With --reason-header.
	t.Trace.Steps = append(t.Trace.Steps, explanation.Step{
		Check: "authorizer", Outcome: explanation.Failed, Reason: t.Trace.Reason, Detail: response.Status + ": " + t.Trace.Detail,
	})
	return "", &AnswerError{Server: authorizer, Status: response.Status, Detail: t.Trace.Detail}
}

// WhoAmI asks the hub for the user of an issued token. The connection has no other credential.
func (t *Test) WhoAmI(ctx context.Context, anonymous *rest.Config, issued string) error {
	config := rest.CopyConfig(anonymous)
	config.BearerToken = issued
	c, err := t.connect(config)
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return fmt.Errorf("ask the hub whose token came out: %w", err)
	}
	user := review.Status.UserInfo
	detail := "it takes the token for " + user.Username
	if ids := user.Extra["authentication.kubernetes.io/credential-id"]; len(ids) > 0 {
		detail += ", " + ids[0]
	}
	t.Trace.Record("hub", nil, detail)
	return nil
}
