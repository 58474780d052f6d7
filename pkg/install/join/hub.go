package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hubaddress"
)

// tolerableSkew is how far clocks may differ without trouble.
const tolerableSkew = 30 * time.Second

// connectAdmin takes the address of the hub from the administrator's connection, and
// creates the token.
func (s *joining) connectAdmin(ctx context.Context) error {
	if s.Admin == nil {
		return nil
	}
	return s.timedOut(s.createToken(ctx), "the hub")
}

func (s *joining) createToken(ctx context.Context) error {
	c := s.Admin.Client
	if hub, err := lookup.IsHub(c); err != nil || !hub {
		return errors.Join(err, finding.Blockedf("run first: "+s.Admin.Init+", or check --hub-context", "the cluster of context %q is not a hub", s.Admin.Name))
	}
	address, err := hubaddress.Find(ctx, s.Drivers, s.Admin.Config, c, s.Endpoint.Server)
	if err != nil {
		return err
	}
	s.Endpoint.Server = address.Server
	if len(s.Endpoint.CA)+len(s.Endpoint.Pins) == 0 {
		s.Endpoint.CA = address.CA
	}
	s.hub = c
	if s.DryRun {
		return nil
	}
	life := bootstrap.DefaultTTL
	if s.TokenLife > 0 {
		// It is revoked at the end, or valid for as long as the command may take.
		life = min(max(s.TokenLife, bootstrap.MinTTL), bootstrap.MaxTTL)
	}
	s.Token, err = bootstrap.Tokens{Client: c, Clock: s.Clock}.Mint(ctx, life)
	return err
}

// verify verifies the hub and the token, in this order, and fills in the bootstrap
// kubeconfig.
func (s *joining) verify(ctx context.Context) error {
	if reason := bootstrap.LocalOnly(s.Endpoint.Server); reason != "" && !hubaddress.SharesMachine(ctx, s.Client) {
		s.Observer.Warn("the agent may not reach %s: %s", s.Endpoint.Server, reason)
	}
	err := s.Step(ctx, "Verifying the hub "+s.Endpoint.Server, func(ctx context.Context, say install.Say) error {
		found, err := bootstrap.Discover(ctx, s.Endpoint)
		if s.unseen(err) {
			say("not possible from this machine; the agent verifies it by the given CA file")
			s.out.Hub = s.Endpoint.Server
			s.Agent.Bootstrap, err = Unverified(ctx, s.Endpoint, s.Token)
			return err
		}
		if err != nil {
			return err
		}
		say("verified by %s", found.Trust)
		if skew := s.Clock.Now().Sub(found.Date).Abs(); !found.Date.IsZero() && skew > tolerableSkew {
			s.Observer.Warn("the clocks of this machine and the hub differ by %s; leases and certificates need them to agree", skew.Round(time.Second))
		}
		if s.Token.Secret() == "" {
			// A dry run creates no token.
			s.Agent.Bootstrap, err = found.Bootstrap("dry-run").EncodeBootstrap()
			return err
		}
		return s.checkToken(ctx, found)
	})
	return s.timedOut(err, "the hub")
}

// unseen reports whether the hub only cannot be reached from this machine, and the user
// says that the managed cluster can reach it.
func (s *joining) unseen(err error) bool {
	problem, ok := errors.AsType[*bootstrap.Error](err)
	return ok && problem.Kind == bootstrap.Unreachable && len(s.Endpoint.CA) > 0 && slices.Contains(s.Skip, install.CheckHubAddress)
}

// checkToken uses the token for the first time: the hub is verified by now.
func (s *joining) checkToken(ctx context.Context, found bootstrap.Hub) error {
	config, err := found.Config(s.Token)
	if err != nil {
		return err
	}
	if s.hub, err = s.Connect(config); err != nil {
		return err
	}
	err = bootstrap.CheckAccess(ctx, s.hub, s.Token, s.Clock.Now())
	switch {
	case err == nil:
		if err := s.look(ctx); err != nil {
			return err
		}
	case s.stored && unusable(err):
		s.Observer.Warn("the stored bootstrap token is kept, but %v. An agent that has lost its credential needs a new one: give --hub-token-file.", err)
		s.hub = nil
	default:
		return err
	}
	if s.Internal && s.hub != nil {
		if found.Cluster.Server, err = internalServer(ctx, s.hub); err != nil {
			return err
		}
	}
	s.out.Hub = found.Cluster.Server
	s.Agent.Bootstrap, err = found.Bootstrap(s.Token.Secret()).EncodeBootstrap()
	return err
}

// unusable reports whether a token is expired or revoked.
func unusable(err error) bool {
	problem, ok := errors.AsType[*bootstrap.Error](err)
	return ok && (problem.Kind == bootstrap.Expired || problem.Kind == bootstrap.Refused)
}

