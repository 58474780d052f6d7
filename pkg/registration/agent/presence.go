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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/hubclient"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// presence checks whether the hub still has the ManagedCluster of an agent that may
// not read it. A hub that was restored or reinstalled may not, and then the cluster
// cannot be accepted before it registers again.
type presence struct {
	asked time.Time
	// bootstrap is the digest of the bootstrap kubeconfig of the last check.
	bootstrap string
	last      Report
	// superseded is since when the hub has accepted the cluster, but not this agent.
	superseded time.Time
	// end is why the agent has to register again: errForgotten or errSuperseded.
	end error
}

// report returns what the agent waits for. It checks again after presenceRecheck, and
// at once with a new bootstrap kubeconfig.
func (p *presence) report(ctx context.Context, a *Agent, s *snapshot) Report {
	name := s.identity.Cluster
	bootstrap, err := a.store.bootstrap(ctx)
	if err != nil || !bootstrap.SameServer(*s.hub) {
		return unauthorized(Registered, waitingForAcceptance(name))
	}
	mark, err := bootstrapDigest(*bootstrap)
	now := a.config.Clock.Now()
	if err == nil && mark == p.bootstrap && now.Sub(p.asked) < presenceRecheck {
		return p.last
	}
	p.asked, p.bootstrap = now, mark
	p.last, p.end = a.checkPresence(ctx, name, *bootstrap)
	// The hub gives an agent its permissions shortly after it issued its certificate.
	switch {
	case !errors.Is(p.end, errSuperseded):
		p.superseded = time.Time{}
	case p.superseded.IsZero():
		p.superseded, p.end = now, nil
	case now.Sub(p.superseded) < presenceRecheck:
		p.end = nil
	}
	return p.last
}

// reportDenied is report for a credential that an external service grants and denied.
// If the hub accepts the cluster, the grant is pending or failed, which denied reports.
func (p *presence) reportDenied(ctx context.Context, a *Agent, s *snapshot, denied Report) Report {
	report := p.report(ctx, a, s)
	p.superseded = time.Time{}
	if errors.Is(p.end, errSuperseded) {
		p.end = nil
	}
	if report.Phase == Rejected || p.end != nil {
		return report
	}
	return denied
}

func unauthorized(phase Phase, message string) Report {
	return Report{Phase: phase, Bootstrap: functional(), Hub: Condition{names.ReasonHubKubeConfigUnauthorized, message}}
}

// checkPresence reads the ManagedCluster with the bootstrap kubeconfig, which may read
// one that was not accepted. An error is the reason to register again.
func (a *Agent) checkPresence(ctx context.Context, name string, bootstrap kubeconfig.Hub) (Report, error) {
	waiting := waitingForAcceptance(name)
	cluster, err := readAsBootstrap(ctx, bootstrap, a.store.bootstrapDir(), name)
	gone := apierrors.IsNotFound(err)
	switch {
	case apierrors.IsUnauthorized(err):
		return a.withoutBootstrap(ctx, name, bootstrap), nil
	case err != nil && !gone:
		return unauthorized(Registered, waiting), nil
	case !cluster.DeletionTimestamp.IsZero():
		if err := a.store.noteDetached(ctx, bootstrap); err != nil {
			a.log.Info("Failed to record that the hub detaches this cluster", "reason", err.Error())
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
	return unauthorized(Registered, fmt.Sprintf("the hub accepts %s, but this agent has no permissions yet or another agent has them; this agent requests a new credential unless it gets them within %v", name, presenceRecheck)), errSuperseded
}

// withoutBootstrap is the report of an agent that cannot see whether the hub has accepted
// its cluster, or has forgotten it: the hub rejects its bootstrap credential too.
func (a *Agent) withoutBootstrap(ctx context.Context, name string, bootstrap kubeconfig.Hub) Report {
	if detached, err := a.store.detached(ctx, bootstrap); err == nil && detached {
		return unauthorized(Rejected, detachedMessage(name))
	}
	return unauthorized(Registered, waitingForAcceptance(name)+
		"; if that finds no request of this cluster, run kubectl ocm join --refresh on this cluster with a new token")
}

func detachedMessage(cluster string) string {
	return fmt.Sprintf("the hub detached %s; to join again, run kubectl ocm join --refresh on this cluster with a new token, or remove the agent with kubectl ocm unjoin", cluster)
}

func readAsBootstrap(ctx context.Context, hub kubeconfig.Hub, dir, name string) (*clusterv1.ManagedCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config, err := hubclient.Static(hub, dir, userAgent)
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

// noteDetached records that the hub detached this cluster on purpose, so that it does
// not register again before it gets another bootstrap kubeconfig.
func (s *store) noteDetached(ctx context.Context, bootstrap kubeconfig.Hub) error {
	mark, err := bootstrapDigest(bootstrap)
	if err != nil {
		return err
	}
	return s.annotate(ctx, s.secrets.Hub, names.AnnotationDetached, mark)
}

// detached reports whether the hub detached this cluster on purpose after it joined
// with this bootstrap kubeconfig.
func (s *store) detached(ctx context.Context, bootstrap kubeconfig.Hub) (bool, error) {
	mark, err := bootstrapDigest(bootstrap)
	if err != nil {
		return false, err
	}
	recorded, err := s.annotation(ctx, s.secrets.Hub, names.AnnotationDetached)
	return recorded == mark, err
}

func bootstrapDigest(bootstrap kubeconfig.Hub) (string, error) {
	data, err := bootstrap.EncodeBootstrap()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16]), nil
}
