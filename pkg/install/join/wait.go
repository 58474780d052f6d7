package join

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

const (
	// keyPatience is how long a join that waits for nothing else looks for the agent's key.
	// An agent whose image is there creates the key within seconds.
	keyPatience = 20 * time.Second
	// pollInterval is how often the hub is read while a join waits for it.
	pollInterval = time.Second
)

// finish waits for what the plan wants: the agent, and then the hub.
func (s *joining) finish(ctx context.Context) error {
	until := s.Until
	if s.Admin != nil {
		until = Joined
	}
	switch until {
	case Installed:
		return nil
	case KeyMade:
		return s.glimpseKey(ctx)
	case Requested:
		return install.RunPhases(ctx, s, (*joining).awaitAgent, (*joining).awaitKey, (*joining).awaitRequest)
	case Joined:
	}
	return install.RunPhases(ctx, s,
		(*joining).awaitAgent,
		(*joining).awaitKey,
		(*joining).acceptOrAwait,
		(*joining).awaitConnection,
		(*joining).awaitAvailable,
		(*joining).noteAutoAccepted,
	)
}

func (s *joining) glimpseKey(ctx context.Context) (err error) {
	if s.driver.identifier() != nil {
		return nil
	}
	s.out.Key, err = s.GlimpseKey(ctx, keyPatience)
	s.out.Accept = s.acceptArgs(s.out.Key)
	return err
}

func (s *joining) awaitAgent(ctx context.Context) error {
	return s.timedOut(s.AwaitAgent(ctx), "the agent")
}

// awaitKey waits for the key that the agent registers with. An agent that a driver
// identifies in another way has no key.
func (s *joining) awaitKey(ctx context.Context) (err error) {
	if s.driver.identifier() != nil {
		return nil
	}
	s.out.Key, err = s.AwaitKey(ctx)
	s.out.Accept = s.acceptArgs(s.out.Key)
	return s.timedOut(err, "the agent to ask for a certificate")
}

// acceptOrAwait accepts the cluster as the hub's administrator, or has the observer ask the
// user for it, if an administrator has to.
func (s *joining) acceptOrAwait(ctx context.Context) error {
	if s.Admin != nil {
		return s.accept(ctx)
	}
	if s.changesDriver() || s.out.Key != "" && (s.Change == Rotate || !s.accepted(ctx)) {
		s.Observer.Accept(s.out.Key, s.out.Accept)
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

func (s *joining) awaitConnection(ctx context.Context) error {
	waiting := "the hub to accept the cluster"
	if s.Admin != nil { // The administrator has accepted it.
		waiting = "the agent to connect with its credential"
	}
	return s.timedOut(s.AwaitJoined(ctx), waiting)
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

// awaitChange waits until an administrator has changed how the hub knows the cluster. What
// the agent reports before is about its earlier credential.
func (s *joining) awaitChange(ctx context.Context) error {
	if !s.changesDriver() || s.hub == nil {
		return nil
	}
	return s.awaitOnHub(ctx, "Waiting for the hub to change how the cluster registers", func(cluster *clusterv1.ManagedCluster, err error) bool {
		if err == nil {
			s.known = cluster
		}
		return !s.changesDriver()
	})
}

// awaitAvailable waits until the hub shows the cluster as joined and available: what follows
// in a script looks there. A hub that cannot be reached from here, or that the bootstrap
// token may not read any more, is not waited for.
func (s *joining) awaitAvailable(ctx context.Context) error {
	if s.hub == nil {
		return nil
	}
	err := s.awaitOnHub(ctx, "Waiting for the hub to show the cluster as available", func(cluster *clusterv1.ManagedCluster, err error) bool {
		return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) ||
			apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined) &&
				apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	})
	return s.timedOut(err, "the hub to show the cluster as available")
}

// awaitRequest waits until the hub has the ManagedCluster, and the request for the agent's
// key; an agent without a key requests nothing.
func (s *joining) awaitRequest(ctx context.Context) error {
	if s.hub == nil {
		return nil
	}
	err := s.awaitOnHub(ctx, "Waiting for the request on the hub", func(_ *clusterv1.ManagedCluster, err error) bool {
		if err != nil || s.out.Key == "" {
			return err == nil
		}
		requests, err := approval.Requests(ctx, s.hub, s.Agent.ClusterName)
		return err == nil && slices.ContainsFunc(requests, func(r approval.Request) bool { return r.Fingerprint == s.out.Key })
	})
	return s.timedOut(err, "the agent's request on the hub")
}

// awaitOnHub waits until done holds of the cluster on the hub, which is empty if it could
// not be read.
func (s *joining) awaitOnHub(ctx context.Context, title string, done func(*clusterv1.ManagedCluster, error) bool) error {
	return s.Step(ctx, title, func(ctx context.Context, _ install.Say) error {
		for !done(s.read(ctx)) {
			if !pause.For(ctx, s.Clock, pollInterval) {
				return ctx.Err()
			}
		}
		return nil
	})
}

func (s *joining) noteAutoAccepted(ctx context.Context) error {
	if cluster := s.readable(ctx); cluster != nil {
		s.out.AutoAccepted = cluster.Annotations[names.AnnotationAutoAccepted]
	}
	return nil
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
