package cluster

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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/inventory"
)

// Near returns what to try about the name of a cluster that the hub does not know: the question
// whether a similar name was meant, or otherwise.
type Near func(ctx context.Context, hub client.Reader, name, otherwise string) string

// cluster is a ManagedCluster that is checked. The check that the hub knows it reads what later
// ones need.
type cluster struct {
	diagnose.Scope

	name     string
	near     Near
	cluster  clusterv1.ManagedCluster
	requests []approval.Request
	addOns   []addoninventory.AddOn
	// limit is the longest lifetime of a credential that no check reports.
	limit diagnose.Limit
}

// Steps returns the checks of a ManagedCluster, made on the hub. They report credentials with a
// lifetime above limit. Steps reads the cluster, because its registration driver has checks too.
func Steps(ctx context.Context, s diagnose.Scope, name string, limit diagnose.Limit, near Near) []finding.Step {
	c := &cluster{Scope: s, name: name, limit: limit, near: near}
	var announced []finding.Step
	issued := []finding.Step{
		{Name: "a credential was issued", Run: c.issued},
		{Name: "one agent has its permissions", Run: c.recorded},
	}
	if by := c.identifier(ctx); by != nil {
		announced, issued = by.CheckCluster(c.Driver(func() *origin.Installation { return nil }), &c.cluster)
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
func (c *cluster) identifier(ctx context.Context) driver.Identifier {
	var cluster clusterv1.ManagedCluster
	if err := c.Client.Get(ctx, client.ObjectKey{Name: c.name}, &cluster); err != nil {
		return nil
	}
	return c.Drivers.Announced(&cluster)
}

func (c *cluster) known(ctx context.Context) finding.Outcome {
	err := c.Client.Get(ctx, client.ObjectKey{Name: c.name}, &c.cluster)
	if lookup.Gone(err) {
		return finding.Bad(c.near(ctx, c.Client, c.name, c.OnManagedCluster("check agent")), "there is no ManagedCluster %s: its agent has not reached the hub", c.name)
	}
	if err != nil {
		return finding.Broken(err)
	}
	if c.requests, err = approval.Requests(ctx, c.Client, c.name); err != nil {
		return finding.Broken(err)
	}
	if !c.cluster.DeletionTimestamp.IsZero() {
		return finding.Bad(c.Command("unjoin", c.name, "--side=hub --force --wait"),
			"it is being deleted and waits for %s", strings.Join(c.cluster.Finalizers, ", "))
	}
	return finding.Good("")
}

func (c *cluster) unique(context.Context) finding.Outcome {
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
		return finding.Bad("compare with what join printed, then: "+c.Command("accept", c.name, "--fingerprint KEY"), "claimed by %s", strings.Join(claims, "; "))
	}
	return finding.Good("%s", strings.Join(claims, "; "))
}

func (c *cluster) accepted(context.Context) finding.Outcome {
	if !c.cluster.Spec.HubAcceptsClient {
		return finding.Bad(c.Command("accept", c.name), "hubAcceptsClient is false")
	}
	return finding.Good("")
}

func (c *cluster) prepared(ctx context.Context) finding.Outcome {
	found := diagnose.Condition(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, c.Command("check hub"))
	if found.Status != finding.OK {
		return found
	}
	var namespace corev1.Namespace
	if err := c.Client.Get(ctx, client.ObjectKey{Name: c.name}, &namespace); err != nil {
		return finding.Bad(c.Command("check hub"), "namespace %s: %v", c.name, err)
	}
	return found
}

func (c *cluster) issued(context.Context) finding.Outcome {
	for _, r := range slices.Backward(c.requests) {
		switch {
		case r.State == approval.Issued:
			return finding.Good("request %s of %s", r.Name, r.Requester)
		case r.Rejection != "":
			return finding.Bad("the agent on the managed cluster is not an OCM agent, or the request was tampered with", "request %s can never be approved: %s", r.Name, r.Rejection)
		case r.State == approval.Approved:
			return finding.Bad(c.Command("check hub"), "request %s is approved, not issued", r.Name)
		case r.State == approval.Pending:
			return finding.Bad(c.Command("accept", c.name), "request %s waits to be approved", r.Name)
		}
	}
	if apimeta.IsStatusConditionTrue(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined) {
		return finding.Good("some time ago")
	}
	try := c.OnManagedCluster("check agent")
	if c.cluster.Spec.HubAcceptsClient {
		try = c.OnManagedCluster("join --refresh --hub-token-file FILE") // Its agent is from before the ManagedCluster, which was restored.
	}
	return finding.Bad(try, "the agent has not asked for one")
}

// recorded checks which agent has the permissions of the cluster: the one whose request was
// approved last. Certificates of other agent names have none.
func (c *cluster) recorded(ctx context.Context) finding.Outcome {
	var binding rbacv1.ClusterRoleBinding
	err := c.Client.Get(ctx, client.ObjectKey{Name: names.ManagedClusterClusterRole(c.name)}, &binding)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return finding.Broken(err)
	case err != nil || len(binding.Subjects) == 0:
		return finding.Bad(c.OnManagedCluster("join --refresh --hub-token-file FILE"),
			"no agent has them: the hub has approved no request since the ManagedCluster was created")
	}
	agent := binding.Annotations[names.AnnotationAcceptedAgent]
	if agent == "" {
		return finding.Caution(c.OnManagedCluster("join --rotate --hub-token-file FILE"), "every certificate that was issued to the cluster has them")
	}
	return finding.Good("agent %s, since %s", agent, binding.Annotations[names.AnnotationAcceptedAgentAt])
}

