package agent

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	installed "github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// lifetimes checks the credential that the agent has, and those that it requests for add-ons.
func (a *agent) lifetimes(context.Context) finding.Outcome {
	var long []string
	try := a.Command("join", "--refresh", "--client-cert-expiration-seconds", "SECONDS")
	if a.limit.ExceededBy(a.lifetime) {
		long = append(long, "the cluster's certificate ("+credential.Lifetime(a.lifetime)+")")
	}
	if life := (installed.Installed{Klusterlet: &a.klusterlet}).AddOnTokenLifetime(); a.limit.ExceededBy(life) {
		long = append(long, "tokens of add-ons ("+credential.Lifetime(life)+")")
		try = a.Command("addon-auth", "set", "--driver", "token", "--expiration-seconds", "SECONDS")
	}
	return a.limit.Outcome(long, try)
}

// issuer checks whether the agent publishes the keys of the cluster's tokens, if join or issuer
// publish requested that.
func (a *agent) issuer(context.Context) finding.Outcome {
	if a.klusterlet.Annotations[names.AnnotationPublishIssuer] != "true" {
		return finding.Good("no request was made")
	}
	return diagnose.Condition(a.klusterlet.Status.Conditions, names.ConditionIssuerPublished, metav1.ConditionTrue,
		a.Kubectl("-n", a.namespace(), "get events"))
}
