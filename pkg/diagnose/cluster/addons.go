package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	registration "github.com/kubectl-ocm/kubectl-ocm/pkg/registration/inventory"
)

// registered checks that every add-on of the cluster has the credentials that it needs.
func (c *cluster) registered(ctx context.Context) finding.Outcome {
	if !c.ServesAddOns() {
		return finding.Good(diagnose.NoAddOns)
	}
	var err error
	if c.addOns, err = inventory.ListExplained(ctx, c.Client, inventory.Filter{Clusters: []string{c.name}}, c.Clock.Now(), c.Warn); err != nil {
		return finding.Broken(err)
	}
	var open []string
	count := 0
	for _, a := range c.addOns {
		for _, r := range a.Rows() {
			count++
			if r.State != inventory.Ready && r.State != inventory.Overdue && r.State != inventory.Expired && r.Reason != inventory.ReasonDeleting {
				open = append(open, fmt.Sprintf("%s: %s (%s)", strings.TrimSuffix(r.AddOn+"/"+r.SignerName, "/"), r.Message, r.Reason))
			}
		}
	}
	switch {
	case len(open) > 0:
		return finding.Bad(c.Command("addon-auth status --cluster", c.name), "%s", strings.Join(open, "\n"))
	case count == 0:
		return finding.Good("it has no add-ons")
	}
	return finding.Good("%d registrations", count)
}

// lasting checks that the agent renews the credentials of its add-ons in time.
func (c *cluster) lasting(context.Context) finding.Outcome {
	var late []string
	failed := false
	for _, a := range c.addOns {
		for _, r := range a.Registrations {
			if r.State == inventory.Overdue || r.State == inventory.Expired {
				late = append(late, r.AddOn+": "+r.Message)
				failed = failed || r.Reason != inventory.ReasonNotRenewed
			}
		}
	}
	try := c.OnManagedCluster("check agent")
	switch {
	case failed:
		return finding.Bad(try, "%s", strings.Join(late, "\n"))
	case len(late) > 0:
		return finding.Caution(try, "%s", strings.Join(late, "\n"))
	}
	return finding.Good("")
}

// lifetimes checks the credentials of the cluster and its add-ons.
func (c *cluster) lifetimes(context.Context) finding.Outcome {
	var long []string
	try := ""
	certificate, known := registration.Certificate(c.Drivers, &c.cluster, c.requests)
	switch {
	case known && c.limit.ExceededBy(certificate.Lifetime()):
		long = append(long, "the cluster's certificate ("+credential.Lifetime(certificate.Lifetime())+")")
		try = c.OnManagedCluster("join --refresh --client-cert-expiration-seconds SECONDS")
	case !known && c.Drivers.Announced(&c.cluster) == nil && c.limit > 0:
		return finding.Caution(c.OnManagedCluster("check agent"), "the agent does not report how long its certificate lives")
	}
	for _, a := range c.addOns {
		for _, r := range a.Registrations {
			if c.limit.ExceededBy(r.Lifetime()) {
				long = append(long, fmt.Sprintf("add-on %s (%s, %s)", r.AddOn, r.Driver, credential.Lifetime(r.Lifetime())))
				try = c.OnManagedCluster("addon-auth set --driver token --expiration-seconds SECONDS")
			}
		}
	}
	return c.limit.Outcome(long, try)
}
