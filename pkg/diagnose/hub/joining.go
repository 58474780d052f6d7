package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hubaddress"
)

// signerPatience is how long the check of the signer waits for the test certificate.
const signerPatience = 10 * time.Second

func (h *Hub) signs(ctx context.Context) finding.Outcome {
	if h.noSelfTest != "" {
		return finding.Skip("%s", h.noSelfTest)
	}
	identifying, only := driver.Identifying(h.Drivers.Of(&h.manager))
	if only {
		return finding.Good("it need not: clusters register by %s only", identifying[0].Words().Way)
	}
	err := hub.SelfTest(ctx, h.Client, h.Clock, signerPatience)
	var none *hub.NoSignerError
	switch {
	case errors.As(err, &none):
		return finding.Bad(h.otherWays()+"elsewhere give kube-controller-manager --cluster-signing-cert-file and --cluster-signing-key-file, or make another cluster the hub", "%v", none)
	case err != nil:
		return finding.Broken(err)
	}
	return finding.Good("a test certificate was issued")
}

// otherWays returns how clusters register with hubs that have no signer.
func (h *Hub) otherWays() string {
	var try strings.Builder
	for _, by := range h.Drivers.Identifiers() {
		fmt.Fprintf(&try, "on %s, which has no such signer, run: %s; ", by.Words().Place, h.Fix(h.Command(append([]string{"init"}, by.InitArgs(driver.HubSettings{})...)...)))
	}
	return try.String()
}

func (h *Hub) address(ctx context.Context) finding.Outcome {
	address, err := hubaddress.Find(ctx, h.Drivers, h.Config, h.Client, "")
	if err != nil {
		return finding.Broken(err)
	}
	if address.Local != "" {
		return finding.Caution(h.Fix(h.Command("init --hub-apiserver URL")), "%s: %s", address.Server, address.Local)
	}
	if warning := address.Probe(ctx); warning != "" {
		return finding.Caution(h.Fix(h.Command("init --hub-apiserver URL")), "%s", warning)
	}
	return finding.Good("%s", address.Server)
}

func (h *Hub) published(ctx context.Context) finding.Outcome {
	var config corev1.ConfigMap
	key := client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}
	if err := h.Client.Get(ctx, key, &config); err != nil {
		return finding.Caution(h.Fix(h.Command("init")), "cluster-info cannot be read, so join needs --ca-file: %v", err)
	}
	info, err := bootstrap.ParseClusterInfo([]byte(config.Data["kubeconfig"]))
	if err != nil || len(info.CA) == 0 {
		return finding.Caution(h.Kubectl("-n kube-public edit configmap cluster-info"), "cluster-info holds no CA, so join needs --ca-file")
	}
	return finding.Good("")
}

func (h *Hub) joinable(ctx context.Context) finding.Outcome {
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: names.OperatorNamespace, Name: names.BootstrapServiceAccount}
	err := h.Client.Get(ctx, key, &account)
	if lookup.Gone(err) {
		tokens := bootstrap.Tokens{Client: h.Client, Clock: h.Clock}
		if _, err := tokens.Bootstrap(ctx); err == nil {
			return finding.Good("by bootstrap token")
		}
		return finding.Bad(h.Fix(h.Command("init")), "the ServiceAccount %s is gone", key)
	}
	if err != nil {
		return finding.Broken(err)
	}
	return finding.Good("")
}

// lifetimes checks the bootstrap tokens of the hub.
func (h *Hub) lifetimes(ctx context.Context) finding.Outcome {
	infos, err := bootstrap.Tokens{Client: h.Client, Clock: h.Clock}.List(ctx)
	if err != nil {
		return finding.Broken(err)
	}
	var long, ids []string
	for _, info := range infos {
		life := "never expires"
		if info.Expires != nil {
			if !h.limit.ExceededBy(info.Expires.Sub(info.Created)) {
				continue
			}
			life = credential.Lifetime(info.Expires.Sub(info.Created))
		}
		if h.limit > 0 {
			long, ids = append(long, fmt.Sprintf("bootstrap token %s (%s)", info.ID, life)), append(ids, info.ID)
		}
	}
	return h.limit.Outcome(long, h.Command(append([]string{"token", "revoke"}, ids...)...))
}
