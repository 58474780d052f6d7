package setup

import (
	"cmp"
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

var _ driver.Connector = Setup{}

// webIdentityLife is the lifetime of the token that AWS is shown; the API server issues
// none that is shorter.
const webIdentityLife = 10 * time.Minute

// HubID implements driver.AgentSetup: the ARN of the hub's EKS cluster.
func (Setup) HubID(settings operatorv1.RegistrationDriver) string {
	pair, err := identity.PairOf(settings)
	if err != nil {
		return ""
	}
	return pair.Hub.String()
}

// Connect implements driver.Connector. The agent's ServiceAccount may assume a role, which
// a user who may request tokens of that ServiceAccount can do from here. AWS credentials of
// this machine are not used, because no role trusts them.
func (Setup) Connect(ctx context.Context, managed client.Client, a driver.Installed) (driver.Connection, error) {
	pair, err := identity.PairOf(a.Settings)
	if err != nil || a.Hub.User.Exec == nil {
		return nil, nil //nolint:nilerr,nilnil // The kubeconfig is from another driver.
	}
	role, token, err := webIdentity(ctx, managed, a.Account, pair)
	if err != nil {
		return nil, err
	}
	agent := awsirsa.NewAgent(awsirsa.AgentConfig{
		Identity: a.Identity, Pair: pair, Clock: clock.RealClock{}, Load: awsirsa.WebIdentity(role, token),
	})
	return agent.Open(a.Hub, "", a.Data) //nolint:contextcheck // It sends no request.
}

// webIdentity returns the role that the agent's ServiceAccount has, and a token for which
// AWS issues credentials of it.
func webIdentity(ctx context.Context, managed client.Client, key client.ObjectKey, pair identity.Pair) (role, token string, err error) {
	account := &corev1.ServiceAccount{}
	if err := managed.Get(ctx, key, account); err != nil {
		return "", "", fmt.Errorf("the agent's ServiceAccount %s: %w", key, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{awsirsa.WebIdentityAudience}, ExpirationSeconds: new(int64(webIdentityLife / time.Second)),
	}}
	if err := managed.SubResource("token").Create(ctx, account, request); err != nil {
		return "", "", fmt.Errorf("token of the agent's ServiceAccount %s: %w", key, err)
	}
	return cmp.Or(account.Annotations[identity.AnnotationRole], pair.ManagedRole().String()), request.Status.Token, nil
}
