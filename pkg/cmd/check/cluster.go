package check

import (
	"context"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addoninventory "github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/inventory"
)

type clusterScope struct {
	*scope
	name     string
	cluster  clusterv1.ManagedCluster
	requests []approval.Request
	addOns   []addoninventory.AddOn
	limit    limit
}

func (c *clusterScope) steps(ctx context.Context) []finding.Step {
	var announced []finding.Step
	issued := []finding.Step{
		{Name: "a credential was issued", Run: c.issued},
		{Name: "one agent has its permissions", Run: c.recorded},
	}
	if by := c.identifier(ctx); by != nil {
		announced, issued = by.CheckCluster(c.driverScope(nil), &c.cluster)
	}
	return slices.Concat([]finding.Step{
		{Name: "the hub knows the cluster", Needed: true, Run: c.known},
		{Name: "no other cluster requests its name", Run: c.unique},
	}, announced, []finding.Step{
		{Name: "the cluster is accepted", Needed: true, Run: c.accepted},
		{Name: "the hub has prepared its namespace", Needed: true, Run: c.prepared},
	}, issued, []finding.Step{
		{Name: "the agent has joined", Needed: true, Run: c.reported(clusterv1.ManagedClusterConditionJoined)},
		{Name: "the agent renews its lease", Run: c.lease},
		{Name: "the clocks agree", Run: c.clocks},
		{Name: "the cluster is available", Run: c.reported(clusterv1.ManagedClusterConditionAvailable)},
		{Name: "its credential is renewed in time", Run: c.expiry},
		{Name: "its add-ons have credentials", Run: c.registered},
		{Name: "their credentials are renewed in time", Run: c.lasting},
		{Name: "the keys of its tokens are trusted", Run: c.issuer},
		{Name: "its credentials are short-lived", Run: c.lifetimes},
	})
}

// identifier returns the driver that identifies the cluster, nil if it registers with a
// certificate. The first step reports what is wrong with reading it.
func (c *clusterScope) identifier(ctx context.Context) driver.Identifier {
	var cluster clusterv1.ManagedCluster
	if err := c.client.Get(ctx, client.ObjectKey{Name: c.name}, &cluster); err != nil {
		return nil
	}
	return c.env.Drivers.Announced(&cluster)
}

func (c *clusterScope) known(ctx context.Context) finding.Outcome {
	err := c.client.Get(ctx, client.ObjectKey{Name: c.name}, &c.cluster)
	if lookup.Gone(err) {
		return finding.Bad(fleet.NearCluster(ctx, c.client, c.name, "on the managed cluster: "+c.env.Elsewhere("check agent")), "there is no ManagedCluster %s: its agent has not reached the hub", c.name)
	}
	if err != nil {
		return finding.Broken(err)
	}
	if c.requests, err = approval.Requests(ctx, c.client, c.name); err != nil {
		return finding.Broken(err)
	}
	if !c.cluster.DeletionTimestamp.IsZero() {
		return finding.Bad(c.env.Command("unjoin", c.name, "--side=hub --force --wait"),
			"it is being deleted and waits for %s", strings.Join(c.cluster.Finalizers, ", "))
	}
	return finding.Good("")
}

func (c *clusterScope) unique(context.Context) finding.Outcome {
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
		return finding.Bad("compare with what join printed, then: "+c.env.Command("accept", c.name, "--fingerprint KEY"), "claimed by %s", strings.Join(claims, "; "))
	}
	return finding.Good("%s", strings.Join(claims, "; "))
}

func (c *clusterScope) accepted(context.Context) finding.Outcome {
	if !c.cluster.Spec.HubAcceptsClient {
		return finding.Bad(c.env.Command("accept", c.name), "hubAcceptsClient is false")
	}
	return finding.Good("")
}

func (c *clusterScope) prepared(ctx context.Context) finding.Outcome {
	found := condition(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, c.env.Command("check hub"))
	if found.Status != finding.OK {
		return found
	}
	var namespace corev1.Namespace
	if err := c.client.Get(ctx, client.ObjectKey{Name: c.name}, &namespace); err != nil {
		return finding.Bad(c.env.Command("check hub"), "namespace %s: %v", c.name, err)
	}
	return found
}

func (c *clusterScope) issued(context.Context) finding.Outcome {
	for _, r := range slices.Backward(c.requests) {
		switch {
		case r.State == approval.Issued:
			return finding.Good("request %s of %s", r.Name, r.Requester)
		case r.Rejection != "":
			return finding.Bad("the agent on the managed cluster is not an OCM agent, or the request was tampered with", "request %s can never be approved: %s", r.Name, r.Rejection)
		case r.State == approval.Approved:
			return finding.Bad(c.env.Command("check hub"), "request %s is approved, not issued", r.Name)
		case r.State == approval.Pending:
			return finding.Bad(c.env.Command("accept", c.name), "request %s waits to be approved", r.Name)
		}
	}
	if apimeta.IsStatusConditionTrue(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined) {
		return finding.Good("some time ago")
	}
	try := c.env.Elsewhere("check agent")
	if c.cluster.Spec.HubAcceptsClient {
		try = c.env.Elsewhere("join --refresh --hub-token-file FILE") // Its agent is from before the ManagedCluster, which was restored.
	}
	return finding.Bad("on the managed cluster: "+try, "the agent has not asked for one")
}

