package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hubaddress"
)

// tolerableSkew is how far clocks may differ without trouble.
const tolerableSkew = 30 * time.Second

// hub is the verified hub, as the bootstrap token shows it.
type hub struct {
	server string
	client client.Client
	// admin is the administrator's connection of a one-shot join.
	admin client.Client
	// cluster is what the hub knows under our name; nil is nothing.
	cluster *clusterv1.ManagedCluster
}

// connect verifies the hub and the token, in this order, and fills in the
// bootstrap kubeconfig. managed reads the cluster that joins.
func (o *options) connect(ctx context.Context, managed client.Reader, p *plan) (*hub, error) {
	h := &hub{}
	if p.oneShot {
		if err := o.connectAdmin(ctx, p, h); err != nil {
			return h, err
		}
	}
	if reason := bootstrap.LocalOnly(p.endpoint.Server); reason != "" && !hubaddress.SharesMachine(ctx, managed) {
		o.env.Warn("the agent may not reach %s: %s", p.endpoint.Server, reason)
	}
	err := o.env.Progress().Step(ctx, "Verifying the hub "+p.endpoint.Server, func(ctx context.Context, say cli.Say) error {
		found, err := bootstrap.Discover(ctx, p.endpoint)
		if o.unseen(err, p.endpoint) {
			say("not possible from this machine; the agent verifies it by the given CA file")
			h.server = p.endpoint.Server
			return o.offline(ctx, p)
		}
		if err != nil {
			return err
		}
		say("verified by %s", found.Trust)
		if skew := o.env.Clock.Now().Sub(found.Date).Abs(); !found.Date.IsZero() && skew > tolerableSkew {
			o.env.Warn("the clocks of this machine and the hub differ by %s; leases and certificates need them to agree", skew.Round(time.Second))
		}
		if p.token.Secret() == "" {
			// A dry run makes no token.
			p.klusterlet.Bootstrap, err = found.Bootstrap("dry-run").EncodeBootstrap()
			return err
		}
		return o.checkToken(ctx, p, h, found)
	})
	return h, err
}

// unseen reports whether the hub only cannot be reached from this machine, and
// the user says that the managed cluster can.
func (o *options) unseen(err error, endpoint bootstrap.Endpoint) bool {
	problem, ok := errors.AsType[*bootstrap.Error](err)
	return ok && problem.Kind == bootstrap.Unreachable && len(endpoint.CA) > 0 && slices.Contains(o.preflight.Skipped(), install.CheckHubAddress)
}

// connectAdmin makes the token as the hub's administrator.
func (o *options) connectAdmin(ctx context.Context, p *plan, h *hub) error {
	c, config, err := o.env.Kube.Of(o.hub.admin).Connect()
	if err != nil {
		return err
	}
	if hub, err := fleet.IsHub(c); err != nil || !hub {
		return errors.Join(err, cli.Blockedf("run first: "+o.env.CommandAt(o.hub.admin, "init")+", or check --hub-context", "the cluster of context %q is not a hub", o.hub.admin.Name))
	}
	address, err := hubaddress.Find(ctx, o.env.Drivers, config, c, p.endpoint.Server)
	if err != nil {
		return err
	}
	p.endpoint.Server = address.Server
	if len(p.endpoint.CA)+len(p.endpoint.Pins) == 0 {
		p.endpoint.CA = address.CA
	}
	h.admin, h.client = c, c
	if o.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	ttl := bootstrap.DefaultTTL
	if o.wait.Timeout > 0 {
		// It is revoked at the end, or lives as long as the command may take.
		ttl = min(max(time.Duration(o.wait.Timeout), bootstrap.MinTTL), bootstrap.MaxTTL)
	}
	p.token, err = bootstrap.Tokens{Client: c, Clock: o.env.Clock}.Mint(ctx, ttl)
	return err
}

