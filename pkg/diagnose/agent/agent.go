package agent

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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// agent is an agent that is checked. The check that it is installed reads what later ones need.
type agent struct {
	diagnose.Scope

	klusterlet operatorv1.Klusterlet
	// other is the agent of another product.
	other *origin.Installation
	hub   kubeconfig.Hub
	// silent says that the hub did not answer from this machine.
	silent bool
	// credential is the expiry of the hub credential; zero while there is none.
	credential time.Time
	lifetime   time.Duration
	// limit is the longest lifetime of a credential that no check reports.
	limit diagnose.Limit
}

// Steps returns the checks of an agent, made on its managed cluster. They report credentials
// with a lifetime above limit.
func Steps(s diagnose.Scope, limit diagnose.Limit) []finding.Step {
	a := &agent{Scope: s, limit: limit}
	return []finding.Step{
		a.Answers(install.OldestManaged),
		{Name: "the agent is installed", Needed: true, Run: a.installed},
		{Name: "the agent's operator runs", Run: a.operator},
		{Name: "the agent's objects are applied", Run: func(context.Context) finding.Outcome {
			return diagnose.Condition(a.klusterlet.Status.Conditions, "Applied", "True", a.Kubectl("describe klusterlet", a.klusterlet.Name))
		}},
		{Name: "the agent runs", Run: func(ctx context.Context) finding.Outcome {
			return a.Deployment(a.namespace(), names.RegistrationAgentDeployment(a.klusterlet.Name))(ctx)
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

func (a *agent) namespace() string { return lookup.Namespace(&a.klusterlet) }

// fix returns the advice to run a command, or, if another product runs this agent, what manages
// that.
func (a *agent) fix(command string) string { return diagnose.Fix(a.other, command) }

func (a *agent) operator(ctx context.Context) finding.Outcome {
	return a.Operator(a.other, names.KlusterletOperator)(ctx)
}

func (a *agent) installed(ctx context.Context) finding.Outcome {
	var err error
	if a.other, err = origin.Agent(ctx, a.Client); err != nil {
		return finding.Broken(err)
	}
	err = a.Client.Get(ctx, client.ObjectKey{Name: names.KlusterletName}, &a.klusterlet)
	if lookup.Gone(err) {
		return finding.Bad(a.fix("run here the command that this prints on the hub: "+a.Elsewhere("get token")), "there is no Klusterlet: this cluster has not joined")
	}
	if err != nil {
		return finding.Broken(err)
	}
	if a.other != nil {
		return finding.Good("Klusterlet %s joins as %s and is of %s", a.klusterlet.Name, a.klusterlet.Spec.ClusterName, a.other)
	}
	return finding.Good("Klusterlet %s joins as %s", a.klusterlet.Name, a.klusterlet.Spec.ClusterName)
}

func (a *agent) secret(ctx context.Context, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: a.namespace(), Name: name}, &secret)
	return secret.Data, err
}

// unaccepted reports which key waits to be accepted.
func (a *agent) unaccepted(ctx context.Context) finding.Outcome {
	accept := []string{"accept", a.klusterlet.Spec.ClusterName}
	pending, err := a.secret(ctx, names.PendingCredentialSecret)
	if err == nil {
		if key, err := pemutil.ParseKey(pending[names.KeyTLSKey]); err == nil {
			if fingerprint, err := pemutil.KeyFingerprint(key.Public()); err == nil {
				accept = append(accept, "--fingerprint", fingerprint)
				return finding.Bad(a.OnHub(accept...), "none yet: the hub has not accepted the key %s", fingerprint)
			}
		}
	}
	return finding.Bad(a.OnHub(accept...), "none yet: the hub has not accepted the cluster")
}

// role returns the IAM role that a hub kubeconfig Secret names instead of a certificate; empty
// if there is none.
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

// issued checks the credential with which the agent connects to the hub.
func (a *agent) issued(ctx context.Context) finding.Outcome {
	data, err := a.secret(ctx, names.HubKubeconfigSecret)
	if arn := role(data); err == nil && arn != "" && len(data[names.KeyTLSCert]) == 0 {
		return finding.Good("the IAM role %s, until the hub revokes it", arn)
	}
	if lookup.Gone(err) || (err == nil && len(data[names.KeyTLSCert]) == 0) {
		return a.unaccepted(ctx)
	}
	if err != nil {
		return finding.Broken(err)
	}
	certs, err := pemutil.ParseCertificates(data[names.KeyTLSCert])
	if err != nil {
		return finding.Broken(err)
	}
	cert, now := certs[0], a.Clock.Now()
	a.credential = cert.NotAfter
	left, life := cert.NotAfter.Sub(now), cert.NotAfter.Sub(cert.NotBefore)
	a.lifetime = life
	text := fmt.Sprintf("%s until %s (lifetime %s)", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339), credential.Lifetime(life))
	switch {
	case left <= 0:
		return finding.Bad(a.fix(a.Command("join --refresh --hub-token-file FILE")), "expired: %s", text)
	case left < life/5:
		// The agent renews before a fifth is left.
		return finding.Caution(a.OnHub("check cluster", a.klusterlet.Spec.ClusterName), "its renewal is overdue: %s", text)
	}
	return finding.Good("%s", text)
}

// bootstrap checks the bootstrap kubeconfig. The agent needs it only while it has no
// credential, or once that is lost.
func (a *agent) bootstrap(ctx context.Context) finding.Outcome {
	refresh := a.fix(a.Command("join --refresh --hub-token-file FILE"))
	data, err := a.secret(ctx, names.BootstrapHubKubeconfigSecret)
	if err != nil {
		return finding.Bad(refresh, "the bootstrap kubeconfig is missing: %v", err)
	}
	if a.hub, err = kubeconfig.ParseHub(data[names.KeyKubeconfig]); err != nil {
		return finding.Bad(refresh, "the bootstrap kubeconfig: %v", err)
	}
	token, err := bootstrap.ParseToken(a.hub.User.Token)
	now := a.Clock.Now()
	if err == nil && !token.Expires.IsZero() && !now.Before(token.Expires) {
		text := fmt.Sprintf("%s; its bootstrap token expired at %s", a.hub.Cluster.Server, token.Expires.UTC().Format(time.RFC3339))
		if now.Before(a.credential) {
			return finding.Good("%s and is not needed any more", text)
		}
		return finding.Bad(refresh, "%s", text)
	}
	return finding.Good("%s", a.hub.Cluster.Server)
}

// reach verifies the hub from this machine. If the hub does not answer, that is a warning only,
// unless the agent reports it as well: the agent's Pods may be in another network.
func (a *agent) reach(ctx context.Context) finding.Outcome {
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

// unreached reports why the hub could not be verified. The hints of bootstrap errors name flags
// of join, so it has its own.
func (a *agent) unreached(err error) finding.Outcome {
	const here = "from this machine"
	problem, ok := errors.AsType[*bootstrap.Error](err)
	if !ok {
		return finding.Outcome{Status: finding.Warning, Message: here, Cause: err}
	}
	refresh := "if the hub has a new address or CA: " + a.fix(a.Command("join --refresh --hub-apiserver", a.hub.Cluster.Server, "--ca-file FILE"))
	lost := apimeta.IsStatusConditionTrue(a.klusterlet.Status.Conditions, names.ConditionHubConnectionDegraded)
	if problem.Kind == bootstrap.Unreachable && !lost {
		return finding.Caution("check the firewall and the proxy of this machine; "+refresh, here+": %v", problem)
	}
	return finding.Bad(refresh, here+": %v", problem)
}

// connected checks what the agent reports, which reports an outage after about half a minute.
func (a *agent) connected(context.Context) finding.Outcome {
	try := a.OnHub("check cluster", a.klusterlet.Spec.ClusterName)
	found := diagnose.Condition(a.klusterlet.Status.Conditions, "HubConnectionDegraded", "False", try)
	if found.Status == finding.OK && a.silent {
		return finding.Caution("run the check again in a minute; "+try,
			"the agent has not reported a problem, but the hub does not answer from this machine")
	}
	return found
}
