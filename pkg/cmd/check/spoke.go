package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

type agentScope struct {
	*scope
	klusterlet operatorv1.Klusterlet
	// other is what another product runs as the agent.
	other *origin.Installation
	hub   kubeconfig.Hub
	// silent says that the hub did not answer from this machine.
	silent bool
	// credential is when the hub credential ends; zero while there is none.
	credential time.Time
	lifetime   time.Duration
	limit      limit
}

func (a *agentScope) steps() []finding.Step {
	return []finding.Step{
		{Name: "the API server answers and is new enough", Needed: true, Run: a.kubernetes(install.OldestManaged)},
		{Name: "the agent is installed", Needed: true, Run: a.installed},
		{Name: "the agent's operator runs", Run: a.operator},
		{Name: "the agent's objects are applied", Run: func(context.Context) finding.Outcome {
			return condition(a.klusterlet.Status.Conditions, "Applied", "True", a.env.Kubectl("describe klusterlet", a.klusterlet.Name))
		}},
		{Name: "the agent runs", Run: func(ctx context.Context) finding.Outcome {
			return a.deployment(a.namespace(), names.RegistrationAgentDeployment(a.klusterlet.Name))(ctx)
		}},
		{Name: "the agent has a credential of the hub", Run: a.issued},
		{Name: "the agent knows a hub", Needed: true, Run: a.bootstrap},
		{Name: "the hub answers and is the right one", Run: a.reach},
		{Name: "the agent is connected to the hub", Run: a.connected},
		{Name: "the work agent runs", Run: a.workAgent},
		{Name: "the work agent has its permissions", Run: a.workPermissions},
		{Name: "the agent can register add-ons", Run: a.addOnDriver},
		{Name: "the credentials of add-ons are good", Run: a.addOnSecrets},
		{Name: "the keys of its tokens are published", Run: a.issuer},
		{Name: "its credentials are short-lived", Run: a.lifetimes},
	}
}

func (a *agentScope) namespace() string {
	if a.klusterlet.Spec.Namespace != "" {
		return a.klusterlet.Spec.Namespace
	}
	return names.AgentNamespace
}

// fix returns what to try: our command, unless another product runs this agent,
// which the command would break.
func (a *agentScope) fix(command string) string { return fix(a.other, command) }

func (a *agentScope) operator(ctx context.Context) finding.Outcome {
	return a.operatorOf(a.other, names.KlusterletOperator)(ctx)
}

func (a *agentScope) installed(ctx context.Context) finding.Outcome {
	var err error
	if a.other, err = origin.Agent(ctx, a.client); err != nil {
		return finding.Broken(err)
	}
	err = a.client.Get(ctx, client.ObjectKey{Name: names.KlusterletName}, &a.klusterlet)
	if install.Gone(err) {
		return finding.Bad(a.fix("run here the command that this prints on the hub: "+a.env.Elsewhere("get token")), "there is no Klusterlet: this cluster has not joined")
	}
	if err != nil {
		return finding.Broken(err)
	}
	if a.other != nil {
		return finding.Good("Klusterlet %s joins as %s and is of %s", a.klusterlet.Name, a.klusterlet.Spec.ClusterName, a.other)
	}
	return finding.Good("Klusterlet %s joins as %s", a.klusterlet.Name, a.klusterlet.Spec.ClusterName)
}

func (a *agentScope) secret(ctx context.Context, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace(), Name: name}, &secret)
	return secret.Data, err
}

// unaccepted says which key waits to be accepted.
func (a *agentScope) unaccepted(ctx context.Context) finding.Outcome {
	accept := []string{"accept", a.klusterlet.Spec.ClusterName}
	pending, err := a.secret(ctx, names.PendingCredentialSecret)
	if err == nil {
		if key, err := pemutil.ParseKey(pending[names.KeyTLSKey]); err == nil {
			if fingerprint, err := pemutil.KeyFingerprint(key.Public()); err == nil {
				accept = append(accept, "--fingerprint", fingerprint)
				return finding.Bad("on the hub: "+a.env.Elsewhere(accept...), "none yet: the hub has not accepted the key %s", fingerprint)
			}
		}
	}
	return finding.Bad("on the hub: "+a.env.Elsewhere(accept...), "none yet: the hub has not accepted the cluster")
}

// role is the IAM role that a hub kubeconfig Secret has in the place of a
// certificate; empty if there is none.
func role(data map[string][]byte) string {
	hub, err := kubeconfig.ParseHub(data[names.KeyKubeconfig])
	if err != nil || hub.User.Exec == nil {
		return ""
	}
	if i := slices.Index(hub.User.Exec.Args, "--role-arn"); i >= 0 && i+1 < len(hub.User.Exec.Args) {
		return hub.User.Exec.Args[i+1]
	}
	return ""
}

