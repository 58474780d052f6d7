package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
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

// addOnManager checks what makes the identities of add-ons with tokens.
func (h *hubScope) addOnManager(ctx context.Context) (status, string, string) {
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, clustermanager.ConditionHubAddOnManagerDegraded)
	if c != nil && c.Reason == clustermanager.ReasonAddOnManagementDisabled {
		return good("%s", c.Message)
	}
	return h.deployment(names.HubNamespace, names.HubAddOnManagerDeployment(names.ClusterManagerName))(ctx)
}

// addOns checks the add-ons of all clusters; one that is not well is no problem
// of the hub.
func (h *hubScope) addOns(ctx context.Context) (status, string, string) {
	if err := addons.RequireHub(h.env, h.client); err != nil {
		return good("this hub serves no add-ons")
	}
	list, err := addons.List(ctx, h.env, h.client, addons.Filter{})
	if err != nil {
		return broken(err)
	}
	var open []string
	for _, a := range list {
		if a.State != addons.Ready && a.Reason != addons.ReasonDeleting {
			open = append(open, a.Cluster+"/"+a.Name)
		}
	}
	if len(open) > 0 {
		return caution(h.env.Name+" addon-auth status", "%d of %d wait: %s", len(open), len(list), strings.Join(open[:min(len(open), 5)], ", "))
	}
	return good("%d add-ons", len(list))
}
