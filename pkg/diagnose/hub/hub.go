package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/census"
)

// Hub is a hub that is checked. The check of Installed reads what later ones need.
type Hub struct {
	diagnose.Scope

	manager operatorv1.ClusterManager
	// other is the hub of another product.
	other *origin.Installation
	// limit is the longest lifetime of a bootstrap token that no check reports.
	limit diagnose.Limit
	// noSelfTest is why no test certificate is requested.
	noSelfTest string
}

// New returns a hub for the packages whose checks begin with those of a hub.
func New(s diagnose.Scope) *Hub { return &Hub{Scope: s} }

// Steps returns the checks of a hub, which report bootstrap tokens with a lifetime above limit.
// One of them requests a test certificate and deletes the request again, unless noSelfTest says
// why not.
func Steps(s diagnose.Scope, limit diagnose.Limit, noSelfTest string) []finding.Step {
	h := &Hub{Scope: s, limit: limit, noSelfTest: noSelfTest}
	steps := []finding.Step{
		h.Answers(install.OldestHub),
		h.Installed(),
		{Name: "the hub's operator runs", Run: h.operator},
		{Name: "the hub's components are installed", Run: func(context.Context) finding.Outcome {
			return diagnose.Condition(h.manager.Status.Conditions, "Applied", "True", h.Fix(h.Command("init --wait")))
		}},
		{Name: "the feature gates are valid", Run: h.gates},
		{Name: "the registration controller runs", Run: h.Deployment(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName))},
		{Name: "the add-on manager runs", Run: h.addOnManager},
		{Name: "add-ons of the old API version are converted", Run: h.addOnWebhook},
		{Name: "the token authorizer runs", Run: h.TokenAuthorizer},
		h.Serves(),
		{Name: "the hub signs client certificates", Run: h.signs},
	}
	for _, by := range h.Drivers.Identifiers() {
		steps = append(steps, by.CheckHub(h.Driver(h.foreign), &h.manager)...)
		steps = append(steps, finding.Step{Name: by.Words().Identities + " of clusters are granted", Run: h.grants})
	}
	return append(steps, []finding.Step{
		{Name: "clusters can reach the hub", Run: h.address},
		{Name: "clusters can find the hub's CA", Run: h.published},
		{Name: "bootstrap tokens can be created", Run: h.joinable},
		{Name: "all clusters are well", Run: h.clusters},
		{Name: "all add-ons have credentials", Run: h.addOns},
		{Name: "bootstrap tokens are short-lived", Run: h.lifetimes},
	}...)
}

// Fix returns the advice to run a command, or, if another product runs this hub, what manages
// that.
func (h *Hub) Fix(command string) string { return diagnose.Fix(h.other, command) }

func (h *Hub) foreign() *origin.Installation { return h.other }

// Installed returns the check that the cluster is a hub.
func (h *Hub) Installed() finding.Step {
	return finding.Step{Name: "the hub is installed", Needed: true, Run: h.installed}
}

// Serves returns the check that the hub serves ManagedClusters.
func (h *Hub) Serves() finding.Step {
	return finding.Step{Name: "the hub knows managed clusters", Needed: true, Run: h.served}
}

// WantsTokenAuthorizer reports whether init installed a token authorizer, once the check of
// Installed was made.
func (h *Hub) WantsTokenAuthorizer() bool {
	return h.manager.Annotations[names.AnnotationTokenAuthorizer] == "true"
}

func (h *Hub) installed(ctx context.Context) finding.Outcome {
	var err error
	if h.other, err = origin.Hub(ctx, h.Client); err != nil {
		return finding.Broken(err)
	}
	if h.other != nil && !h.other.Runs() {
		return finding.Bad(h.other.Try(), "this cluster has %s: %s. %s", h.other, strings.Join(h.other.Webhooks, ", "), h.other.Loss())
	}
	err = h.Client.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &h.manager)
	if lookup.Gone(err) {
		return finding.Bad(h.Fix(h.Command("init --wait")), "there is no ClusterManager: this cluster is not a hub")
	}
	if err != nil {
		return finding.Broken(err)
	}
	if h.other != nil {
		return finding.Good("ClusterManager %s is of %s", h.manager.Name, h.other)
	}
	return finding.Good("ClusterManager %s", h.manager.Name)
}

func (h *Hub) operator(ctx context.Context) finding.Outcome {
	return h.Operator(h.other, names.ClusterManagerOperator)(ctx)
}

func (h *Hub) gates(context.Context) finding.Outcome {
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, "ValidFeatureGates")
	if c != nil && c.Status != "True" {
		return finding.Caution(h.Kubectl("edit clustermanager", h.manager.Name), "%s", c.Message)
	}
	return finding.Good("")
}

// TokenAuthorizer checks the Deployment of the token authorizer, if init installed one.
func (h *Hub) TokenAuthorizer(ctx context.Context) finding.Outcome {
	if !h.WantsTokenAuthorizer() {
		return finding.Good("this hub has none")
	}
	return h.Deployment(names.HubNamespace, names.TokenAuthorizer)(ctx)
}

func (h *Hub) served(context.Context) finding.Outcome {
	served, err := lookup.Serves(h.Client, schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"))
	switch {
	case err != nil:
		return finding.Broken(err)
	case !served:
		return diagnose.NotReady(h)
	}
	return finding.Good("")
}

func (h *Hub) clusters(ctx context.Context) finding.Outcome {
	var list clusterv1.ManagedClusterList
	if err := h.Client.List(ctx, &list); err != nil {
		return finding.Broken(err)
	}
	byState := map[census.State][]string{}
	for i := range list.Items {
		state := census.Of(&list.Items[i])
		byState[state] = append(byState[state], list.Items[i].Name)
	}
	lines, failed := describeStates(byState)
	lines = slices.Insert(lines, 0, fmt.Sprintf("%d clusters, %d of them ready", len(list.Items), len(byState[census.Ready])))
	text, try := strings.Join(lines, "\n"), h.Command("get clusters -o wide")+"; "+h.Command("check cluster NAME")
	switch {
	case failed:
		return finding.Bad(try, "%s", text)
	case len(lines) > 1:
		return finding.Caution(try, "%s", text)
	}
	return finding.Good("%s", text)
}

// describeStates names the clusters that are not well, and reports whether one is lost.
// Those that were denied, or are being deleted, are so by the will of an administrator.
func describeStates(byState map[census.State][]string) (lines []string, failed bool) {
	for _, s := range []struct {
		state census.State
		text  string
		lost  bool
	}{
		{census.Expired, "with an expired certificate", true},
		{census.Unknown, "with a silent agent", true},
		{census.Unavailable, "not available", true},
		{census.Overdue, "with an overdue lease or certificate", false},
		{census.Joining, "accepted, not joined", false},
		{census.Pending, "waiting to be accepted", false},
	} {
		if found := byState[s.state]; len(found) > 0 {
			lines = append(lines, fmt.Sprintf("%d %s: %s", len(found), s.text, excerpt.List(found, ", ")))
			failed = failed || s.lost
		}
	}
	return lines, failed
}
