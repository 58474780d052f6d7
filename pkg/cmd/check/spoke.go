package check

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type agentScope struct {
	*scope
	klusterlet operatorv1.Klusterlet
	hub        kubeconfig.Hub
	// credential is when the hub credential ends; zero while there is none.
	credential time.Time
}

func (a *agentScope) steps() []step {
	return []step{
		{"the API server answers and is new enough", true, a.kubernetes("1.22.0")},
		{"the agent is installed", true, a.installed},
		{"the agent's operator runs", false, a.deployment(names.OperatorNamespace, names.KlusterletOperator)},
		{"the agent's objects are applied", false, func(context.Context) (status, string, string) {
			return condition(a.klusterlet.Status.Conditions, "Applied", "True", "kubectl describe klusterlet "+a.klusterlet.Name)
		}},
		{"the agent runs", false, func(ctx context.Context) (status, string, string) {
			return a.deployment(a.namespace(), names.RegistrationAgentDeployment(a.klusterlet.Name))(ctx)
		}},
		{"the agent has a credential of the hub", false, a.issued},
		{"the agent knows a hub", true, a.bootstrap},
		{"the hub answers and is the right one", false, a.reach},
		{"the agent is connected to the hub", false, a.connected},
		{"the agent can register add-ons", false, a.addOnDriver},
		{"the credentials of add-ons are good", false, a.addOnSecrets},
		{"the keys of its tokens are published", false, a.issuer},
	}
}

func (a *agentScope) namespace() string {
	if a.klusterlet.Spec.Namespace != "" {
		return a.klusterlet.Spec.Namespace
	}
	return names.AgentNamespace
}

func (a *agentScope) installed(ctx context.Context) (status, string, string) {
	err := a.client.Get(ctx, client.ObjectKey{Name: names.KlusterletName}, &a.klusterlet)
	if install.Gone(err) {
		return bad("run the join command of the hub: "+a.env.Name+" get token", "there is no Klusterlet: this cluster has not joined")
	}
	if err != nil {
		return broken(err)
	}
	return good("Klusterlet %s joins as %s", a.klusterlet.Name, a.klusterlet.Spec.ClusterName)
}

func (a *agentScope) secret(ctx context.Context, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace(), Name: name}, &secret)
	return secret.Data, err
}

// issued looks at the certificate that the agent works with.
func (a *agentScope) issued(ctx context.Context) (status, string, string) {
	data, err := a.secret(ctx, names.HubKubeconfigSecret)
	if install.Gone(err) || (err == nil && len(data[names.KeyTLSCert]) == 0) {
		return bad(fmt.Sprintf("on the hub: %s accept %s", a.env.Name, a.klusterlet.Spec.ClusterName), "none yet: the hub has not accepted the cluster")
	}
	if err != nil {
		return broken(err)
	}
	certs, err := pemutil.ParseCertificates(data[names.KeyTLSCert])
	if err != nil {
		return broken(err)
	}
	cert, now := certs[0], a.env.Clock.Now()
	a.credential = cert.NotAfter
	left, life := cert.NotAfter.Sub(now), cert.NotAfter.Sub(cert.NotBefore)
	text := fmt.Sprintf("%s until %s", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
	switch {
	case left <= 0:
		return bad("bring a new token with: "+a.env.Name+" join --refresh", "expired: %s", text)
	case left < life/5:
		// The agent renews before a fifth is left.
		return caution(a.env.Name+" check cluster "+a.klusterlet.Spec.ClusterName+" on the hub", "its renewal is overdue: %s", text)
	}
	return good("%s", text)
}

// bootstrap looks at what the agent joins with. It matters only while there is
// no credential, or once that is lost.
func (a *agentScope) bootstrap(ctx context.Context) (status, string, string) {
	refresh := a.env.Name + " join --refresh with a new token"
	data, err := a.secret(ctx, names.BootstrapHubKubeconfigSecret)
	if err != nil {
		return bad(refresh, "the bootstrap kubeconfig is missing: %v", err)
	}
	if a.hub, err = kubeconfig.ParseHub(data[names.KeyKubeconfig]); err != nil {
		return bad(refresh, "the bootstrap kubeconfig: %v", err)
	}
	token, err := bootstrap.ParseToken(a.hub.User.Token)
	now := a.env.Clock.Now()
	if err == nil && !token.Expires.IsZero() && !now.Before(token.Expires) {
		text := fmt.Sprintf("%s; its join token expired at %s", a.hub.Cluster.Server, token.Expires.UTC().Format(time.RFC3339))
		if now.Before(a.credential) {
			return good("%s and is not needed any more", text)
		}
		return bad(refresh, "%s", text)
	}
	return good("%s", a.hub.Cluster.Server)
}

// reach verifies the hub from this machine, which is a hint only: the agent's
// pods may see another network.
func (a *agentScope) reach(ctx context.Context) (status, string, string) {
	_, err := bootstrap.Discover(ctx, bootstrap.Endpoint{
		Server: a.hub.Cluster.Server, CA: a.hub.Cluster.CertificateAuthorityData, ProxyURL: a.hub.Cluster.ProxyURL,
	})
	if err != nil {
		explained := cli.Explain(err)
		return caution(cli.HintOf(explained), "from this machine: %v", explained)
	}
	if reason := bootstrap.LocalOnly(a.hub.Cluster.Server); reason != "" {
		return caution("join with an address that the agent's pods can reach", "from this machine; but %s", reason)
	}
	return good("from this machine")
}

func (a *agentScope) connected(context.Context) (status, string, string) {
	return condition(a.klusterlet.Status.Conditions, "HubConnectionDegraded", "False",
		fmt.Sprintf("on the hub: %s check cluster %s", a.env.Name, a.klusterlet.Spec.ClusterName))
}
