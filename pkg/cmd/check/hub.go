package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const signerPatience = 10 * time.Second

type hubScope struct {
	*scope
	selfTest bool
	manager  operatorv1.ClusterManager
}

func (h *hubScope) steps() []step {
	init := h.env.Name + " init --wait"
	return []step{
		{"the API server answers and is new enough", true, h.kubernetes("1.30.0")},
		{"the hub is installed", true, h.installed},
		{"the hub's operator runs", false, h.deployment(names.OperatorNamespace, names.ClusterManagerOperator)},
		{"the hub's components are installed", false, func(context.Context) (status, string, string) {
			return condition(h.manager.Status.Conditions, "Applied", "True", init)
		}},
		{"the feature gates are valid", false, h.gates},
		{"the registration controller runs", false, h.deployment(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName))},
		{"the add-on manager runs", false, h.addOnManager},
		{"add-ons of the old API version are converted", false, h.addOnWebhook},
		{"the token authorizer runs", false, h.tokenAuthorizer},
		{"the hub knows managed clusters", true, h.served},
		{"the hub signs client certificates", false, h.signs},
		{"clusters can reach the hub", false, h.address},
		{"clusters can find the hub's CA", false, h.published},
		{"join tokens can be made", false, h.joinable},
		{"all clusters are well", false, h.clusters},
		{"all add-ons have credentials", false, h.addOns},
	}
}

func (h *hubScope) installed(ctx context.Context) (status, string, string) {
	err := h.client.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &h.manager)
	if install.Gone(err) {
		return bad(h.env.Name+" init --wait", "there is no ClusterManager: this cluster is not a hub")
	}
	if err != nil {
		return broken(err)
	}
	return good("ClusterManager %s", h.manager.Name)
}

func (h *hubScope) gates(context.Context) (status, string, string) {
	c := apimeta.FindStatusCondition(h.manager.Status.Conditions, "ValidFeatureGates")
	if c != nil && c.Status != "True" {
		return caution("kubectl edit clustermanager "+h.manager.Name, "%s", c.Message)
	}
	return good("")
}

// tokenAuthorizer checks what exchanges workloads' tokens, where it is wanted.
func (h *hubScope) tokenAuthorizer(ctx context.Context) (status, string, string) {
	if h.manager.Annotations[names.AnnotationTokenAuthorizer] != "true" {
		return good("this hub has none")
	}
	return h.deployment(names.HubNamespace, names.TokenAuthorizer)(ctx)
}

func (h *hubScope) served(context.Context) (status, string, string) {
	if err := fleet.RequireHub(h.env, h.client); err != nil {
		return broken(err)
	}
	return good("")
}

func (h *hubScope) signs(ctx context.Context) (status, string, string) {
	if !h.selfTest {
		return skipped, "--self-test=false", ""
	}
	err := install.SelfTest(ctx, h.client, h.env.Clock, signerPatience)
	var none *install.NoSignerError
	switch {
	case errors.As(err, &none):
		return bad("use a hub that signs, or the awsirsa or grpc driver; for add-ons join with --addon-kubeclient-registration-auth=token", "%v", none)
	case err != nil:
		return broken(err)
	}
	return good("a test certificate was issued")
}

func (h *hubScope) address(ctx context.Context) (status, string, string) {
	address, err := fleet.HubAddress(ctx, h.config, h.client, "")
	if err != nil {
		return broken(err)
	}
	if address.Local != "" {
		return caution(h.env.Name+" init --hub-apiserver URL", "%s: %s", address.Server, address.Local)
	}
	if warning := address.Probe(ctx); warning != "" {
		return caution(h.env.Name+" init --hub-apiserver URL", "%s", warning)
	}
	return good("%s", address.Server)
}

func (h *hubScope) published(ctx context.Context) (status, string, string) {
	var config corev1.ConfigMap
	key := client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}
	if err := h.client.Get(ctx, key, &config); err != nil {
		return caution(h.env.Name+" init", "cluster-info cannot be read, so join needs --ca-file: %v", err)
	}
	info, err := bootstrap.ParseClusterInfo([]byte(config.Data["kubeconfig"]))
	if err != nil || len(info.CA) == 0 {
		return caution("kubectl -n kube-public edit configmap cluster-info", "cluster-info holds no CA, so join needs --ca-file")
	}
	return good("")
}

func (h *hubScope) joinable(ctx context.Context) (status, string, string) {
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: names.OperatorNamespace, Name: names.BootstrapServiceAccount}
	err := h.client.Get(ctx, key, &account)
	if install.Gone(err) {
		tokens := bootstrap.Tokens{Client: h.client, Clock: h.env.Clock}
		if _, err := tokens.Bootstrap(ctx); err == nil {
			return good("by bootstrap token")
		}
		return bad(h.env.Name+" init", "the ServiceAccount %s is gone", key)
	}
	if err != nil {
		return broken(err)
	}
	return good("")
}

func (h *hubScope) clusters(ctx context.Context) (status, string, string) {
	var list clusterv1.ManagedClusterList
	if err := h.client.List(ctx, &list); err != nil {
		return broken(err)
	}
	waiting, unwell := 0, 0
	for i := range list.Items {
		c := fleet.Describe(&list.Items[i], nil)
		switch {
		case !c.Accepted:
			waiting++
		case c.Available != "True":
			unwell++
		}
	}
	text := fmt.Sprintf("%d clusters, %d of them not accepted, %d not available", len(list.Items), waiting, unwell)
	if unwell > 0 {
		return caution(h.env.Name+" get clusters -o wide; "+h.env.Name+" check cluster NAME", "%s", text)
	}
	return good("%s", text)
}
