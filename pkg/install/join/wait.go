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

func (s *joining) awaitConnection(ctx context.Context) error {
	waiting := "the hub to accept the cluster"
	if s.Admin != nil { // The administrator has accepted it.
		waiting = "the agent to connect with its credential"
	}
	return s.timedOut(s.AwaitJoined(ctx), waiting)
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
