package check

import (
	"context"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

type clusterScope struct {
	*scope
	name     string
	cluster  clusterv1.ManagedCluster
	requests []approval.Request
	addOns   []addons.AddOn
	limit    limit
}

func (c *clusterScope) steps(ctx context.Context) []step {
	var announced []step
	issued := []step{{"a credential was issued", false, c.issued}}
	if c.byAWS(ctx) {
		announced = []step{{"its EKS cluster is announced", false, c.announced}}
		issued = []step{
			{"the hub granted its AWS identity", false, c.granted},
			{"its IAM role is mapped to its group", false, c.mapped},
		}
	}
	return slices.Concat([]step{
		{"the hub knows the cluster", true, c.known},
		{"no other cluster requests its name", false, c.unique},
	}, announced, []step{
		{"the cluster is accepted", true, c.accepted},
		{"the hub has prepared its namespace", true, c.prepared},
	}, issued, []step{
		{"the agent has joined", true, c.joined},
		{"the agent renews its lease", false, c.lease},
		{"the clocks agree", false, c.clocks},
		{"the cluster is available", false, c.available},
		{"its credential does not expire soon", false, c.expiry},
		{"its add-ons have credentials", false, c.registered},
		{"their credentials do not expire soon", false, c.lasting},
		{"the keys of its tokens are trusted", false, c.issuer},
		{"its credentials are short-lived", false, c.lifetimes},
	})
}

func (c *clusterScope) known(ctx context.Context) (status, string, string) {
	err := c.client.Get(ctx, client.ObjectKey{Name: c.name}, &c.cluster)
	if install.Gone(err) {
		return bad("on the managed cluster: "+c.env.Elsewhere("check spoke"), "there is no ManagedCluster %s: its agent has not reached the hub", c.name)
	}
	if err != nil {
		return broken(err)
	}
	if c.requests, err = approval.Requests(ctx, c.client, c.name); err != nil {
		return broken(err)
	}
	if !c.cluster.DeletionTimestamp.IsZero() {
		return bad(c.env.Command("unjoin", c.name, "--side=hub --force --wait"),
			"it is being deleted and waits for %s", strings.Join(c.cluster.Finalizers, ", "))
	}
	return good("")
}

func (c *clusterScope) unique(context.Context) (status, string, string) {
	var claims []string
	open := false
	for _, r := range c.requests {
		claim := r.Requester + " with key " + r.Fingerprint
		if r.State != approval.Denied && r.State != approval.Failed && !r.Renewal && r.Rejection == "" && !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
		open = open || r.State == approval.Pending
	}
	// Several issued ones are the past of a cluster that joined again.
	if open && len(claims) > 1 {
		return bad("compare with what join printed, then: "+c.env.Command("accept", c.name, "--fingerprint KEY"), "claimed by %s", strings.Join(claims, "; "))
	}
	return good("%s", strings.Join(claims, "; "))
}

func (c *clusterScope) accepted(context.Context) (status, string, string) {
	if !c.cluster.Spec.HubAcceptsClient {
		return bad(c.env.Command("accept", c.name), "hubAcceptsClient is false")
	}
	return good("")
}

func (c *clusterScope) prepared(ctx context.Context) (status, string, string) {
	st, message, try := condition(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, c.env.Command("check hub"))
	if st != ok {
		return st, message, try
	}
	var namespace corev1.Namespace
	if err := c.client.Get(ctx, client.ObjectKey{Name: c.name}, &namespace); err != nil {
		return bad(c.env.Command("check hub"), "namespace %s: %v", c.name, err)
	}
	return good("%s", message)
}

func (c *clusterScope) issued(context.Context) (status, string, string) {
	for _, r := range slices.Backward(c.requests) {
		switch {
		case r.State == approval.Issued:
			return good("request %s of %s", r.Name, r.Requester)
		case r.Rejection != "":
			return bad("the agent on the managed cluster is not an OCM agent, or the request was tampered with", "request %s can never be approved: %s", r.Name, r.Rejection)
		case r.State == approval.Approved:
			return bad(c.env.Command("check hub"), "request %s is approved, not issued", r.Name)
		case r.State == approval.Pending:
			return bad(c.env.Command("accept", c.name), "request %s waits to be approved", r.Name)
		}
	}
	if apimeta.IsStatusConditionTrue(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined) {
		return good("some time ago")
	}
	return bad("on the managed cluster: "+c.env.Elsewhere("check spoke"), "the agent has not asked for one")
}

func (c *clusterScope) joined(context.Context) (status, string, string) {
	return condition(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue,
		"on the managed cluster: "+c.env.Elsewhere("check spoke"))
}

// leases that were renewed longer ago than this many durations count as lost.
const graceFactor = 5

func (c *clusterScope) lease(ctx context.Context) (status, string, string) {
	var lease coordinationv1.Lease
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.name, Name: names.ManagedClusterLease}, &lease); err != nil {
		return bad(c.env.Command("check hub"), "%v", err)
	}
	if lease.Spec.RenewTime == nil {
		return bad("on the managed cluster: "+c.env.Elsewhere("check spoke"), "it was never renewed")
	}
	grace := time.Duration(max(c.cluster.Spec.LeaseDurationSeconds, 1)) * time.Second * graceFactor
	ago := c.env.Clock.Now().Sub(lease.Spec.RenewTime.Time).Round(time.Second)
	if ago > grace {
		return bad("on the managed cluster: "+c.env.Elsewhere("check spoke"), "last renewed %s ago; %s is allowed", ago, grace)
	}
	return good("%s ago", ago)
}

func (c *clusterScope) clocks(context.Context) (status, string, string) {
	synced := apimeta.FindStatusCondition(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced)
	if synced != nil && synced.Status == metav1.ConditionFalse {
		return bad("synchronize the clocks of the hub and the managed cluster", "%s", synced.Message)
	}
	return good("")
}

func (c *clusterScope) available(context.Context) (status, string, string) {
	return condition(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"on the managed cluster: "+c.env.Elsewhere("check spoke"))
}

func (c *clusterScope) expiry(context.Context) (status, string, string) {
	expires, known := fleet.CredentialExpiry(c.cluster.Status.Conditions)
	if !known {
		return good("the agent has not reported when it ends")
	}
	now := c.env.Clock.Now()
	if !now.Before(expires) {
		return bad("on the managed cluster: "+c.env.Elsewhere("join --refresh --hub-token-file FILE"), "it expired at %s", expires.UTC().Format(time.RFC3339))
	}
	return good("until %s", expires.UTC().Format(time.RFC3339))
}
