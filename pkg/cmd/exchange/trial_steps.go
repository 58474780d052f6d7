package exchange

import (
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
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// subjectLife is how long the minted subject token lives, the least that an API
// server grants.
const subjectLife = 10 * time.Minute

// subjectToken mints the subject token, with the audience that is demanded of it.
func (t *trial) subjectToken(ctx context.Context, k *known, managed *rest.Config) (string, error) {
	if t.audience == "" {
		var err error
		if t.audience, err = t.demanded(ctx, k, managed); err != nil {
			return "", err
		}
	}
	token, err := t.mint(ctx, managed, t.audience)
	if err != nil {
		return "", err
	}
	audience := "its own API server"
	if t.audience != "" {
		audience = t.audience
	}
	t.made.step("mint", nil, fmt.Sprintf("a token of %s for %s, at %s", t.account, audience, managed.Host))
	return token, nil
}

// demanded finds the audience that the configuration demands of the cluster's
// tokens: any other token of it identifies the cluster.
func (t *trial) demanded(ctx context.Context, k *known, managed *rest.Config) (string, error) {
	token, err := t.mint(ctx, managed, "")
	if err != nil {
		return "", err
	}
	nothing := func(context.Context, *explanation, mint.Request) (mint.Token, error) {
		return mint.Token{}, nil
	}
	probe := t.chain.explain(ctx, k, token, nothing) // Refused for its audience, most of the time.
	cluster, ok := k.config.Cluster(probe.Cluster)
	if !ok || len(cluster.Token.Audiences) == 0 {
		return "", nil // The chain reports what is wrong, if anything is.
	}
	return cluster.Token.Audiences[0], nil
}

func (t *trial) mint(ctx context.Context, managed *rest.Config, audience string) (string, error) {
	c, err := cli.NewClient(managed)
	if err != nil {
		return "", err
	}
	seconds := int64(subjectLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	account, _ := cli.NamespacedName(t.account)
	in := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err = c.SubResource("token").Create(ctx, in, request); apierrors.IsNotFound(err) {
		return "", cli.NotFoundf("name one that exists with --service-account", "the managed cluster at %s has no ServiceAccount %s", managed.Host, t.account)
	}
	return request.Status.Token, err
}

// exchange takes the token through what the token authorizer does.
func (t *trial) exchange(ctx context.Context, k *known, hub *rest.Config, token string) (string, error) {
	hub, refused := t.asAuthorizer(ctx, hub)
	if refused != nil {
		return "", refused
	}
	minter, err := mint.New(mint.Config{Hub: hub, Clock: t.env.Clock})
	if err != nil {
		return "", err
	}
	minted := t.made.Steps
	t.made = t.chain.explain(ctx, k, token, func(ctx context.Context, e *explanation, r mint.Request) (mint.Token, error) {
		issued, _, err := minter.Mint(ctx, r)
		if err != nil {
			return issued, err
		}
		e.step("exchange", nil, fmt.Sprintf("a token of %s/%s until %s",
			r.Target.Namespace, r.Target.Name, issued.Expires.UTC().Format(time.RFC3339)))
		return issued, nil
	})
	t.made.Steps = append(minted, t.made.Steps...)
	if t.made.err != nil {
		return "", t.refused(k)
	}
	return t.made.issued.Value, nil
}

func (t *trial) refused(k *known) error {
	return cli.Blockedf(t.chain.remedy(t.made, k.source), "the exchange is refused: %s: %s", t.made.Reason, t.made.Detail)
}

// asAuthorizer is the hub with the permissions of the token authorizer, if the
// configuration is that of one in the cluster.
func (t *trial) asAuthorizer(ctx context.Context, hub *rest.Config) (*rest.Config, error) {
	if t.chain.rules.File != "" {
		return hub, nil
	}
	namespace := names.HubNamespace
	c, err := cli.NewClient(hub)
	if err != nil {
		return nil, err
	}
	may := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "impersonate", Resource: "serviceaccounts", Namespace: namespace, Name: names.TokenAuthorizer,
		},
	}}
	if err := c.Create(ctx, may); err != nil {
		return nil, fmt.Errorf("ask whether you may act as the token authorizer: %w", err)
	}
	if !may.Status.Allowed {
		return nil, cli.Blockedf("ask a running token authorizer with --server, or use a context of the hub that has the right",
			"you may not act as ServiceAccount %s/%s of the hub, which exchanges", namespace, names.TokenAuthorizer)
	}
	hub = rest.CopyConfig(hub)
	hub.Impersonate.UserName = names.ServiceAccountUser(namespace, names.TokenAuthorizer) // The API server adds its groups.
	return hub, nil
}

// ask asks a running token authorizer, as a proxy would.
func (t *trial) ask(ctx context.Context, token string) (string, error) {
	client, err := verifying(t.caFile)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	address := strings.TrimSuffix(t.server, "/") + server.AuthzPath + "exchange-test"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", cli.Usagef("--server: %v", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return "", cli.Explain(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("read the answer of the token authorizer: %w", err)
	}
	issued, ok := strings.CutPrefix(response.Header.Get("Authorization"), "Bearer ")
	if response.StatusCode == http.StatusOK && ok {
		t.made.Allowed = true
		t.made.step("authorizer", nil, t.server+" allows it")
		return issued, nil
	}
	t.made.Status, t.made.Detail = response.StatusCode, strings.TrimSpace(string(body))
	t.made.Reason = response.Header.Get("X-Ocm-Reason") // With --reason-header.
	t.made.Steps = append(t.made.Steps, step{
		Check: "authorizer", Outcome: failed, Reason: t.made.Reason, Detail: response.Status + ": " + t.made.Detail,
	})
	return "", cli.Blockedf("its audit log has the reason; so has this command without --server, if the configuration is the same",
		"the token authorizer at %s answers %s: %s", t.server, response.Status, t.made.Detail)
}

// whoAmI asks the hub whose token came out.
func (t *trial) whoAmI(ctx context.Context, hub *rest.Config, issued string) error {
	config := rest.AnonymousClientConfig(hub)
	config.BearerToken = issued
	c, err := cli.NewClient(t.env.Kube.Guard(config))
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
	t.made.step("hub", nil, detail)
	return nil
}