// recorded checks whom the hub gives the permissions of the cluster: the agent whose request
// was approved last. Certificates of other agent names are worth nothing.
func (c *clusterScope) recorded(ctx context.Context) finding.Outcome {
	var binding rbacv1.ClusterRoleBinding
	err := c.client.Get(ctx, client.ObjectKey{Name: names.ManagedClusterClusterRole(c.name)}, &binding)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return finding.Broken(err)
	case err != nil || len(binding.Subjects) == 0:
		return finding.Bad("on the managed cluster: "+c.env.Elsewhere("join --refresh --hub-token-file FILE"),
			"no agent has them: the hub has approved no request since the ManagedCluster was created")
	}
	agent := binding.Annotations[names.AnnotationAcceptedAgent]
	if agent == "" {
		return finding.Caution("on the managed cluster: "+c.env.Elsewhere("join --rotate --hub-token-file FILE"), "every certificate that was issued to the cluster has them")
	}
	return finding.Good("agent %s, since %s", agent, binding.Annotations[names.AnnotationAcceptedAgentAt])
}

// reported checks a condition that is true once the agent works.
func (c *clusterScope) reported(kind string) func(context.Context) finding.Outcome {
	return func(context.Context) finding.Outcome {
		return condition(c.cluster.Status.Conditions, kind, metav1.ConditionTrue, "on the managed cluster: "+c.env.Elsewhere("check agent"))
	}
}

// Leases that were renewed longer ago than this many durations are overdue, or count as
// lost.
const (
	overdueFactor = 2
	graceFactor   = 5
)

func (c *clusterScope) lease(ctx context.Context) finding.Outcome {
	var lease coordinationv1.Lease
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.name, Name: names.ManagedClusterLease}, &lease); err != nil {
		return finding.Bad(c.env.Command("check hub"), "%v", err)
	}
	if lease.Spec.RenewTime == nil {
		return finding.Bad("on the managed cluster: "+c.env.Elsewhere("check agent"), "it was never renewed")
	}
	period := time.Duration(max(c.cluster.Spec.LeaseDurationSeconds, 1)) * time.Second
	ago := c.env.Clock.Now().Sub(lease.Spec.RenewTime.Time).Round(time.Second)
	switch {
	case ago > period*graceFactor:
		return finding.Bad("on the managed cluster: "+c.env.Elsewhere("check agent"), "last renewed %s ago; %s is allowed", ago, period*graceFactor)
	case ago > period*overdueFactor:
		return finding.Caution("on the managed cluster: "+c.env.Elsewhere("check agent"), "overdue: last renewed %s ago; the agent is to do so every %s", ago, period)
	}
	return finding.Good("%s ago", ago)
}

func (c *clusterScope) clocks(context.Context) finding.Outcome {
	synced := apimeta.FindStatusCondition(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced)
	if synced != nil && synced.Status == metav1.ConditionFalse {
		return finding.Bad("synchronize the clocks of the hub and the managed cluster", "%s", synced.Message)
	}
	return finding.Good("")
}

// expiry checks that the agent's certificate is renewed in time. What is not known is not well.
func (c *clusterScope) expiry(context.Context) finding.Outcome {
	spoke := "on the managed cluster: " + c.env.Elsewhere("check agent")
	if by := c.env.Drivers.Announced(&c.cluster); by != nil {
		return finding.Good("it uses its %s", by.Words().Identity)
	}
	rotated := apimeta.FindStatusCondition(c.cluster.Status.Conditions, names.ConditionCertificateRotated)
	if rotated != nil && rotated.Status == metav1.ConditionFalse {
		return finding.Caution(spoke, "the agent could not renew it: %s", rotated.Message)
	}
	certificate, known := inventory.Certificate(c.env.Drivers, &c.cluster, c.requests)
	if !known {
		return finding.Caution(spoke, "the agent does not report when its certificate expires")
	}
	end := credential.Timestamp(certificate.NotAfter)
	at, _ := credential.Certificates().Standing(certificate, c.env.Clock.Now())
	switch at {
	case credential.Ended:
		return finding.Bad("on the managed cluster: "+c.env.Elsewhere("join --refresh --hub-token-file FILE"), "it expired at %s", end)
	case credential.Ending:
		return finding.Bad(spoke, "the agent does not renew it, and it expires at %s", end)
	case credential.Overdue:
		return finding.Caution(spoke, "overdue: the agent should have renewed it; it expires at %s", end)
	case credential.Current:
	}
	return finding.Good("until %s", end)
}
