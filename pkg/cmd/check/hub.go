package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/census"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hubaddress"
)

const signerPatience = 10 * time.Second

type hubScope struct {
	*scope
	selfTest bool
	manager  operatorv1.ClusterManager
	// other is what another product runs as the hub.
	other *origin.Installation
	limit limit
}

func (h *hubScope) steps() []finding.Step {
	steps := []finding.Step{
		{Name: "the API server answers and is new enough", Needed: true, Run: h.kubernetes(install.OldestHub)},
		{Name: "the hub is installed", Needed: true, Run: h.installed},
		{Name: "the hub's operator runs", Run: h.operator},
		{Name: "the hub's components are installed", Run: func(context.Context) finding.Outcome {
			return condition(h.manager.Status.Conditions, "Applied", "True", h.fix(h.env.Command("init --wait")))
		}},
		{Name: "the feature gates are valid", Run: h.gates},
		{Name: "the registration controller runs", Run: h.deployment(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName))},
		{Name: "the add-on manager runs", Run: h.addOnManager},
		{Name: "add-ons of the old API version are converted", Run: h.addOnWebhook},
		{Name: "the token authorizer runs", Run: h.tokenAuthorizer},
		{Name: "the hub knows managed clusters", Needed: true, Run: h.served},
		{Name: "the hub signs client certificates", Run: h.signs},
	}
	for _, by := range h.env.Drivers.Identifiers() {
		steps = append(steps, by.CheckHub(h.driverScope(&h.other), &h.manager)...)
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

// fix returns what to try: our command, unless another product runs this hub,
// which the command would break.
func (h *hubScope) fix(command string) string { return fix(h.other, command) }

func (h *hubScope) installed(ctx context.Context) finding.Outcome {
	var err error
	if h.other, err = origin.Hub(ctx, h.client); err != nil {
		return finding.Broken(err)
	}
	if h.other != nil && !h.other.Runs() {
		return finding.Bad(h.other.Try(), "this cluster has %s: %s. %s", h.other, strings.Join(h.other.Webhooks, ", "), h.other.Loss())
	}
	err = h.client.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &h.manager)
	if install.Gone(err) {
		return finding.Bad(h.fix(h.env.Command("init --wait")), "there is no ClusterManager: this cluster is not a hub")
	}
	if err != nil {
		return finding.Broken(err)
	}
	if h.other != nil {
		return finding.Good("ClusterManager %s is of %s", h.manager.Name, h.other)
	}
	return finding.Good("ClusterManager %s", h.manager.Name)
}

func (h *hubScope) operator(ctx context.Context) finding.Outcome {
	return h.operatorOf(h.other, names.ClusterManagerOperator)(ctx)
}

func (h *hubScope) gates(context.Context) finding.Outcome {
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, "ValidFeatureGates")
	if c != nil && c.Status != "True" {
		return finding.Caution(h.env.Kubectl("edit clustermanager", h.manager.Name), "%s", c.Message)
	}
	return finding.Good("")
}

// tokenAuthorizer checks what exchanges workloads' tokens, where it is wanted.
func (h *hubScope) tokenAuthorizer(ctx context.Context) finding.Outcome {
	if h.manager.Annotations[names.AnnotationTokenAuthorizer] != "true" {
		return finding.Good("this hub has none")
	}
	return h.deployment(names.HubNamespace, names.TokenAuthorizer)(ctx)
}

func (h *hubScope) served(ctx context.Context) finding.Outcome {
	if err := fleet.RequireHub(ctx, h.env, h.client); err != nil {
		return finding.Broken(err)
	}
	return finding.Good("")
}

func (h *hubScope) signs(ctx context.Context) finding.Outcome {
	if !h.selfTest {
		return finding.Skip("--self-test=false")
	}
	identifying, only := driver.Identifying(h.env.Drivers.Of(&h.manager))
	if only {
		return finding.Good("it need not: clusters register by %s only", identifying[0].Words().Way)
	}
	err := install.SelfTest(ctx, h.client, h.env.Clock, signerPatience)
	var none *install.NoSignerError
	switch {
	case errors.As(err, &none):
		return finding.Bad(h.elsewhere()+"elsewhere give kube-controller-manager --cluster-signing-cert-file and --cluster-signing-key-file, or make another cluster the hub", "%v", none)
	case err != nil:
		return finding.Broken(err)
	}
	return finding.Good("a test certificate was issued")
}

// elsewhere says how hubs without a signer let clusters register.
func (h *hubScope) elsewhere() string {
	var try strings.Builder
	for _, by := range h.env.Drivers.Identifiers() {
		fmt.Fprintf(&try, "on %s, which has no such signer, run: %s; ", by.Words().Place, h.fix(h.env.Command(append([]string{"init"}, by.InitArgs(driver.HubSettings{})...)...)))
	}
	return try.String()
}

func (h *hubScope) address(ctx context.Context) finding.Outcome {
	address, err := hubaddress.Find(ctx, h.env.Drivers, h.config, h.client, "")
	if err != nil {
		return finding.Broken(err)
	}
	if address.Local != "" {
		return finding.Caution(h.fix(h.env.Command("init --hub-apiserver URL")), "%s: %s", address.Server, address.Local)
	}
	if warning := address.Probe(ctx); warning != "" {
		return finding.Caution(h.fix(h.env.Command("init --hub-apiserver URL")), "%s", warning)
	}
	return finding.Good("%s", address.Server)
}

func (h *hubScope) published(ctx context.Context) finding.Outcome {
	var config corev1.ConfigMap
	key := client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}
	if err := h.client.Get(ctx, key, &config); err != nil {
		return finding.Caution(h.fix(h.env.Command("init")), "cluster-info cannot be read, so join needs --ca-file: %v", err)
	}
	info, err := bootstrap.ParseClusterInfo([]byte(config.Data["kubeconfig"]))
	if err != nil || len(info.CA) == 0 {
		return finding.Caution(h.env.Kubectl("-n kube-public edit configmap cluster-info"), "cluster-info holds no CA, so join needs --ca-file")
	}
	return finding.Good("")
}

func (h *hubScope) joinable(ctx context.Context) finding.Outcome {
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: names.OperatorNamespace, Name: names.BootstrapServiceAccount}
	err := h.client.Get(ctx, key, &account)
	if install.Gone(err) {
		tokens := bootstrap.Tokens{Client: h.client, Clock: h.env.Clock}
		if _, err := tokens.Bootstrap(ctx); err == nil {
			return finding.Good("by bootstrap token")
		}
		return finding.Bad(h.fix(h.env.Command("init")), "the ServiceAccount %s is gone", key)
	}
	if err != nil {
		return finding.Broken(err)
	}
	return finding.Good("")
}

func (h *hubScope) clusters(ctx context.Context) finding.Outcome {
	var list clusterv1.ManagedClusterList
	if err := h.client.List(ctx, &list); err != nil {
		return finding.Broken(err)
	}
	byState := map[census.State][]string{}
	for i := range list.Items {
		state := census.Of(&list.Items[i])
		byState[state] = append(byState[state], list.Items[i].Name)
	}
	lines, failed := describeStates(byState)
	lines = slices.Insert(lines, 0, fmt.Sprintf("%d clusters, %d of them ready", len(list.Items), len(byState[census.Ready])))
	text, try := strings.Join(lines, "\n"), h.env.Command("get clusters -o wide")+"; "+h.env.Command("check cluster NAME")
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
