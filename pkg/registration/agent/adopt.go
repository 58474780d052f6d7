package agent

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// retryStored is how often a rejected credential is tried again while another one is
// being requested.
const retryStored = 20 * time.Second

// errKnown ends a bootstrap because the hub accepts the stored credential.
var errKnown = errors.New("the hub accepts the stored credential again")

// adopt retains the credential when the bootstrap kubeconfig changed but still connects
// to the same hub, at another address or with another certificate authority, so that
// the cluster need not be accepted again. The hub is verified with the new bootstrap
// kubeconfig before it gets the credential. It reports whether the hub accepted the
// credential. If no hub answers it returns an error, and the credential is neither
// adopted nor replaced.
func (a *Agent) adopt(ctx context.Context, s *snapshot) (bool, error) {
	if s.bootstrap == nil || !errors.Is(s.facts.Problem, errOtherHub) || !s.intact(a.config.Clock.Now()) {
		return false, nil
	}
	err := a.tryStored(ctx, s)
	if err != nil && !answered(err) {
		a.eventLog.report(Report{
			Phase: Bootstrapping, Bootstrap: bootstrapTrouble(s.bootstrap, err),
			Hub: Condition{names.ReasonHubKubeConfigError, "the bootstrap kubeconfig is for another server than the hub kubeconfig; the credential is retained until that server answers"},
		})
		return false, err
	}
	if err != nil {
		return false, nil //nolint:nilerr // the hub rejected the credential
	}
	if err := a.redirect(ctx, s); err != nil {
		return false, err
	}
	a.events.normal(names.EventSecretSave, "Adopt", "retained the credential, which the hub at %s accepts", s.bootstrap.Cluster.Server)
	return true, nil
}

// redirect stores the hub kubeconfig for the bootstrap kubeconfig's hub, with
// the credential that is stored.
func (a *Agent) redirect(ctx context.Context, s *snapshot) error {
	issued := driver.Data{}
	for _, key := range names.CredentialKeys() {
		if value, ok := s.stored[key]; ok {
			issued[key] = value
		}
	}
	data, err := s.hubData(*s.bootstrap, issued)
	if err != nil {
		return err
	}
	return a.store.put(ctx, a.config.Secrets.Hub, data)
}

// answered reports whether an error is the hub's response to an identity, and not a
// failure of the network or of the hub.
func answered(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// bootstrapUnlessKnown bootstraps, and stops when the hub accepts the stored
// credential again, for example after a change of its certificate authority, so that
// no approval is needed.
func (a *Agent) bootstrapUnlessKnown(ctx context.Context, s *snapshot, need credential.Need) error {
	if !s.intact(a.config.Clock.Now()) {
		return a.bootstrap(ctx, s, need)
	}
	known := func(ctx context.Context) error {
		for pause.For(ctx, a.config.Clock, retryStored) {
			if a.tryStored(ctx, s) == nil {
				return errKnown
			}
		}
		return nil
	}
	err := until(ctx, known, func(ctx context.Context) error { return a.bootstrap(ctx, s, need) })
	if errors.Is(err, errKnown) {
		a.rejected = rejection{}
		return errChanged
	}
	return err
}

// tryStored reads the agent's own ManagedCluster with the stored credential at
// the bootstrap kubeconfig's hub, or without one at the stored kubeconfig's.
func (a *Agent) tryStored(ctx context.Context, s *snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	target := s.bootstrap
	if target == nil {
		target = s.hub
	}
	conn, err := s.driver.Open(*target, a.store.bootstrapDir(), s.stored)
	if err != nil {
		return err
	}
	defer conn.Close()
	hub, err := newHubClient(conn.Config())
	if err != nil {
		return err
	}
	return hub.Get(ctx, client.ObjectKey{Name: s.identity.Cluster}, &clusterv1.ManagedCluster{})
}

// intact reports whether the stored credential is the agent's and has not expired, for
// any hub.
func (s *snapshot) intact(now time.Time) bool {
	if s.facts.Problem != nil && !errors.Is(s.facts.Problem, errOtherHub) || !s.named() {
		return false
	}
	validity, err := s.driver.Inspect(s.stored)
	return err == nil && !validity.Expired(now)
}

// named reports whether the stored Secret has the agent's names.
func (s *snapshot) named() bool {
	return string(s.stored[names.KeyClusterName]) == s.identity.Cluster && string(s.stored[names.KeyAgentName]) == s.identity.Agent
}