// look reads what the hub has under the name of the cluster.
func (s *joining) look(ctx context.Context) error {
	cluster, err := s.read(ctx)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cluster %s on the hub: %w", s.Agent.ClusterName, err)
	}
	if err == nil {
		s.known = cluster
	}
	return nil
}

// read reads the cluster on a hub that can be reached from here.
func (s *joining) read(ctx context.Context) (*clusterv1.ManagedCluster, error) {
	cluster := &clusterv1.ManagedCluster{}
	return cluster, s.hub.Get(ctx, client.ObjectKey{Name: s.Agent.ClusterName}, cluster)
}

// readable returns the cluster on the hub; nil if it does not exist or cannot be read.
func (s *joining) readable(ctx context.Context) *clusterv1.ManagedCluster {
	if s.hub == nil {
		return nil
	}
	cluster, err := s.read(ctx)
	if err != nil {
		return nil
	}
	return cluster
}

// DepartureError says that a cluster would leave its hub, which was not asked for.
type DepartureError struct {
	// Cluster is its name on the hub that it has joined, From that hub, and To the other one.
	Cluster, From, To string
	// Works are the ManifestWorks of the first hub whose resources the agent would delete, an
	// hour after the change.
	Works, Resources int
}

// Error implements error.
func (e *DepartureError) Error() string {
	problem := fmt.Sprintf("this cluster has joined the hub %s as %q; %s does not accept its credential, so it is another hub", e.From, e.Cluster, e.To)
	if e.Works > 0 {
		problem += fmt.Sprintf(". An hour after the change, the agent deletes the %d resources of %d ManifestWorks of the first hub", e.Resources, e.Works)
	}
	return problem
}

// requireSameHub refuses to take a cluster from the hub that it has joined, unless that is
// asked for.
func (s *joining) requireSameHub(ctx context.Context) error {
	if s.ChangeHub {
		return nil
	}
	to, err := kubeconfig.ParseHub(s.Agent.Bootstrap)
	if err != nil {
		return fmt.Errorf("bootstrap kubeconfig: %w", err)
	}
	left, err := s.Departure(ctx, to, s.driver.hubID(), s.Connect)
	if err != nil || left == nil {
		return err
	}
	return &DepartureError{Cluster: left.Cluster, From: left.Hub, To: to.Cluster.Server, Works: left.Works, Resources: left.Resources}
}

// internalServer reads the address in the hub's cluster-info. The hub is verified, and the
// agent verifies the address by the same CA.
func internalServer(ctx context.Context, c client.Client) (string, error) {
	info, err := clusterInfo(ctx, c)
	if err != nil {
		return "", fmt.Errorf("cluster-info of the hub: %w", err)
	}
	server, err := bootstrap.ParseServer(info.Server)
	if err != nil {
		return "", err
	}
	return server.String(), nil
}

// externalServer returns the address that a managed cluster publishes about itself, for the
// hub to know; "" if it publishes none that could be used from elsewhere.
func externalServer(ctx context.Context, c client.Reader) string {
	info, err := clusterInfo(ctx, c)
	if err != nil {
		// The address is a courtesy, and the ConfigMap may be another product's.
		return ""
	}
	server, err := bootstrap.ParseServer(info.Server)
	if err != nil || bootstrap.LocalOnly(server.String()) != "" {
		return ""
	}
	return server.String()
}

func clusterInfo(ctx context.Context, c client.Reader) (bootstrap.ClusterInfo, error) {
	var config corev1.ConfigMap
	key := client.ObjectKey{Namespace: names.ClusterInfoNamespace, Name: names.ClusterInfoConfigMap}
	if err := c.Get(ctx, key, &config); err != nil {
		return bootstrap.ClusterInfo{}, err
	}
	return bootstrap.ParseClusterInfo([]byte(config.Data["kubeconfig"]))
}

// Unverified returns the bootstrap kubeconfig of a hub with as little contact as can be: the
// hub is asked for its CA only if that is pinned by its hash.
func Unverified(ctx context.Context, endpoint bootstrap.Endpoint, token bootstrap.Token) ([]byte, error) {
	found := bootstrap.Hub{}
	if len(endpoint.CA) > 0 {
		found.Cluster.Server, found.Cluster.ProxyURL = endpoint.Server, endpoint.ProxyURL
		found.Cluster.CertificateAuthorityData = endpoint.CA
	} else {
		var err error
		if found, err = bootstrap.Discover(ctx, endpoint); err != nil {
			return nil, err
		}
	}
	return found.Bootstrap(token.Secret()).EncodeBootstrap()
}
