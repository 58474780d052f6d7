package join

import (
	"context"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

// acceptOrAwait accepts the cluster as the hub's administrator, or has the observer ask the
// user for it, if an administrator has to.
func (s *joining) acceptOrAwait(ctx context.Context) error {
	if s.Admin != nil {
		return s.accept(ctx)
	}
	if s.changesDriver() || s.out.Key != "" && (s.Change == Rotate || !s.accepted(ctx)) {
		s.Observer.AwaitingAcceptance(s.out.Key, s.out.Accept)
	}
	return s.timedOut(s.awaitChange(ctx), "the hub to change how the cluster registers")
}

// accepted reports whether the hub has accepted the cluster already.
func (s *joining) accepted(ctx context.Context) bool {
	cluster := s.readable(ctx)
	return cluster != nil && cluster.Spec.HubAcceptsClient
}

// accept accepts the very key that this cluster's agent has. An agent whose credential a
// recreated hub rejects creates its key later.
func (s *joining) accept(ctx context.Context) error {
	by := &approval.Approver{
		Client: s.Admin.Client, Clock: s.Clock, Name: s.Program, Drivers: s.Drivers, Wait: true,
		Choice: approval.Choice{Register: s.register()},
	}
	if identifier := s.driver.identifier(); identifier != nil {
		by.Hub = identifier.Hub(s.driver.settings)
	} else {
		by.Own = s.OwnKey(s.out.Key)
	}
	if s.Accept != nil {
		return s.Accept(ctx, by, s.Agent.ClusterName)
	}
	silent := func(string, ...any) {}
	by.Say, by.Warn = silent, s.Observer.Warn
	return s.Step(ctx, "Accepting "+s.Agent.ClusterName, func(ctx context.Context, say install.Say) error {
		return by.Run(ctx, s.Agent.ClusterName, approval.Say(say))
	})
}

// changesDriver reports whether the cluster registers with another driver, as far as the
// hub knows. Only an administrator of the hub can change that.
func (s *joining) changesDriver() bool {
	if s.known == nil || s.driver.kind == "" {
		return false
	}
	by := s.driver.identifier()
	if by == nil {
		return s.Drivers.Announced(s.known) != nil
	}
	id, err := by.AnnouncedID(s.known)
	return err != nil || id != by.ID(s.driver.settings)
}

// register is how the cluster is to register, for the administrator; the zero value unless
// that is a change.
func (s *joining) register() approval.Register {
	if !s.changesDriver() {
		return approval.Register{}
	}
	to := approval.Register{Driver: s.driver.kind}
	if by := s.driver.identifier(); by != nil {
		to.ID = by.ID(s.driver.settings)
	}
	return to
}

// acceptArgs are the arguments of the command that accepts the cluster on the hub, with the
// key that is to be compared if there is one.
func (s *joining) acceptArgs(key string) []string {
	args := []string{"accept", "--clusters", s.Agent.ClusterName}
	to := s.register()
	if to.Driver != "" {
		args = append(args, "--registration-auth", string(to.Driver))
	}
	if to.ID != "" {
		args = append(args, "--"+s.driver.identifier().Words().IDFlag, to.ID)
	}
	if key != "" {
		args = append(args, "--fingerprint", key)
	}
	return args
}