// reported checks a condition that is True once the agent works.
func (c *cluster) reported(kind string) func(context.Context) finding.Outcome {
	return func(context.Context) finding.Outcome {
		return diagnose.Condition(c.cluster.Status.Conditions, kind, metav1.ConditionTrue, c.OnManagedCluster("check agent"))
	}
}

// Leases that were renewed longer ago than this many durations are overdue, or count as
// lost.
const (
	overdueFactor = 2
	graceFactor   = 5
)

func (c *cluster) lease(ctx context.Context) finding.Outcome {
	var lease coordinationv1.Lease
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.name, Name: names.ManagedClusterLease}, &lease); err != nil {
		return finding.Bad(c.Command("check hub"), "%v", err)
	}
	if lease.Spec.RenewTime == nil {
		return finding.Bad(c.OnManagedCluster("check agent"), "it was never renewed")
	}
	period := time.Duration(max(c.cluster.Spec.LeaseDurationSeconds, 1)) * time.Second
	ago := c.Clock.Now().Sub(lease.Spec.RenewTime.Time).Round(time.Second)
	switch {
	case ago > period*graceFactor:
		return finding.Bad(c.OnManagedCluster("check agent"), "last renewed %s ago; %s is allowed", ago, period*graceFactor)
	case ago > period*overdueFactor:
		return finding.Caution(c.OnManagedCluster("check agent"), "overdue: last renewed %s ago; the agent is to do so every %s", ago, period)
	}
	return finding.Good("%s ago", ago)
}

func (c *cluster) clocks(context.Context) finding.Outcome {
	synced := apimeta.FindStatusCondition(c.cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced)
	if synced != nil && synced.Status == metav1.ConditionFalse {
		return finding.Bad("synchronize the clocks of the hub and the managed cluster", "%s", synced.Message)
	}
	return finding.Good("")
}

// expiry checks that the agent renews its certificate in time. It warns if that is not known.
func (c *cluster) expiry(context.Context) finding.Outcome {
	onCluster := c.OnManagedCluster("check agent")
	if by := c.Drivers.Announced(&c.cluster); by != nil {
		return finding.Good("it uses its %s", by.Words().Identity)
	}
	rotated := apimeta.FindStatusCondition(c.cluster.Status.Conditions, names.ConditionCertificateRotated)
	if rotated != nil && rotated.Status == metav1.ConditionFalse {
		return finding.Caution(onCluster, "the agent could not renew it: %s", rotated.Message)
	}
	certificate, known := inventory.Certificate(c.Drivers, &c.cluster, c.requests)
	if !known {
		return finding.Caution(onCluster, "the agent does not report when its certificate expires")
	}
	end := credential.Timestamp(certificate.NotAfter)
	at, _ := credential.Certificates().Standing(certificate, c.Clock.Now())
	switch at {
	case credential.Ended:
		return finding.Bad(c.OnManagedCluster("join --refresh --hub-token-file FILE"), "it expired at %s", end)
	case credential.Ending:
		return finding.Bad(onCluster, "the agent does not renew it, and it expires at %s", end)
	case credential.Overdue:
		return finding.Caution(onCluster, "overdue: the agent should have renewed it; it expires at %s", end)
	case credential.Current:
	}
	return finding.Good("until %s", end)
}

// issuer checks whether the hub trusts the keys that the cluster publishes.
func (c *cluster) issuer(context.Context) finding.Outcome {
	said := apimeta.FindStatusCondition(c.cluster.Status.Conditions, names.ConditionIssuerTrusted)
	switch {
	case said == nil:
		return finding.Good("it publishes none")
	case said.Status != metav1.ConditionTrue:
		return finding.Bad(c.Command("issuer show", c.name), "%s (%s)", said.Message, said.Reason)
	}
	return finding.Good("%s", said.Message)
}