// checkToken uses the token for the first time: the hub is verified by now.
func (o *options) checkToken(ctx context.Context, p *plan, h *hub, found bootstrap.Hub) error {
	config, err := found.Config(p.token)
	if err != nil {
		return err
	}
	if h.client, err = cli.NewClient(o.env.Kube.Guard(config)); err != nil {
		return err
	}
	err = bootstrap.CheckAccess(ctx, h.client, p.token, o.env.Clock.Now())
	switch {
	case err == nil:
		if err := h.know(ctx, p.klusterlet.ClusterName); err != nil {
			return err
		}
	case p.storedToken && unusable(err):
		o.env.Warn("the stored bootstrap token is kept, but %v. An agent that has lost its credential needs a new one: give --hub-token-file.", err)
		h.client = nil
	default:
		return err
	}
	if o.hub.internal && h.client != nil {
		if found.Cluster.Server, err = internalServer(ctx, h.client); err != nil {
			return err
		}
	}
	h.server = found.Cluster.Server
	p.klusterlet.Bootstrap, err = found.Bootstrap(p.token.Secret()).EncodeBootstrap()
	return err
}

// requireSameHub refuses to take a cluster from the hub that it has joined, unless that is
// asked for.
func (o *options) requireSameHub(ctx context.Context, p plan, runner agent.Runner) error {
	if o.changeHub {
		return nil
	}
	to, err := kubeconfig.ParseHub(p.klusterlet.Bootstrap)
	if err != nil {
		return fmt.Errorf("bootstrap kubeconfig: %w", err)
	}
	connect := func(config *rest.Config) (client.Client, error) { return cli.NewClient(o.env.Kube.Guard(config)) }
	left, err := runner.Departure(ctx, to, o.registration.drivers.hubID(), connect)
	if err != nil || left == nil {
		return err
	}
	problem := fmt.Sprintf("this cluster has joined the hub %s as %q; %s does not accept its credential, so it is another hub", left.Hub, left.Cluster, to.Cluster.Server)
	try := "to leave the first hub, add --change-hub"
	if left.Works > 0 {
		problem += fmt.Sprintf(". An hour after the change, the agent deletes the %d resources of %d ManifestWorks of the first hub", left.Resources, left.Works)
		try = fmt.Sprintf("to keep the resources, run first: %s; %s", o.env.Command("unjoin", "--works", "orphan"), try)
	}
	return cli.Blockedf(try, "%s", problem)
}

// unusable reports whether a token is expired or revoked.
func unusable(err error) bool {
	problem, ok := errors.AsType[*bootstrap.Error](err)
	return ok && (problem.Kind == bootstrap.Expired || problem.Kind == bootstrap.Refused)
}

// know reads what the hub has under the name of the cluster.
func (h *hub) know(ctx context.Context, name string) error {
	cluster := &clusterv1.ManagedCluster{}
	err := h.client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cluster %s on the hub: %w", name, err)
	}
	if err == nil {
		h.cluster = cluster
	}
	return nil
}

// internalServer reads the address in the hub's cluster-info. It comes from the
// verified hub, and the agent verifies it by the same CA.
func internalServer(ctx context.Context, c client.Client) (string, error) {
	var config corev1.ConfigMap
	key := client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}
	if err := c.Get(ctx, key, &config); err != nil {
		return "", fmt.Errorf("cluster-info of the hub: %w", err)
	}
	info, err := bootstrap.ParseClusterInfo([]byte(config.Data["kubeconfig"]))
	if err != nil {
		return "", fmt.Errorf("cluster-info of the hub: %w", err)
	}
	server, err := bootstrap.ParseServer(info.Server)
	if err != nil {
		return "", err
	}
	return server.String(), nil
}

// offline fills in the bootstrap kubeconfig with as little contact as can be.
func (o *options) offline(ctx context.Context, p *plan) error {
	found := bootstrap.Hub{}
	if len(p.endpoint.CA) > 0 {
		found.Cluster.Server, found.Cluster.ProxyURL = p.endpoint.Server, p.endpoint.ProxyURL
		found.Cluster.CertificateAuthorityData = p.endpoint.CA
	} else {
		var err error
		if found, err = bootstrap.Discover(ctx, p.endpoint); err != nil {
			return err
		}
	}
	var err error
	p.klusterlet.Bootstrap, err = found.Bootstrap(p.token.Secret()).EncodeBootstrap()
	return err
}
