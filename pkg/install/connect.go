package install

import (
	"cmp"
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// webIdentityLife is how long the token lives that AWS is shown; it is the least
// that the API server gives out.
const webIdentityLife = 10 * time.Minute

// HubConnection returns the connection that the agent has to its hub, and what
// releases it. An agent with an AWS identity has no credential in its Secret; its
// ServiceAccount may assume a role, which a user who may request tokens of that
// ServiceAccount can do from here. AWS credentials of this
// machine are not used, because no role trusts them.
func (r *Runner) HubConnection(ctx context.Context, a Agent) (config *rest.Config, release func(), err error) {
	pair, ok := identity.OfKlusterlet(a.Klusterlet)
	if !ok || a.Hub.User.Exec == nil {
		config, err = a.HubConfig()
		return config, func() {}, err
	}
	hub, err := a.Hub.Contained(a.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("secret %s: %w", names.HubKubeconfigSecret, err)
	}
	role, token, err := r.webIdentity(ctx, a, pair)
	if err != nil {
		return nil, nil, err
	}
	registration := awsirsa.NewAgent(awsirsa.AgentConfig{
		Identity: driver.Identity{Cluster: a.Cluster(), Agent: string(a.Data[names.KeyAgentName])},
		Pair:     pair, Clock: r.Clock, Load: awsirsa.WebIdentity(role, token),
	})
	conn, err := registration.Open(hub, "", a.Data) //nolint:contextcheck // It sends no request.
	if err != nil {
		return nil, nil, fmt.Errorf("secret %s: %w", names.HubKubeconfigSecret, err)
	}
	return conn.Config(), conn.Close, nil
}

// webIdentity returns the role that the agent's ServiceAccount has, and a token with
// which AWS gives it out.
func (r *Runner) webIdentity(ctx context.Context, a Agent, pair identity.Pair) (role, token string, err error) {
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: a.Namespace(), Name: names.RegistrationAgentServiceAccount(a.Klusterlet.Name)}
	if err := r.Client.Get(ctx, key, account); err != nil {
		return "", "", fmt.Errorf("the agent's ServiceAccount %s: %w", key, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{awsirsa.WebIdentityAudience}, ExpirationSeconds: new(int64(webIdentityLife / time.Second)),
	}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", "", fmt.Errorf("token of the agent's ServiceAccount %s: %w", key, err)
	}
	return cmp.Or(account.Annotations[names.AnnotationAWSRole], pair.ManagedRole().String()), request.Status.Token, nil
}

// Resigned reports whether the hub has denied a cluster or lost it, as far as the
// bootstrap kubeconfig shows. A cloud provider that denies an identity does not say
// whose decision that is.
func (r *Runner) Resigned(ctx context.Context, cluster string, connect func(*rest.Config) (client.Client, error)) (bool, error) {
	bootstrap, err := StoredBootstrap(ctx, r.Client)
	if err != nil || bootstrap == nil {
		return false, err
	}
	contained, err := bootstrap.Contained(nil)
	if err != nil {
		return false, fmt.Errorf("secret %s: %w", names.BootstrapHubKubeconfigSecret, err)
	}
	config, err := contained.Config()
	if err != nil {
		return false, err
	}
	hub, err := connect(config)
	if err != nil {
		return false, err
	}
	known := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	err = hub.Get(ctx, client.ObjectKeyFromObject(known), known)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && !known.Spec.HubAcceptsClient, err
}
