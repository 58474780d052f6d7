package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/inventory"
)

// defaultLimit is the lifetime from which on a credential is worth naming: longer than what
// join asks for. What OCM and most signers give by default, a year, is.
const defaultLimit = install.DefaultCertificateSeconds * time.Second

// limit is the longest lifetime of a credential that no check names.
type limit time.Duration

func (l *limit) addTo(cmd *cobra.Command) {
	cmd.Flags().DurationVar((*time.Duration)(l), "max-lifetime", defaultLimit, "name credentials with a longer lifetime; 0 names none")
}

func (l limit) exceededBy(life time.Duration) bool {
	return l > 0 && life > time.Duration(l)+credential.Backdating
}

// result warns about the credentials that live longer than the limit.
func (l limit) result(long []string, try string) finding.Outcome {
	if len(long) > 0 {
		return finding.Caution(try, "longer than %s: %s", credential.Lifetime(time.Duration(l)), strings.Join(long, "; "))
	}
	return finding.Good("")
}

// lifetimes checks what the cluster and its add-ons hold.
func (c *clusterScope) lifetimes(context.Context) finding.Outcome {
	var long []string
	try := ""
	certificate, known := inventory.Certificate(c.env.Drivers, &c.cluster, c.requests)
	switch {
	case known && c.limit.exceededBy(certificate.Lifetime()):
		long = append(long, "the cluster's certificate ("+credential.Lifetime(certificate.Lifetime())+")")
		try = "on the managed cluster: " + c.env.Elsewhere("join --refresh --client-cert-expiration-seconds SECONDS")
	case !known && c.env.Drivers.Announced(&c.cluster) == nil && c.limit > 0:
		return finding.Caution("on the managed cluster: "+c.env.Elsewhere("check agent"), "the agent does not report how long its certificate lives")
	}
	for _, a := range c.addOns {
		for _, r := range a.Registrations {
			if c.limit.exceededBy(r.Lifetime()) {
				long = append(long, fmt.Sprintf("add-on %s (%s, %s)", r.AddOn, r.Driver, credential.Lifetime(r.Lifetime())))
				try = "on the managed cluster: " + c.env.Elsewhere("addon-auth set --driver token --expiration-seconds SECONDS")
			}
		}
	}
	return c.limit.result(long, try)
}

// lifetimes checks what the agent holds and requests.
func (a *agentScope) lifetimes(context.Context) finding.Outcome {
	var long []string
	try := a.env.Command("join", "--refresh", "--client-cert-expiration-seconds", "SECONDS")
	if a.limit.exceededBy(a.lifetime) {
		long = append(long, "the cluster's certificate ("+credential.Lifetime(a.lifetime)+")")
	}
	if life := (install.Agent{Klusterlet: &a.klusterlet}).AddOnTokenLifetime(); a.limit.exceededBy(life) {
		long = append(long, "tokens of add-ons ("+credential.Lifetime(life)+")")
		try = a.env.Command("addon-auth", "set", "--driver", "token", "--expiration-seconds", "SECONDS")
	}
	return a.limit.result(long, try)
}

// lifetimes checks the bootstrap tokens of the hub.
func (h *hubScope) lifetimes(ctx context.Context) finding.Outcome {
	infos, err := bootstrap.Tokens{Client: h.client, Clock: h.env.Clock}.List(ctx)
	if err != nil {
		return finding.Broken(err)
	}
	var long, ids []string
	for _, info := range infos {
		life := "never expires"
		if info.Expires != nil {
			if !h.limit.exceededBy(info.Expires.Sub(info.Created)) {
				continue
			}
			life = credential.Lifetime(info.Expires.Sub(info.Created))
		}
		if h.limit > 0 {
			long, ids = append(long, fmt.Sprintf("bootstrap token %s (%s)", info.ID, life)), append(ids, info.ID)
		}
	}
	return h.limit.result(long, h.env.Command(append([]string{"token", "revoke"}, ids...)...))
}
