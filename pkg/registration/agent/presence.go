package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/connection"
)

// presence finds out whether the hub still has the ManagedCluster of an agent
// that may not read it. A cluster that the hub has not accepted, or not accepted
// yet, is there; that of a hub that was restored or installed anew is not, and
// nobody could accept it.
type presence struct {
	asked time.Time
	// bootstrap is the bootstrap kubeconfig that was asked with, as its digest.
	bootstrap string
	told      Report
	// superseded is since when the hub has accepted the cluster, but not this agent.
	superseded time.Time
	// end is why the agent has to register again: errForgotten or errSuperseded.
	end error
}

// report tells what the agent waits for. It asks again after a time, and at once
// with a bootstrap kubeconfig that is new.
func (p *presence) report(ctx context.Context, a *Agent, s *snapshot) Report {
	name := s.identity.Cluster
	bootstrap, err := a.store.bootstrap(ctx)
	if err != nil || !bootstrap.SameServer(*s.hub) {
		return unauthorized(Registered, waitingForAcceptance(name))
	}
	mark, err := bootstrapDigest(*bootstrap)
	now := a.config.Clock.Now()
	if err == nil && mark == p.bootstrap && now.Sub(p.asked) < presenceRecheck {
		return p.told
	}
	p.asked, p.bootstrap = now, mark
	p.told, p.end = a.askPresence(ctx, name, *bootstrap)
	// The hub gives an agent its rights a moment after it issued its certificate.
	switch {
	case !errors.Is(p.end, errSuperseded):
		p.superseded = time.Time{}
	case p.superseded.IsZero():
		p.superseded, p.end = now, nil
	case now.Sub(p.superseded) < presenceRecheck:
		p.end = nil
	}
	return p.told
}

// reportDenied is report for a credential that is granted outside the hub, by a
// service that denied it: whether the cluster is still there is what counts. That
// the hub accepts the cluster without this agent getting in means that the grant is
// on its way, or fails, which denied says.
func (p *presence) reportDenied(ctx context.Context, a *Agent, s *snapshot, denied Report) Report {
	told := p.report(ctx, a, s)
	p.superseded = time.Time{}
	if errors.Is(p.end, errSuperseded) {
		p.end = nil
	}
	if told.Phase == Rejected || p.end != nil {
		return told
	}
	return denied
}

func unauthorized(phase Phase, message string) Report {
	return Report{Phase: phase, Bootstrap: functional(), Hub: Condition{names.ReasonHubKubeConfigUnauthorized, message}}
}

// askPresence asks the hub with the bootstrap kubeconfig, the only one that may
// read a ManagedCluster that was not accepted. An error is why to register again.
func (a *Agent) askPresence(ctx context.Context, name string, bootstrap kubeconfig.Hub) (Report, error) {
	waiting := waitingForAcceptance(name)
	cluster, err := readAsBootstrap(ctx, bootstrap, a.store.bootstrapDir(), name)
	gone := apierrors.IsNotFound(err)
	switch {
	case apierrors.IsUnauthorized(err):
		return unauthorized(Registered, waiting+fmt.Sprintf("; if the hub has no ManagedCluster %s, or accepts another agent of it, run kubectl ocm join here again with a new token", name)), nil
	case err != nil && !gone:
		return unauthorized(Registered, waiting), nil
	case !cluster.DeletionTimestamp.IsZero():
		if err := a.store.noteDetached(ctx, bootstrap); err != nil {
			a.log.Info("Cannot note that the hub detaches this cluster", "reason", err.Error())
		}
		return unauthorized(Rejected, detachedMessage(name)), nil
	case !gone && (!cluster.Spec.HubAcceptsClient || !accepted(cluster)):
		return unauthorized(Registered, waiting), nil
	}
	detached, err := a.store.detached(ctx, bootstrap)
	switch {
	case err != nil:
		return unauthorized(Registered, err.Error()), nil
	case detached:
		return unauthorized(Rejected, detachedMessage(name)), nil
	case gone:
		return unauthorized(Registered, waiting), errForgotten
	}
	return unauthorized(Registered, fmt.Sprintf("the hub accepts %s, but gave its rights to another agent, or not to this one yet, which asks for a new credential unless that changes within %v", name, presenceRecheck)), errSuperseded
}

func detachedMessage(cluster string) string {
	return fmt.Sprintf("the hub detached %s; to join again run kubectl ocm join here with a new token, or remove the agent with kubectl ocm unjoin", cluster)
}

func readAsBootstrap(ctx context.Context, hub kubeconfig.Hub, dir, name string) (*clusterv1.ManagedCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config, err := connection.Static(hub, dir)
	if err != nil {
		return nil, err
	}
	c, err := newHubClient(config)
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1.ManagedCluster{}
	return cluster, c.Get(ctx, client.ObjectKey{Name: name}, cluster)
}

// noteDetached stores that the hub detached this cluster on purpose, so that it
// does not come back by itself: not before it gets another bootstrap kubeconfig.
func (s *store) noteDetached(ctx context.Context, bootstrap kubeconfig.Hub) error {
	mark, err := bootstrapDigest(bootstrap)
	if err != nil {
		return err
	}
	return s.annotate(ctx, s.secrets.Hub, names.AnnotationDetached, mark)
}

// detached reports whether the hub detached this cluster on purpose, after it
// had joined with this bootstrap kubeconfig.
func (s *store) detached(ctx context.Context, bootstrap kubeconfig.Hub) (bool, error) {
	mark, err := bootstrapDigest(bootstrap)
	if err != nil {
		return false, err
	}
	noted, err := s.annotation(ctx, s.secrets.Hub, names.AnnotationDetached)
	return noted == mark, err
}

func bootstrapDigest(bootstrap kubeconfig.Hub) (string, error) {
	data, err := bootstrap.EncodeBootstrap()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16]), nil
}
