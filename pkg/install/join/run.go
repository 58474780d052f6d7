package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// revokePatience bounds the revocation of a token when the time of the join is up.
const revokePatience = 15 * time.Second

// joining is one run of a Joiner.
type joining struct {
	*Joiner
	Plan
	// driver is how the cluster registers, once that is known.
	driver identity
	// hub is the client of the verified hub; nil if it cannot be reached from here.
	hub client.Client
	// known is the ManagedCluster of the cluster on the hub, nil if there is none.
	known *clusterv1.ManagedCluster
	out   Result
}

// Run joins the cluster as p says. It can be run again after an interruption. Errors are
// *install.PreflightError, *bootstrap.Error, *finding.Error, *WaitError and those of API
// servers.
func (j *Joiner) Run(ctx context.Context, p Plan) (Result, error) {
	s := &joining{Joiner: j, Plan: p, driver: identity{catalog: j.Drivers}}
	err := install.RunPhases(ctx, s,
		(*joining).refuseOthers, // before the hub creates a token for a cluster that cannot use it
		(*joining).retainDriver,
		(*joining).complete,
		(*joining).connectAdmin,
		(*joining).verify,
		(*joining).requireSameHub,
		(*joining).install,
		(*joining).rotate,
	)
	s.out.Cluster = s.Agent.ClusterName
	s.out.HasKey = s.driver.identifier() == nil
	s.out.Accept = s.acceptArgs("")
	if err != nil {
		// The next run creates another token.
		return s.out, errors.Join(err, s.revoke(ctx))
	}
	if j.DryRun {
		return s.out, nil
	}
	if err := s.finish(ctx); err != nil {
		if j.Admin != nil {
			s.out.Unrevoked = s.Token
		}
		return s.out, err
	}
	return s.out, s.revoke(ctx)
}

func (s *joining) refuseOthers(ctx context.Context) error { return s.RefuseOthersAgent(ctx) }

// retainDriver fills in how the installed agent registers, if the plan does not say so: the
// join waits for it, and so does the hub's administrator.
func (s *joining) retainDriver(ctx context.Context) error {
	if wanted := s.Agent.Registration.Driver; wanted != nil {
		s.driver.choose(*wanted)
	} else {
		installed, err := s.Klusterlet(ctx)
		if err != nil {
			return err
		}
		if installed != nil {
			s.driver.retain(installed)
		}
	}
	if by := s.driver.identifier(); by != nil && s.Change == Rotate {
		return finding.Invalidf("--rotate is for client certificates: this cluster registers with its %s, which has no key", by.Words().Identity)
	}
	return nil
}

// complete fills in, from the installed agent, what a refresh was not given.
func (s *joining) complete(ctx context.Context) error {
	if s.Change == Repair {
		return nil
	}
	name, err := s.ClusterName(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		if hidden, err := s.Hidden(ctx); hidden || err != nil {
			return errors.Join(err, finding.Blockedf("run the command with permission to get klusterlets",
				"whether there is an agent on this cluster is not known: the Klusterlet cannot be read"))
		}
		return finding.NotFoundf("join it first, without --refresh", "there is no agent on this cluster to refresh")
	}
	s.Agent.ClusterName = cmp.Or(s.Agent.ClusterName, name)
	if s.Admin != nil {
		return nil
	}
	return s.retainHub(ctx)
}

// retainHub fills in the hub and the token of the installed agent.
func (s *joining) retainHub(ctx context.Context) error {
	stored, err := agent.StoredBootstrap(ctx, s.Client)
	if err != nil {
		return err
	}
	if stored == nil {
		stored = &kubeconfig.Hub{}
	}
	e := &s.Endpoint
	e.Server = cmp.Or(e.Server, stored.Cluster.Server)
	e.ProxyURL = cmp.Or(e.ProxyURL, stored.Cluster.ProxyURL)
	if len(e.CA)+len(e.Pins) == 0 {
		e.CA = stored.Cluster.CertificateAuthorityData
	}
	if s.Token.Secret() == "" {
		s.Token, err = bootstrap.ParseToken(stored.User.Token)
		s.stored = err == nil
	}
	if e.Server == "" || err != nil {
		return finding.Invalidf("the agent has no bootstrap kubeconfig that could be kept: give --hub-apiserver and --hub-token-file")
	}
	return nil
}

// install installs or updates the agent.
func (s *joining) install(ctx context.Context) error {
	s.Agent.ExternalServer = externalServer(ctx, s.Client)
	if err := s.Observer.Review(s.Agent); err != nil {
		return err
	}
	outcome, err := s.Install(ctx, s.Agent, s.known)
	s.out.Changes = outcome.Changes
	if err != nil {
		return s.timedOut(err, "the agent's objects")
	}
	if s.DryRun {
		return nil
	}
	return s.Observer.Applied(ctx, outcome.Changes)
}

func (s *joining) rotate(ctx context.Context) error {
	if s.Change != Rotate || s.DryRun {
		return nil
	}
	s.Observer.Rotating()
	return s.DropCredential(ctx)
}

// revoke revokes the token that the administrator created for this run.
func (s *joining) revoke(ctx context.Context) error {
	if s.Admin == nil || s.Token.ID == "" {
		return nil
	}
	tokens := bootstrap.Tokens{Client: s.Admin.Client, Clock: s.Clock}
	_, err := tokens.Revoke(ctx, s.Token.ID)
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokePatience)
		defer cancel()
		_, err = tokens.Revoke(late, s.Token.ID)
	}
	if err != nil && !errors.Is(err, bootstrap.ErrNoToken) {
		return fmt.Errorf("the bootstrap token is still valid until %s: %w", s.Token.Expires.UTC().Format(time.RFC3339), err)
	}
	return nil
}

// timedOut says what was waited for, if err is the end of the time.
func (s *joining) timedOut(err error, waiting string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if unmet := install.Unmet(err); unmet != "" {
		waiting += " (" + unmet + ")"
	}
	return &WaitError{Waiting: waiting, Accept: s.acceptArgs(""), Cause: err}
}

// identity is how a cluster registers.
type identity struct {
	catalog driver.Catalog
	// kind is empty until a driver is known.
	kind     driver.AuthType
	settings operatorv1.RegistrationDriver
}

func (i *identity) choose(settings operatorv1.RegistrationDriver) {
	if setup, err := i.catalog.Parse(settings.AuthType); err == nil {
		i.kind, i.settings = setup.Type(), settings
	}
}

// retain fills in how an installed agent registers. The operator reports a driver that this
// version does not have, and settings that are not valid.
func (i *identity) retain(installed *operatorv1.Klusterlet) {
	var settings operatorv1.RegistrationDriver
	if c := installed.Spec.RegistrationConfiguration; c != nil {
		settings = c.RegistrationDriver
	}
	if setup, err := i.catalog.Parse(settings.AuthType); err == nil && setup.ValidateAgent(settings) == nil {
		i.kind, i.settings = setup.Type(), settings
	}
}

// identifier returns the driver if it identifies clusters without a key; nil otherwise.
func (i *identity) identifier() driver.Identifier { return i.catalog.Identifier(i.kind) }

// hubID identifies the hub as the driver does; empty if it does not.
func (i *identity) hubID() string {
	if by := i.identifier(); by != nil {
		return by.HubID(i.settings)
	}
	return ""
}