// issued looks at the credential that the agent works with.
func (a *agentScope) issued(ctx context.Context) finding.Outcome {
	data, err := a.secret(ctx, names.HubKubeconfigSecret)
	if arn := role(data); err == nil && arn != "" && len(data[names.KeyTLSCert]) == 0 {
		return finding.Good("the IAM role %s, until the hub revokes it", arn)
	}
	if install.Gone(err) || (err == nil && len(data[names.KeyTLSCert]) == 0) {
		return a.unaccepted(ctx)
	}
	if err != nil {
		return finding.Broken(err)
	}
	certs, err := pemutil.ParseCertificates(data[names.KeyTLSCert])
	if err != nil {
		return finding.Broken(err)
	}
	cert, now := certs[0], a.env.Clock.Now()
	a.credential = cert.NotAfter
	left, life := cert.NotAfter.Sub(now), cert.NotAfter.Sub(cert.NotBefore)
	a.lifetime = life
	text := fmt.Sprintf("%s until %s (lifetime %s)", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339), credential.Lifetime(life))
	switch {
	case left <= 0:
		return finding.Bad(a.fix(a.env.Command("join --refresh --hub-token-file FILE")), "expired: %s", text)
	case left < life/5:
		// The agent renews before a fifth is left.
		return finding.Caution("on the hub: "+a.env.Elsewhere("check cluster", a.klusterlet.Spec.ClusterName), "its renewal is overdue: %s", text)
	}
	return finding.Good("%s", text)
}

// bootstrap looks at what the agent joins with. It matters only while there is
// no credential, or once that is lost.
func (a *agentScope) bootstrap(ctx context.Context) finding.Outcome {
	refresh := a.fix(a.env.Command("join --refresh --hub-token-file FILE"))
	data, err := a.secret(ctx, names.BootstrapHubKubeconfigSecret)
	if err != nil {
		return finding.Bad(refresh, "the bootstrap kubeconfig is missing: %v", err)
	}
	if a.hub, err = kubeconfig.ParseHub(data[names.KeyKubeconfig]); err != nil {
		return finding.Bad(refresh, "the bootstrap kubeconfig: %v", err)
	}
	token, err := bootstrap.ParseToken(a.hub.User.Token)
	now := a.env.Clock.Now()
	if err == nil && !token.Expires.IsZero() && !now.Before(token.Expires) {
		text := fmt.Sprintf("%s; its bootstrap token expired at %s", a.hub.Cluster.Server, token.Expires.UTC().Format(time.RFC3339))
		if now.Before(a.credential) {
			return finding.Good("%s and is not needed any more", text)
		}
		return finding.Bad(refresh, "%s", text)
	}
	return finding.Good("%s", a.hub.Cluster.Server)
}

// reach verifies the hub from this machine. That it does not answer is a hint only, unless
// the agent says so as well: the agent's pods may see another network.
func (a *agentScope) reach(ctx context.Context) finding.Outcome {
	_, err := bootstrap.Discover(ctx, bootstrap.Endpoint{
		Server: a.hub.Cluster.Server, CA: a.hub.Cluster.CertificateAuthorityData, ProxyURL: a.hub.Cluster.ProxyURL,
	})
	if err != nil {
		a.silent = true
		return a.unreached(err)
	}
	if reason := bootstrap.LocalOnly(a.hub.Cluster.Server); reason != "" {
		return finding.Caution("join with an address that the agent's pods can reach", "from this machine; but %s", reason)
	}
	return finding.Good("from this machine")
}

// unreached says why the hub could not be verified. The hints of join name flags that this
// command lacks.
func (a *agentScope) unreached(err error) finding.Outcome {
	explained := cli.Explain(err)
	problem, ok := errors.AsType[*bootstrap.Error](err)
	if !ok {
		return finding.Caution(cli.HintOf(explained), "from this machine: %v", explained)
	}
	refresh := "if the hub has a new address or CA: " + a.fix(a.env.Command("join --refresh --hub-apiserver", a.hub.Cluster.Server, "--ca-file FILE"))
	lost := apimeta.IsStatusConditionTrue(a.klusterlet.Status.Conditions, names.ConditionHubConnectionDegraded)
	if problem.Kind == bootstrap.Unreachable && !lost {
		return finding.Caution("check the firewall and the proxy of this machine; "+refresh, "from this machine: %v", explained)
	}
	return finding.Bad(refresh, "from this machine: %v", explained)
}

// connected says what the agent reports. It reports an outage after about half
// a minute.
func (a *agentScope) connected(context.Context) finding.Outcome {
	try := "on the hub: " + a.env.Elsewhere("check cluster", a.klusterlet.Spec.ClusterName)
	found := condition(a.klusterlet.Status.Conditions, "HubConnectionDegraded", "False", try)
	if found.Status == finding.OK && a.silent {
		return finding.Caution("run the check again in a minute; "+try,
			"the agent has not reported a problem, but the hub does not answer from this machine")
	}
	return found
}
