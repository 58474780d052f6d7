package agent

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// retryStored is how often a credential that the hub did not accept is tried
// again while another is being requested.
const retryStored = 20 * time.Second

// errKnown ends a bootstrap because the hub accepts the stored credential.
var errKnown = errors.New("the hub accepts the stored credential again")

// adopt keeps the credential when the bootstrap kubeconfig changed and still
// leads to the same hub, at another address or behind another certificate
// authority: there is nothing that a person would have to accept again. The hub
// is verified as the new bootstrap kubeconfig says before it sees the
// certificate, and a hub that does not know the certificate refuses it. It
// reports whether the credential was kept. An error says that no hub answered:
// then the credential is neither kept nor given up.
func (a *Agent) adopt(ctx context.Context, s *snapshot) (bool, error) {
	if s.bootstrap == nil || !errors.Is(s.facts.Problem, errOtherHub) || !s.intact(a.config.Clock.Now()) {
		return false, nil
	}
	err := a.tryStored(ctx, s)
	if err != nil && !answered(err) {
		a.journal.report(Report{
			Phase: Bootstrapping, Bootstrap: bootstrapTrouble(s.bootstrap, err),
			Hub: Condition{names.ReasonHubKubeConfigError, "the bootstrap kubeconfig leads elsewhere than the hub kubeconfig, whose credential is kept until the hub there has answered"},
		})
		return false, err
	}
	if err != nil {
		return false, nil //nolint:nilerr // the hub has answered that it does not accept the credential
	}
	if err := a.redirect(ctx, s); err != nil {
		return false, err
	}
	a.events.normal(names.EventSecretSave, "Adopt", "the hub at %s knows the credential, so it is kept", s.bootstrap.Cluster.Server)
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

// answered reports whether an error is a hub's answer about an identity, and
// not one about the network, the moment or the hub's health.
func answered(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// bootstrapUnlessKnown bootstraps, and stops when the hub accepts the stored
// credential after all: one that was refused while the hub's certificate
// authority changed needs nobody's approval.
func (a *Agent) bootstrapUnlessKnown(ctx context.Context, s *snapshot, need credential.Need) error {
	if !s.intact(a.config.Clock.Now()) {
		return a.bootstrap(ctx, s, need)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	retries := make(chan struct{})
	go func() { // Ends with ctx, which is waited for.
		defer close(retries)
		for ctx.Err() == nil {
			a.sleep(ctx, retryStored)
			if ctx.Err() == nil && a.tryStored(ctx, s) == nil {
				cancel(errKnown)
			}
		}
	}()
	err := a.bootstrap(ctx, s, need)
	known := errors.Is(context.Cause(ctx), errKnown)
	cancel(nil)
	<-retries
	if known {
		a.refused = refusal{}
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

// intact reports whether the stored credential is one of the agent's and has
// not expired, whatever hub it was stored for.
func (s *snapshot) intact(now time.Time) bool {
	if s.facts.Problem != nil && !errors.Is(s.facts.Problem, errOtherHub) || !s.named() {
		return false
	}
	validity, err := s.driver.Inspect(s.stored)
	return err == nil && !validity.Expired(now)
}

// named reports whether what is stored was stored under the agent's names.
func (s *snapshot) named() bool {
	return string(s.stored[names.KeyClusterName]) == s.identity.Cluster && string(s.stored[names.KeyAgentName]) == s.identity.Agent
}
