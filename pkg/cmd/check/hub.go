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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/census"
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

func (h *hubScope) steps() []checks.Step {
	return []checks.Step{
		{Name: "the API server answers and is new enough", Needed: true, Run: h.kubernetes(install.OldestHub)},
		{Name: "the hub is installed", Needed: true, Run: h.installed},
		{Name: "the hub's operator runs", Run: h.operator},
		{Name: "the hub's components are installed", Run: func(context.Context) checks.Outcome {
			return condition(h.manager.Status.Conditions, "Applied", "True", h.fix(h.env.Command("init --wait")))
		}},
		{Name: "the feature gates are valid", Run: h.gates},
		{Name: "the registration controller runs", Run: h.deployment(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName))},
		{Name: "the add-on manager runs", Run: h.addOnManager},
		{Name: "add-ons of the old API version are converted", Run: h.addOnWebhook},
		{Name: "the token authorizer runs", Run: h.tokenAuthorizer},
		{Name: "the hub knows managed clusters", Needed: true, Run: h.served},
		{Name: "the hub signs client certificates", Run: h.signs},
		{Name: "EKS clusters can register by AWS IAM", Run: h.aws},
		{Name: "AWS identities of clusters are granted", Run: h.grants},
		{Name: "clusters can reach the hub", Run: h.address},
		{Name: "clusters can find the hub's CA", Run: h.published},
		{Name: "bootstrap tokens can be created", Run: h.joinable},
		{Name: "all clusters are well", Run: h.clusters},
		{Name: "all add-ons have credentials", Run: h.addOns},
		{Name: "bootstrap tokens are short-lived", Run: h.lifetimes},
	}
}

// fix returns what to try: our command, unless another product runs this hub,
// which the command would break.
func (h *hubScope) fix(command string) string { return fix(h.other, command) }

func (h *hubScope) installed(ctx context.Context) checks.Outcome {
	var err error
	if h.other, err = origin.Hub(ctx, h.client); err != nil {
		return checks.Broken(err)
	}
	if h.other != nil && !h.other.Runs() {
		return checks.Bad(h.other.Try(), "this cluster has %s: %s. %s", h.other, strings.Join(h.other.Webhooks, ", "), h.other.Loss())
	}
	err = h.client.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &h.manager)
	if install.Gone(err) {
		return checks.Bad(h.fix(h.env.Command("init --wait")), "there is no ClusterManager: this cluster is not a hub")
	}
	if err != nil {
		return checks.Broken(err)
	}
	if h.other != nil {
		return checks.Good("ClusterManager %s is of %s", h.manager.Name, h.other)
	}
	return checks.Good("ClusterManager %s", h.manager.Name)
}

func (h *hubScope) operator(ctx context.Context) checks.Outcome {
	return h.operatorOf(h.other, names.ClusterManagerOperator)(ctx)
}

func (h *hubScope) gates(context.Context) checks.Outcome {
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, "ValidFeatureGates")
	if c != nil && c.Status != "True" {
		return checks.Caution(h.env.Kubectl("edit clustermanager", h.manager.Name), "%s", c.Message)
	}
	return checks.Good("")
}

// tokenAuthorizer checks what exchanges workloads' tokens, where it is wanted.
func (h *hubScope) tokenAuthorizer(ctx context.Context) checks.Outcome {
	if h.manager.Annotations[names.AnnotationTokenAuthorizer] != "true" {
		return checks.Good("this hub has none")
	}
	return h.deployment(names.HubNamespace, names.TokenAuthorizer)(ctx)
}

func (h *hubScope) served(ctx context.Context) checks.Outcome {
	if err := fleet.RequireHub(ctx, h.env, h.client); err != nil {
		return checks.Broken(err)
	}
	return checks.Good("")
}

func (h *hubScope) signs(ctx context.Context) checks.Outcome {
	if !h.selfTest {
		return checks.Skip("--self-test=false")
	}
	if hubspec.Only(&h.manager) {
		return checks.Good("it need not: clusters register by AWS IAM only")
	}
	err := install.SelfTest(ctx, h.client, h.env.Clock, signerPatience)
	var none *install.NoSignerError
	switch {
	case errors.As(err, &none):
		return checks.Bad("on EKS, which has no such signer, run: "+h.fix(h.env.Command("init --registration-auth aws-irsa --hub-cluster-arn ARN"))+
			"; elsewhere give kube-controller-manager --cluster-signing-cert-file and --cluster-signing-key-file, or make another cluster the hub", "%v", none)
	case err != nil:
		return checks.Broken(err)
	}
	return checks.Good("a test certificate was issued")
}

func (h *hubScope) address(ctx context.Context) checks.Outcome {
	address, err := fleet.HubAddress(ctx, h.config, h.client, "")
	if err != nil {
		return checks.Broken(err)
	}
	if address.Local != "" {
		return checks.Caution(h.fix(h.env.Command("init --hub-apiserver URL")), "%s: %s", address.Server, address.Local)
	}
	if warning := address.Probe(ctx); warning != "" {
		return checks.Caution(h.fix(h.env.Command("init --hub-apiserver URL")), "%s", warning)
	}
	return checks.Good("%s", address.Server)
}

func (h *hubScope) published(ctx context.Context) checks.Outcome {
	var config corev1.ConfigMap
	key := client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}
	if err := h.client.Get(ctx, key, &config); err != nil {
		return checks.Caution(h.fix(h.env.Command("init")), "cluster-info cannot be read, so join needs --ca-file: %v", err)
	}
	info, err := bootstrap.ParseClusterInfo([]byte(config.Data["kubeconfig"]))
	if err != nil || len(info.CA) == 0 {
		return checks.Caution(h.env.Kubectl("-n kube-public edit configmap cluster-info"), "cluster-info holds no CA, so join needs --ca-file")
	}
	return checks.Good("")
}

func (h *hubScope) joinable(ctx context.Context) checks.Outcome {
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: names.OperatorNamespace, Name: names.BootstrapServiceAccount}
	err := h.client.Get(ctx, key, &account)
	if install.Gone(err) {
		tokens := bootstrap.Tokens{Client: h.client, Clock: h.env.Clock}
		if _, err := tokens.Bootstrap(ctx); err == nil {
			return checks.Good("by bootstrap token")
		}
		return checks.Bad(h.fix(h.env.Command("init")), "the ServiceAccount %s is gone", key)
	}
	if err != nil {
		return checks.Broken(err)
	}
	return checks.Good("")
}

func (h *hubScope) clusters(ctx context.Context) checks.Outcome {
	var list clusterv1.ManagedClusterList
	if err := h.client.List(ctx, &list); err != nil {
		return checks.Broken(err)
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
		return checks.Bad(try, "%s", text)
	case len(lines) > 1:
		return checks.Caution(try, "%s", text)
	}
	return checks.Good("%s", text)
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
			lines = append(lines, fmt.Sprintf("%d %s: %s", len(found), s.text, cli.Some(found, ", ")))
			failed = failed || s.lost
		}
	}
	return lines, failed
}
