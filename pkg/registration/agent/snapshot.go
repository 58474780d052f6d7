package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// snapshot is the stored state of the agent at one moment, which decides what it does
// next.
type snapshot struct {
	identity driver.Identity
	driver   driver.Agent
	// bootstrap is nil if there is no valid one, for the reason in bootstrapErr.
	bootstrap    *kubeconfig.Hub
	bootstrapErr error
	// stored is the data of the hub kubeconfig Secret, hub its parsed kubeconfig.
	stored driver.Data
	hub    *kubeconfig.Hub
	// facts describe the credential in stored.
	facts credential.Facts
}

func (a *Agent) look(ctx context.Context) (*snapshot, error) {
	stored, err := a.store.get(ctx, a.config.Secrets.Hub)
	if err != nil {
		return nil, err
	}
	s := &snapshot{stored: stored}
	if s.identity, err = a.store.identify(ctx, stored); err != nil {
		return nil, err
	}
	s.driver = a.config.NewDriver(s.identity)
	if s.bootstrap, err = a.store.bootstrap(ctx); err != nil {
		if !errors.Is(err, errNoBootstrap) && !errors.Is(err, kubeconfig.ErrInvalid) {
			return nil, err
		}
		s.bootstrapErr = err
	}
	s.inspect(&a.stored)
	return s, nil
}

// errOtherHub is the problem of a hub kubeconfig for another server than that of the
// bootstrap kubeconfig.
var errOtherHub = fmt.Errorf("%w: the bootstrap kubeconfig is for another server", credential.ErrWrongIdentity)

// inspect evaluates the stored hub kubeconfig. It is valid only for the server of the
// bootstrap kubeconfig, if there is one.
func (s *snapshot) inspect(h *storedCredentials) {
	s.facts.Problem = func() error {
		if len(s.stored[names.KeyKubeconfig]) == 0 {
			return fmt.Errorf("no hub kubeconfig: %w", credential.ErrMissing)
		}
		hub, err := kubeconfig.ParseHub(s.stored[names.KeyKubeconfig])
		if err != nil {
			return fmt.Errorf("%w: %w", credential.ErrMalformed, err)
		}
		if s.bootstrap != nil && !hub.SameServer(*s.bootstrap) {
			return fmt.Errorf("%w: the hub kubeconfig is for %q at %s, the bootstrap kubeconfig for %q at %s or another certificate authority",
				errOtherHub, hub.ClusterName, hub.Cluster.Server, s.bootstrap.ClusterName, s.bootstrap.Cluster.Server)
		}
		if !s.named() {
			return fmt.Errorf("%w: it is for another cluster or agent name", credential.ErrWrongIdentity)
		}
		s.facts.Validity, err = s.driver.Inspect(s.stored)
		if err != nil {
			return err
		}
		s.hub = &hub
		return nil
	}()
	seed := names.AgentUser(s.identity.Cluster, s.identity.Agent)
	s.facts.RenewAt = credential.RenewAt(s.facts.Validity, s.driver.Renewal(), seed)
	if obtained, ok := h.since(s.fingerprint()); ok {
		s.facts.RenewAt = credential.RenewObtained(s.facts.Validity, s.driver.Renewal(), seed, obtained)
	}
}

// fingerprint identifies the stored credential.
func (s *snapshot) fingerprint() string { return s.driver.Fingerprint(s.stored) }

// hubData returns the data of the hub kubeconfig Secret for an issued credential.
func (s *snapshot) hubData(hub kubeconfig.Hub, issued driver.Data) (driver.Data, error) {
	return driver.SecretData(hub, s.identity, s.driver.User(), issued)
}

// with returns the snapshot with other data in the hub kubeconfig Secret.
func (s *snapshot) with(data driver.Data, h *storedCredentials) *snapshot {
	next := *s
	next.stored, next.hub, next.facts = data, nil, credential.Facts{}
	next.inspect(h)
	return &next
}

// usable reports whether the stored credential can be used, or why not.
func (s *snapshot) usable(now time.Time) (credential.Need, bool) {
	need, needed := credential.Unusable().Evaluate(s.facts, now)
	return need, !needed
}

// hubReason returns the hub reason of HubConnectionDegraded for a need.
func (s *snapshot) hubReason(need credential.Need) string {
	switch {
	case need.Reason == credential.Missing && s.stored == nil:
		return names.ReasonHubKubeConfigSecretMissing
	case need.Reason == credential.Missing:
		return names.ReasonHubKubeConfigMissing
	}
	return names.ReasonHubKubeConfigError
}

// sameBootstrap reports whether two snapshots bootstrap as the same agent, at the same
// hub and with the same credential.
func (s *snapshot) sameBootstrap(other *snapshot) bool {
	if s.identity != other.identity || (s.bootstrap == nil) != (other.bootstrap == nil) {
		return false
	}
	if s.bootstrap == nil {
		return s.bootstrapErr.Error() == other.bootstrapErr.Error()
	}
	a, errA := s.bootstrap.EncodeBootstrap()
	b, errB := other.bootstrap.EncodeBootstrap()
	return errA == nil && errB == nil && s.bootstrap.ClusterName == other.bootstrap.ClusterName && string(a) == string(b)
}
