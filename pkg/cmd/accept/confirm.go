package accept

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/approver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

// pending returns the clusters that wait for a decision, and prints the key or the
// identity of each.
func (o *options) pending(ctx context.Context, r *approver.Runner) ([]string, error) {
	requests, err := approval.Requests(ctx, r.Client, "")
	if err != nil {
		return nil, err
	}
	var waiting []string
	for _, req := range requests {
		if req.State == approval.Pending && req.Rejection == "" && !req.Renewal {
			waiting = append(waiting, req.Cluster)
			o.env.Say("%s: %s", req.Cluster, req.Describe(o.env.Clock.Now()))
		}
	}
	identified, err := r.PendingIdentities(ctx)
	if err != nil {
		return nil, err
	}
	waiting = append(waiting, identified...)
	slices.Sort(waiting)
	waiting = slices.Compact(waiting)
	if err := introduce(ctx, r, waiting); err != nil {
		return nil, err
	}
	if len(waiting) == 0 {
		o.env.Say("No cluster waits to be accepted.")
	}
	return waiting, nil
}

// introduce prints what the clusters bring that wait for a decision.
func introduce(ctx context.Context, r *approver.Runner, waiting []string) error {
	if len(waiting) == 0 {
		return nil
	}
	var list clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("clusters: %w", err)
	}
	for i := range list.Items {
		if slices.Contains(waiting, list.Items[i].Name) {
			r.Introduce(&list.Items[i])
		}
	}
	return nil
}

// confirm asks before clusters are accepted that were not named, and before one
// that has joined is denied or changes its driver. Naming a cluster is confirmation
// enough for accepting it.
func (o *options) confirm(ctx context.Context, r *approver.Runner) error {
	verb, loss := "Accept", ""
	switch {
	case o.choice.Deny:
		verb = "Deny"
		joined, err := o.joined(ctx, r.Client)
		if err != nil {
			return err
		}
		if len(joined) > 0 {
			loss = fmt.Sprintf(" The hub withdraws what it granted to %s: agents and add-ons there lose their access.", strings.Join(joined, ", "))
			works, err := o.deployed(ctx, r.Client, joined)
			if err != nil {
				return err
			}
			loss += works
		}
	case o.choice.Register.Driver != "":
		changes, err := r.Changes(ctx, o.clusters[0])
		if err != nil {
			return err
		}
		if changes {
			loss = fmt.Sprintf(" It is to register with %s instead: the credential that its agent has now loses its access.", o.choice.Register.Driver)
		}
	}
	if len(o.clusters) == 0 || !o.all && loss == "" {
		return nil
	}
	return o.env.Confirm(o.yes, fmt.Sprintf("%s %s?%s", verb, strings.Join(o.clusters, ", "), loss))
}

// deployed says what becomes of the ManifestWorks of clusters that are denied.
func (o *options) deployed(ctx context.Context, c client.Client, clusters []string) (string, error) {
	var kept []string
	for _, cluster := range clusters {
		works, err := fleet.CountWorks(ctx, c, cluster)
		if err != nil {
			return "", fmt.Errorf("ManifestWorks of %s: %w", cluster, err)
		}
		if works != fleet.NoWorks {
			kept = append(kept, works+" on "+cluster)
		}
	}
	if len(kept) == 0 {
		return "", nil
	}
	return fmt.Sprintf(" Of %s the resources stay, and are not updated, repaired or deleted until the hub accepts the cluster again.", excerpt.List(kept, ", ")), nil
}

// joined returns those of the chosen clusters that have joined and would be
// denied. With a fingerprint only a request is.
func (o *options) joined(ctx context.Context, c client.Client) ([]string, error) {
	if o.choice.Fingerprint != "" {
		return nil, nil
	}
	var joined []string
	for _, name := range o.clusters {
		cluster := &clusterv1.ManagedCluster{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		if cluster.Spec.HubAcceptsClient && apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined) {
			joined = append(joined, name)
		}
	}
	return joined, nil
}
