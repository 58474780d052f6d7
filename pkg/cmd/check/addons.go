package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
)

// soon is when a credential that ends should have been renewed: the shortest
// that there is lives ten minutes, of which the last two are for retries.
const soon = 2 * time.Minute

// registered checks that every add-on of the cluster has what it asks for.
func (c *clusterScope) registered(ctx context.Context) (status, string, string) {
	if err := addons.RequireHub(c.env, c.client); err != nil {
		return good("this hub serves no add-ons")
	}
	var err error
	if c.addOns, err = addons.List(ctx, c.env, c.client, addons.Filter{Clusters: []string{c.name}}); err != nil {
		return broken(err)
	}
	var open []string
	count := 0
	for _, a := range c.addOns {
		for _, r := range a.Rows() {
			count++
			if r.State != addons.Ready && r.State != addons.Expired && r.Reason != addons.ReasonDeleting {
				open = append(open, fmt.Sprintf("%s: %s (%s)", strings.TrimSuffix(r.AddOn+"/"+r.SignerName, "/"), r.Message, r.Reason))
			}
		}
	}
	switch {
	case len(open) > 0:
		return bad(c.env.Name+" addon-auth status --cluster "+c.name, "%s", strings.Join(open, "\n"))
	case count == 0:
		return good("it has no add-ons")
	}
	return good("%d registrations", count)
}

// lasting checks that no add-on's credential has ended or is about to.
func (c *clusterScope) lasting(context.Context) (status, string, string) {
	now := c.env.Clock.Now()
	var ending []string
	for _, a := range c.addOns {
		for _, r := range a.Registrations {
			if r.Expires == nil || now.Add(soon).Before(*r.Expires) {
				continue
			}
			ending = append(ending, fmt.Sprintf("%s ends at %s", r.AddOn, r.Expires.UTC().Format(time.RFC3339)))
		}
	}
	if len(ending) > 0 {
		return bad("on the managed cluster: "+c.env.Name+" check spoke", "%s", strings.Join(ending, "\n"))
	}
	return good("")
}
